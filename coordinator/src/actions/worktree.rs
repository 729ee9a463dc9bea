//! A session's own worktree: entering and leaving it.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use store::Failure;
use store::agent_id::LEAD;
use store::name::Name;
use taskboard::TaskId;
use worktrees::{CreateRequest, Created, Entry, RemoveRequest, Slug, TreeError, Trees};

use project::visit::{Left, Visit, VisitRecord};
use project::workplace::hooks::TreeRemover;
use project::workplace::{TreeWish, Workplace};
use runs::session_file::SessionFile;

/// The treatment of a worktree that the session leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It is kept.
    Keep,
    /// It is removed.
    Remove {
        /// True if work that is nowhere else is removed too.
        discard: bool,
    },
}

/// Enters the worktree of this name, creating it if needed.
pub fn enter(
    name: Option<Slug>,
    wish: &TreeWish,
    workplace: &Workplace,
) -> Result<(VisitRecord, Created), Failure> {
    let trees = workplace.trees()?;
    let visit = visit(workplace, &trees)?;
    let (record, created) = making(name, wish, workplace, |request| {
        Ok(visit.enter(&request, &workplace.directory)?)
    })?;
    fill_behind(&created, workplace);
    Ok((record, created))
}

/// Lets `make` create a worktree with the defaults of this place.
pub(super) fn making<T>(
    name: Option<Slug>,
    wish: &TreeWish,
    workplace: &Workplace,
    make: impl FnOnce(CreateRequest<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (base, set_up) = workplace.new_tree(wish)?;
    let hooks = workplace.hooks().create_tree()?;
    let by_hook = hooks.as_ref().map(|hooks| |slug: &Slug| hooks.create(slug));
    make(CreateRequest {
        base,
        set_up,
        hook: by_hook.as_ref().map(|hook| hook as _),
        ..CreateRequest::new(name, &workplace.directory)
    })
}

/// Leaves the worktree the session is in.
pub fn leave(how: Leave, workplace: &Workplace) -> Result<Left, Failure> {
    let trees = workplace.trees()?;
    let visit = visit(workplace, &trees)?;
    Ok(match how {
        Leave::Keep => visit.leave_and_keep()?,
        Leave::Remove { discard } => {
            let current = visit.current()?;
            let hook_based = current.is_some_and(|record| record.hook_based == Some(true));
            let remover = TreeRemover::new(hook_based && discard, workplace)?;
            let hook = remover.hook();
            let request = RemoveRequest {
                discard,
                hook: hook.as_ref().map(|hook| hook as _),
                ..RemoveRequest::default()
            };
            visit.leave_and_remove(&request)?
        }
    })
}

/// Starts a process that refills the pool after a worktree was made. The caller does not wait for
/// it; the next such process repeats its failures.
pub fn fill_behind(created: &Created, workplace: &Workplace) {
    let want = workplace.worktree_settings().pool;
    if !created.created || want == 0 {
        return;
    }
    let started = std::env::current_exe().and_then(|program| {
        Command::new(program)
            .arg("--home")
            .arg(workplace.home().path())
            .arg("-C")
            .arg(&workplace.directory)
            .args(["worktree", "pool", "fill"])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    });
    if let Err(error) = started {
        tracing::warn!(%error, "the pool is not filled");
    }
}

fn visit<'a>(workplace: &'a Workplace, trees: &'a Trees) -> Result<Visit<'a>, Failure> {
    let team = workplace.team()?;
    Ok(Visit {
        file: SessionFile::new(workplace.home(), &team),
        team,
        member: member(workplace),
        id: Workplace::session_id(),
        trees,
    })
}

/// A member has a session of its own; the lead's is the team's.
fn member(workplace: &Workplace) -> Option<&Name> {
    workplace.named_agent()?;
    let name = workplace.agent_name();
    let lead = name.as_str().eq_ignore_ascii_case(LEAD);
    (!lead).then_some(name)
}

/// A worktree of an attempt at a task that another attempt has done.
#[derive(Debug)]
pub struct SupersededTree {
    /// The worktree.
    pub entry: Entry,
    /// The task.
    pub task: TaskId,
    /// True if it was removed; an error says why it is kept.
    pub removed: Result<bool, TreeError>,
}

/// The worktrees of attempts at tasks that another attempt has done, however young they are; with
/// `remove` they go to the trash.
pub fn superseded(remove: bool, workplace: &Workplace) -> Result<Vec<SupersededTree>, Failure> {
    let trees = workplace.trees()?;
    let found = landing::superseded(&workplace.agents()?)?.into_iter();
    let trees = found.map(|one| SupersededTree {
        removed: match remove {
            true => landing::discard(&trees, &one.entry).map(|()| true),
            false => Ok(false),
        },
        entry: one.entry,
        task: one.task,
    });
    Ok(trees.collect())
}

/// The reply to entering.
pub fn entered_json(record: &VisitRecord, created: &Created) -> Value {
    let mut tree = to_json(&created.entry);
    tree["created"] = created.created.into();
    json!({"worktree": tree, "session": record})
}

/// The reply to leaving.
pub fn left_json(left: &Left) -> Value {
    json!({
        "worktree": left.entry.as_ref().map(to_json),
        "session": left.record,
        "removed": left.removed.is_some(),
    })
}

/// A worktree as JSON.
pub fn to_json(entry: &Entry) -> Value {
    let mut json = json!({
        "name": entry.name,
        "path": entry.path,
        "branch": entry.branch,
        "base": entry.base,
        "status": entry.status.as_str(),
        "task_id": entry.task_id,
        "agent": entry.agent,
        "createdAt": entry.created_at,
        "lastUsedAt": entry.last_used_at,
    });
    if entry.hook_based {
        json["hookBased"] = true.into();
    }
    if let Some(doing) = entry.under_way() {
        json["underWay"] = doing.into();
    }
    if let Some(landed) = entry
        .merged
        .as_ref()
        .filter(|landed| !landed.pending && !landed.undone)
    {
        json["merged"] = json!({"into": landed.into, "commit": landed.commit, "head": landed.head, "at": landed.at});
    }
    if let Some(trash) = &entry.trash {
        let refs = format!("refs/ccb/rescue/{}/", trash.id);
        json["removed"] =
            json!({"at": trash.at, "id": trash.id, "undoable": !trash.emptied, "rescueRefs": refs});
    }
    json
}
