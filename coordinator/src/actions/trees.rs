//! Any worktree of the repository: listed, inspected, made, bound to a task, kept, removed,
//! restored.

use std::path::{Path, PathBuf};

use project::workplace::Who;
use project::workplace::hooks::{BeforeDone, TreeRemover};
use project::workplace::{TreeWish, Workplace};
use runs::binding::Binder;
use serde_json::{Value, json};
use store::agent_id::LEAD;
use store::{Category, Failure};
use taskboard::{Begin, Board, Completed, Hooks, Task, TaskId};
use worktrees::{
    Changes, CreateRequest, Created, Entry, RemoveRequest, Removed, Slug, TreeError, TreeStatus,
    Trees,
};

use super::worktree::{fill_behind, making, to_json};

/// Maximum number of worktrees that are inspected at the same time.
const AT_ONCE: usize = 4;

/// The worktrees to list, and the depth of the inspection.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListOptions {
    /// True if removed worktrees are listed too.
    pub removed: bool,
    /// True if their changes are not read, which is faster.
    pub quick: bool,
}

/// A worktree and its changes.
#[derive(Debug)]
pub struct ListedTree {
    /// Its entry in the registry.
    pub entry: Entry,
    /// Its changes; `None` if they were not read.
    pub changes: Option<Changes>,
    /// Its size in bytes.
    pub size: Option<u64>,
}

impl ListedTree {
    fn of(entry: Entry, trees: &Trees, quick: bool) -> Self {
        let looked = !quick && entry.is_live();
        let there = looked && Path::new(&entry.path).is_dir();
        let size = there.then(|| store::tree::size(Path::new(&entry.path)).ok());
        Self {
            changes: looked.then(|| trees.changes_of(&entry)),
            size: size.flatten(),
            entry,
        }
    }

    fn to_json(&self) -> Value {
        let mut json = to_json(&self.entry);
        if let Some(changes) = &self.changes {
            json["changes"] = changes.to_json();
        }
        if let Some(size) = self.size {
            json["size"] = size.into();
        }
        json
    }
}

/// The existing worktrees.
pub fn list(options: ListOptions, workplace: &Workplace) -> Result<Vec<ListedTree>, Failure> {
    let (board, trees) = (workplace.board(), workplace.trees()?);
    binder(&board, &trees);
    let mut entries = trees.list()?;
    entries.retain(|entry| options.removed || entry.status != TreeStatus::Removed);
    let mut listed = Vec::new();
    for some in entries.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let look = |entry: &Entry| {
                let (entry, trees) = (entry.clone(), &trees);
                scope.spawn(move || ListedTree::of(entry, trees, options.quick))
            };
            let looking: Vec<_> = some.iter().map(look).collect();
            listed.extend(looking.into_iter().filter_map(|tree| tree.join().ok()));
        });
    }
    Ok(listed)
}

/// The directory of a worktree: by its own name, its agent's, or the id of its task. Without a name
/// that of the main worktree.
pub fn directory_of(name: Option<&str>, workplace: &Workplace) -> Result<PathBuf, Failure> {
    let trees = workplace.trees()?;
    let Some(name) = name else {
        return Ok(trees.main_tree().to_owned());
    };
    let entries = trees.list()?;
    let live = || entries.iter().filter(|entry| entry.is_live());
    let board = workplace.board();
    let of_task = |entry: &&Entry| {
        let here = entry.task_list.as_deref() == Some(board.name().as_str());
        here && entry.task_id.as_deref() == Some(name.trim_start_matches('#'))
    };
    let named = live().find(|entry| entry.name.eq_ignore_ascii_case(name));
    let found = named.or_else(|| live().rev().find(of_task));
    if let Some(entry) = found {
        return Ok(entry.path.clone().into());
    }
    let agent = workplace.agents().ok().and_then(|all| all.find(name).ok());
    let of_agent = agent.and_then(|meta| meta.worktree).map(|tree| tree.name);
    let of_agent = of_agent.and_then(|tree| live().find(|entry| entry.name == tree));
    if let Some(entry) = of_agent {
        return Ok(entry.path.clone().into());
    }
    let message = format!("there is no worktree {name:?}");
    let known = live().map(|entry| entry.name.as_str());
    let hint = match store::nearest(name, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => "`ccb worktree list` shows them, `ccb worktree create NAME` makes one".to_owned(),
    };
    Err(Failure::new(Category::NotFound, "not_found", message).with_hint(hint))
}

/// `{"worktrees":[…]}`.
pub fn list_json(listed: &[ListedTree]) -> Value {
    let trees: Vec<Value> = listed.iter().map(ListedTree::to_json).collect();
    json!({ "worktrees": trees })
}

