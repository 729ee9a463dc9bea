//! The changes of a task, an agent, or a worktree, against their base.

use runs::{AgentError, Agents};
use store::{Category, Failure};
use taskboard::{Status, Task, TaskId};
use worktrees::{Entry, FilesNow, Slug, Trees};

use super::queue::Results;
use super::work::{Unlanded, candidates_everywhere};

/// Two states of the repository's files, and their owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The worktree, whether or not it is still there.
    pub worktree: Option<String>,
    /// The task.
    pub task: Option<TaskId>,
    /// The subject of the task.
    pub subject: Option<String>,
    /// The commit the work started from.
    pub base: String,
    /// The result of the work.
    pub to: FilesNow,
}

/// Work with changes that have not landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The worktree.
    pub worktree: String,
    /// The task and its list, if it was done for one.
    pub task: Option<(String, TaskId)>,
    /// The subject of the task, or the name of the owner.
    pub subject: String,
    /// A summary in a few words.
    pub changes: String,
    /// True if it waits to land.
    pub done: bool,
}

/// The changes that `given` names: the number of a task on the list of `agents`, a worktree, or an
/// agent.
pub fn compare(given: &str, agents: &Agents) -> Result<Comparison, Failure> {
    let trees = agents.trees()?;
    let number = given.strip_prefix('#').unwrap_or(given);
    if let Ok(id) = number.parse::<TaskId>() {
        return of_task(id, &trees, agents);
    }
    if let Ok(slug) = Slug::new(given)
        && let Some(entry) = trees.last_of(&slug)?
    {
        return of_entry(&entry, &trees);
    }
    match agents.find(given) {
        Ok(meta) => {
            let tree = meta.worktree.as_ref().ok_or_else(|| {
                let message = format!("{} has no worktree of its own", meta.address());
                Failure::new(Category::NotFound, "no_worktree", message)
                    .with_hint("`git diff` shows what is changed where it works")
            })?;
            match trees.last_of(&Slug::new(&tree.name)?)? {
                Some(entry) => of_entry(&entry, &trees),
                None => Err(nothing_left(given)),
            }
        }
        Err(AgentError::NotFound { .. }) => {
            let message = format!("there is no task, worktree or agent {given:?}");
            Err(Failure::new(Category::NotFound, "not_found", message)
                .with_hint("`ccb diff` without a name shows what has changes"))
        }
        Err(error) => Err(error.into()),
    }
}

/// The worktree of the caller's directory, if ccb made it.
pub fn here(agents: &Agents) -> Result<Option<String>, Failure> {
    let at = agents.directory();
    let entries = agents.trees()?.list()?;
    let inside = |entry: &&Entry| entry.is_live() && at.starts_with(entry.path());
    Ok(entries.iter().find(inside).map(|entry| entry.name.clone()))
}

/// Everything in this repository with changes that have not landed, finished work first.
pub fn changed(agents: &Agents) -> Result<Vec<Changed>, Failure> {
    let trees = agents.trees()?;
    let waiting = candidates_everywhere(agents)?;
    let mut all: Vec<Changed> = waiting.iter().map(of_waiting).collect();
    for entry in trees.list()?.iter().filter(|entry| entry.is_live()) {
        if waiting.iter().any(|work| work.worktree == entry.name) || entry.hook_based {
            continue;
        }
        let changes = trees.changes_of(entry);
        let landed = entry.merged.as_ref();
        let landed = landed.filter(|landed| !landed.undone && !landed.pending);
        let nothing_new = landed.is_some_and(|landed| changes.beyond(&landed.head).is_none());
        if changes.state == worktrees::ChangeState::Clean || nothing_new {
            continue;
        }
        let task = entry
            .made_for()
            .and_then(|(list, id)| Some((list.to_owned(), id.parse().ok()?)));
        all.push(Changed {
            worktree: entry.name.clone(),
            subject: entry.agent.clone().unwrap_or_default(),
            task,
            changes: changes.describe(),
            done: false,
        });
    }
    Ok(all)
}

fn of_waiting(work: &Unlanded) -> Changed {
    Changed {
        worktree: work.worktree.clone(),
        task: Some((work.list.clone(), work.task)),
        subject: work.subject.clone(),
        changes: store::counted(work.files.len(), "file"),
        done: true,
    }
}

