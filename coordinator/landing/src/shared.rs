//! Landing where several machines share a board: results of other machines, and one landing at a
//! time on all machines.
//!
//! A branch of a remote moves only from its expected head, so two machines that land at the same
//! time do no harm; taking turns saves the work of starting over. Before the branch moves, the
//! board records the commit it will get. After a crash the branch itself says whether that
//! happened, so a result is never on it twice.

use std::sync::atomic::{AtomicBool, Ordering};

use runs::results::result_name;
use runs::{AgentError, Agents};
use taskboard::{Board, LandedAt, Task, TaskId, TaskResult};
use worktrees::{Base, CreateMode, CreateRequest, Slug, TreeError, Trees, shown_branch};

/// Makes sure that the commit of a completed task is here, whichever machine made it.
pub fn obtain(trees: &Trees, remote: &str, list: &str, task: &Task) -> Result<(), TreeError> {
    let result = task.result().unwrap_or_default();
    // Every machine has a commit without changes.
    let (Some(commit), Some(true), Some(run)) = (result.commit, result.changed, result.run) else {
        return Ok(());
    };
    trees.obtain(remote, &result_name(list, task.id, &run), &commit)
}

/// Waits until no other machine lands on the branch; `None` if `stop` is set.
pub(super) fn turn(
    agents: &Agents,
    into: &str,
    stop: &AtomicBool,
) -> Result<Option<runs::Turn>, AgentError> {
    let name = format!("landing {}", shown_branch(into));
    agents.wait_for_turn(&name, || !stop.load(Ordering::SeqCst))
}

/// Makes sure that the result of a task is in a worktree of this machine.
pub(super) fn bring_here(agents: &Agents, task: &Task, trees: &Trees) -> Result<(), AgentError> {
    let result = task.result().unwrap_or_default();
    let (Some(name), Some(commit)) = (&result.worktree, &result.commit) else {
        return Ok(());
    };
    let slug = Slug::new(name)?;
    if trees.get(&slug).is_ok() {
        return Ok(());
    }
    let list = agents.board().name().to_string();
    if let Some(remote) = agents.shared().and_then(|place| place.remote.as_ref()) {
        obtain(trees, remote, &list, task)?;
    }
    // The name is that of the run, which no other machine has used for anything else.
    let request = CreateRequest {
        base: Base::Given(commit.clone()),
        mode: CreateMode::Exclusive,
        task: Some((list, task.id.to_string())),
        ..CreateRequest::new(Some(slug), agents.directory())
    };
    trees.create(&request)?;
    Ok(())
}

/// True if the result is on the branch already, according to the board and the branch together.
pub(super) fn is_there(
    board: &Board,
    task: &Task,
    trees: &Trees,
    into: &str,
) -> Result<bool, AgentError> {
    let result = task.result().unwrap_or_default();
    if has_landed(&result) {
        return Ok(true);
    }
    let begun = result.landed.as_ref().filter(|landed| landed.pending);
    let Some(landed) = begun.filter(|landed| landed.into == shown_branch(into)) else {
        return Ok(false);
    };
    let there =
        Some(&landed.commit) == result.commit.as_ref() && trees.is_on(into, &landed.as_commit)?;
    if there {
        note(board, task.id, &result, into, &landed.as_commit, false)?;
    }
    Ok(there)
}

/// Records on the board that a result will be on the branch as `as_commit`, or that it is.
pub(super) fn note(
    board: &Board,
    id: TaskId,
    result: &TaskResult,
    into: &str,
    as_commit: &str,
    pending: bool,
) -> Result<(), AgentError> {
    let landed = LandedAt {
        into: shown_branch(into).to_owned(),
        commit: result.commit.clone().unwrap_or_default(),
        as_commit: as_commit.to_owned(),
        pending,
    };
    let result = TaskResult {
        landed: Some(landed),
        undone: result.undone.filter(|_| pending),
        ..result.clone()
    };
    board.proved(id, &result)?;
    Ok(())
}

/// True if the board says that this very result has landed, on any machine.
pub fn has_landed(result: &TaskResult) -> bool {
    let landed = result.landed.as_ref().filter(|landed| !landed.pending);
    landed.is_some_and(|landed| Some(&landed.commit) == result.commit.as_ref())
}