/// The state of a worktree.
#[derive(Debug)]
pub struct TreeReport {
    /// Its entry in the registry.
    pub entry: Entry,
    /// Its changes.
    pub changes: Changes,
    /// True if an agent or a person works in it.
    pub in_use: bool,
    /// The files in it that git ignores; `None` if they were not requested.
    pub ignored: Option<Vec<String>>,
}

/// Inspects a worktree; with `ignored` also the files that git ignores.
pub fn status(slug: &Slug, ignored: bool, workplace: &Workplace) -> Result<TreeReport, Failure> {
    let trees = workplace.trees()?;
    let entry = trees.get(slug)?;
    Ok(TreeReport {
        changes: trees.changes_of(&entry),
        in_use: trees.is_held(slug)?,
        ignored: ignored.then(|| ignored_paths(&trees, slug)).transpose()?,
        entry,
    })
}

impl TreeReport {
    /// `{"worktree","changes","inUse"}`.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "worktree": to_json(&self.entry), "changes": self.changes.to_json(),
            "inUse": self.in_use,
        });
        if let Some(paths) = &self.ignored {
            json["ignored"] = json!(paths);
        }
        json
    }
}

/// A worktree that was found or made, and the task that is now bound to it.
#[derive(Debug)]
pub struct CreatedTree {
    /// The worktree.
    pub created: Created,
    /// The task, if one was named.
    pub task: Option<Task>,
}

impl CreatedTree {
    /// `{"worktree","task"}`.
    pub fn to_json(&self) -> Value {
        let mut tree = to_json(&self.created.entry);
        tree["created"] = self.created.created.into();
        tree["durationMs"] = self.created.duration_ms.into();
        let mut json = json!({ "worktree": tree });
        if let Some(task) = &self.task {
            json["task"] = task.to_json();
        }
        json
    }
}

/// Finds the worktree of this name, or makes it in the way this place makes worktrees. Binds the
/// named task to it, and begins the task as `task` says; if the task refuses, the new worktree is
/// removed again.
pub fn create(
    name: Option<Slug>,
    task: Option<(TaskId, Begin<'_>)>,
    wish: &TreeWish,
    workplace: &Workplace,
) -> Result<CreatedTree, Failure> {
    let (board, trees) = (workplace.board(), workplace.trees()?);
    if let Some((task, _)) = task {
        // Before the worktree is made.
        board.snapshot()?.require(task)?;
    }
    let mut created = making(name, wish, workplace, |request| {
        Ok(trees.create(&CreateRequest {
            agent: workplace.named_agent().map(str::to_owned),
            bound_to: task.map(|(task, _)| (task.to_string(), board.name().to_string())),
            ..request
        })?)
    })?;
    let mut bound = None;
    if let Some((task, begin)) = task {
        let (board, trees) = (&board, &trees);
        let slug = Slug::new(&created.entry.name)?;
        match (Binder { board, trees }).bind(&slug, task, begin) {
            Ok((entry, task)) => {
                created.entry = entry;
                bound = Some(task);
            }
            Err(error) => {
                // It was made for this task alone, and is not in use yet.
                if created.created {
                    take_back(&slug, created.entry.hook_based, trees, workplace)?;
                }
                return Err(error.into());
            }
        }
    }
    fill_behind(&created, workplace);
    for note in &created.notes {
        tracing::info!("{note}");
    }
    Ok(CreatedTree {
        created,
        task: bound,
    })
}

/// Removes a new worktree that is not in use yet.
fn take_back(
    slug: &Slug,
    hook_based: bool,
    trees: &Trees,
    workplace: &Workplace,
) -> Result<(), Failure> {
    let remover = TreeRemover::new(hook_based, workplace)?;
    let hook = remover.hook();
    let request = RemoveRequest {
        discard: hook_based,
        hook: hook.as_ref().map(|hook| hook as _),
        ..RemoveRequest::default()
    };
    trees.remove(slug, &request)?;
    Ok(())
}

/// Binds a task to a worktree.
pub fn bind(
    slug: &Slug,
    task: TaskId,
    begin: Begin<'_>,
    workplace: &Workplace,
) -> Result<(Entry, Task), Failure> {
    let (board, trees) = (workplace.board(), workplace.trees()?);
    Ok(binder(&board, &trees).bind(slug, task, begin)?)
}

/// The owner that begins a task bound to a worktree here. A lead prepares the worktree for another
/// agent; any other caller is about to work in it.
pub fn beginner(workplace: &Workplace) -> Begin<'_> {
    let leads = matches!(workplace.who(), Who::Lead | Who::Coordinator);
    match workplace.named_agent() {
        Some(agent) if leads || agent == LEAD => Begin::NotYet,
        Some(agent) => Begin::By(agent),
        None => Begin::ByNobody,
    }
}