fn of_task(id: TaskId, trees: &Trees, agents: &Agents) -> Result<Comparison, Failure> {
    let board = agents.board();
    let task = board.get(id)?;
    let list = board.name().as_str();
    let found = in_worktree(&task, list, trees, agents)?;
    let found = match found {
        Some(found) => Some(found),
        None => {
            Results::new(agents, trees).fetch(&task);
            kept(&task, list, trees)?
        }
    };
    let found = found.ok_or_else(|| match task.status {
        Status::Pending => {
            let message = format!("nobody has worked on task {id}");
            Failure::new(Category::NotFound, "no_changes", message)
        }
        _ => nothing_left(&format!("task {id}")),
    })?;
    Ok(Comparison {
        task: Some(id),
        subject: Some(task.subject),
        ..found
    })
}

/// The changes in the worktree of a task: the one of its result, else the last one made for it.
fn in_worktree(
    task: &Task,
    list: &str,
    trees: &Trees,
    agents: &Agents,
) -> Result<Option<Comparison>, Failure> {
    let result = task.result().unwrap_or_default();
    let bound = result.worktree.as_deref().or(task.worktree());
    let lease = task.lease().and_then(|lease| lease.run);
    let running = lease.and_then(|run| agents.run(&run).meta().ok()?.worktree);
    let name = bound.map(str::to_owned).or(running.map(|tree| tree.name));
    let entries = trees.list()?;
    let id = task.id.to_string();
    let is_it = |entry: &&Entry| match &name {
        Some(name) => entry.name == *name,
        None => entry.made_for() == Some((list, &id)),
    };
    let mut live = entries.iter().filter(|entry| entry.is_live());
    match live.rfind(is_it) {
        Some(entry) => of_entry(entry, trees).map(Some),
        None => Ok(None),
    }
}

/// The stored work of a task whose worktree was removed.
fn kept(task: &Task, list: &str, trees: &Trees) -> Result<Option<Comparison>, Failure> {
    let result = task.result().unwrap_or_default();
    let comparison = |base: &String, commit: &String| Comparison {
        worktree: result.worktree.clone(),
        task: Some(task.id),
        subject: Some(task.subject.clone()),
        base: base.clone(),
        to: FilesNow {
            id: commit.clone(),
            uncommitted: false,
        },
    };
    if let (Some(base), Some(commit)) = (&result.base, &result.commit)
        && trees.has_commit(base)
        && trees.has_commit(commit)
    {
        return Ok(Some(comparison(base, commit)));
    }
    let name = format!("{list}#{}", task.id);
    let landings = trees.landings()?;
    let mut landings = landings.iter().rev();
    let landing = landings.find(|one| one.task.as_ref() == Some(&name));
    if let Some(landing) = landing.filter(|one| trees.has_commit(&one.commit)) {
        return Ok(Some(comparison(&landing.from, &landing.commit)));
    }
    // The last attempt that failed.
    let mut entries = trees.list()?;
    let id = task.id.to_string();
    entries.retain(|entry| entry.made_for() == Some((list, &id)));
    match entries.last() {
        Some(entry) => of_entry(entry, trees).map(Some),
        None => Ok(None),
    }
}

/// The changes that are, or were, in a worktree.
fn of_entry(entry: &Entry, trees: &Trees) -> Result<Comparison, Failure> {
    if entry.hook_based {
        let message = format!("worktree {:?} was made by a hook", entry.name);
        return Err(Failure::refused("hook_based", message)
            .with_hint("only its own version control can compare it"));
    }
    let base = entry.base.clone();
    let base = base.ok_or_else(|| nothing_left(&entry.name))?;
    let to = match entry.is_live() {
        true => trees.files_now(entry)?,
        false => FilesNow {
            id: trees
                .last_commit(entry)
                .ok_or_else(|| nothing_left(&entry.name))?,
            uncommitted: false,
        },
    };
    Ok(Comparison {
        worktree: Some(entry.name.clone()),
        task: None,
        subject: None,
        base,
        to,
    })
}

fn nothing_left(what: &str) -> Failure {
    let message = format!("nothing is kept of the changes of {what}");
    Failure::new(Category::NotFound, "no_changes", message)
        .with_hint("`git log` shows what has landed")
}
