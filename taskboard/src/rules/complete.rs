//! Finishing a task.

use crate::caller::Caller;
use crate::error::{BoardError, Refusal};
use crate::facts::TaskResult;
use crate::id::TaskId;
use crate::rules::edit::{Update, check_open};
use crate::rules::index::Index;
use crate::rules::needs::Edited;
use crate::rules::ready::Dependencies;
use crate::task::{Status, Task};

/// The effect of completing a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// The completed task.
    pub task: Task,
    /// Tasks that can start now and could not before.
    pub unblocked: Vec<TaskId>,
    /// A reminder to verify, when the last task of a list was completed and none checked
    /// anything.
    pub nudge: Option<String>,
}

/// A list shorter than this needs no task of its own for checking.
const NUDGE_FROM: usize = 3;
const NUDGE: &str = "Every task on this list is completed and none of them was a check. Before you \
    report that the work is done, verify it: run the tests, or create a verification task and \
    have someone else do it.";

/// The rules of a completion.
pub(crate) fn check(index: &Index, task: &Task, caller: &Caller) -> Result<(), BoardError> {
    caller.check_token(task)?;
    if task.status == Status::Completed {
        return Err(BoardError::refused(task, Refusal::AlreadyResolved));
    }
    caller.check_owner(task)?;
    if let Some(reason) = task.parked().filter(|_| task.is_disputed()) {
        let reason = reason.to_owned();
        return Err(BoardError::refused(task, Refusal::Parked { reason }));
    }
    if let Some(trouble) = task.trouble().filter(|trouble| trouble.unclear) {
        let reason = format!("its metadata is unclear: {}", trouble.words);
        return Err(BoardError::refused(task, Refusal::Parked { reason }));
    }
    let open = index.open_blockers(task.id);
    if !open.is_empty() && !caller.force {
        return Err(BoardError::refused(task, Refusal::Blocked { by: open }));
    }
    Ok(())
}

/// The task as it is to be when it is completed, if the rules allow it.
pub(crate) fn finish(
    index: &Index,
    before: &Task,
    caller: &Caller,
    update: &Update,
    result: Option<&TaskResult>,
) -> Result<Edited, BoardError> {
    check(index, before, caller)?;
    let mut task = before.clone();
    let waits_for = update.link(index, &mut task)?;
    if !caller.force {
        check_open(before, waits_for)?;
    }
    update.edit(&mut task)?;
    if let Some(owner) = &update.owner {
        task.owner.clone_from(owner);
    }
    task.status = Status::Completed;
    task.end_lease();
    task.unpark();
    if result.is_some() {
        task.set_result(result);
    }
    Ok(Edited::new("complete", task))
}

/// The tasks that waited for `id` alone: it was open until now, so no task that waits for it could
/// start before.
pub(crate) fn unblocked(index: &Index, id: TaskId) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> = index
        .dependents(id)
        .filter(|id| index.may_start(*id))
        .collect();
    ids.sort_unstable();
    ids
}

/// The reminder to verify, if this was the last task.
pub(crate) fn nudge(index: &Index) -> Option<String> {
    if !index.all_completed() {
        return None;
    }
    let shown = index.iter().filter(|(_, slim)| !slim.internal).count();
    nudge_for(shown, index.iter().any(|(_, slim)| slim.checks))
}

/// The same for a list on which everything is completed: how many tasks it shows, and whether one
/// of all checks something.
pub(crate) fn nudge_for(shown: usize, checks: bool) -> Option<String> {
    (shown >= NUDGE_FROM && !checks).then(|| NUDGE.to_owned())
}