/// Unbinds a worktree and its task from each other.
pub fn unbind(slug: &Slug, workplace: &Workplace) -> Result<(Entry, Task), Failure> {
    let (board, trees) = (workplace.board(), workplace.trees()?);
    Ok(binder(&board, &trees).unbind(slug)?)
}

/// The reply to binding and unbinding.
pub fn bound_json(entry: &Entry, task: &Task) -> Value {
    json!({"worktree": to_json(entry), "task": task.to_json()})
}

/// Marks a worktree as kept.
pub fn keep(slug: &Slug, workplace: &Workplace) -> Result<Entry, Failure> {
    Ok(workplace.trees()?.keep(slug)?)
}

/// The options of a removal.
#[derive(Default)]
pub struct RemoveOptions<'a> {
    /// True if work that is nowhere else is removed too.
    pub discard: bool,
    /// True if ignored files are also kept when the trash is emptied.
    pub rescue_ignored: bool,
    /// Completes its task as well, after running the task's check, if it has one.
    pub complete: Option<&'a dyn Hooks>,
}

/// A worktree that was removed.
#[derive(Debug)]
pub struct RemovedTree {
    /// The removal.
    pub removed: Removed,
    /// The files in it that git ignored, as far as git could list them.
    pub ignored: Vec<String>,
    /// Its task, if that was completed as well.
    pub completed: Option<Completed>,
}

/// Removes a worktree.
pub fn remove(
    slug: &Slug,
    options: &RemoveOptions<'_>,
    workplace: &Workplace,
) -> Result<RemovedTree, Failure> {
    let (board, trees) = (workplace.board(), workplace.trees()?);
    let binder = binder(&board, &trees);
    let ignored = ignored_paths(&trees, slug).unwrap_or_default();
    let hook_based = trees.get(slug).is_ok_and(|entry| entry.hook_based);
    let remover = TreeRemover::new(hook_based && options.discard, workplace)?;
    let hook = remover.hook();
    let request = RemoveRequest {
        discard: options.discard,
        rescue_ignored: options.rescue_ignored,
        kept: None,
        hook: hook.as_ref().map(|hook| hook as _),
    };
    let (removed, completed) = match options.complete {
        Some(check) => {
            let task = trees.get(slug)?.task_id.and_then(|id| id.parse().ok());
            let has_check = |id| Some(board.snapshot().ok()?.get(id)?.verify_command().is_some());
            let has_check = task.and_then(has_check) == Some(true);
            let asked = BeforeDone::new(workplace, has_check.then_some(check));
            let caller = workplace.caller(None, false);
            let done = binder.remove_and_complete(slug, &request, &caller, asked.asked())?;
            (done.removed, Some(done.completed))
        }
        None => (trees.remove(slug, &request)?, None),
    };
    Ok(RemovedTree {
        removed,
        ignored,
        completed,
    })
}

impl RemovedTree {
    /// `{"worktree","ignored"}`, and the task if it was completed.
    pub fn to_json(&self) -> Value {
        let mut json = json!({"worktree": to_json(&self.removed.entry), "ignored": self.ignored});
        if let Some(kept) = &self.removed.branch_kept {
            json["branchKept"] = kept.as_str().into();
        }
        if let Some(completed) = &self.completed {
            json["task"] = completed.task.to_json();
            json["unblocked"] = json!(completed.unblocked);
        }
        json
    }
}

/// Restores the last removed worktree of this name.
pub fn undo(slug: &Slug, workplace: &Workplace) -> Result<Entry, Failure> {
    workplace.trees()?.undo(slug).map_err(|error| match error {
        TreeError::Exists { .. } => Failure::refused(
            "exists",
            format!("worktree {:?} is there", slug.as_str()),
        )
        .with_hint(format!(
            "look at that one first: `ccb worktree status {slug}`; when it is removed, this one \
                     can come back"
        )),
        error => error.into(),
    })
}

/// The files in a worktree that git ignores.
pub fn ignored_paths(trees: &Trees, slug: &Slug) -> Result<Vec<String>, TreeError> {
    let paths = trees.ignored(slug)?;
    let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    Ok(paths.iter().map(text).collect())
}

/// Repairs tasks and worktrees after a crash between the two. That is optional: an error here
/// occurs again, with a better message, where it matters.
fn binder<'a>(board: &'a Board, trees: &'a Trees) -> Binder<'a> {
    let binder = Binder { board, trees };
    if let Err(error) = binder.reconcile() {
        tracing::warn!(%error, "worktrees and tasks could not be compared");
    }
    binder
}

impl std::fmt::Debug for RemoveOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoveOptions")
            .field("discard", &self.discard)
            .finish_non_exhaustive()
    }
}
