//! Finishing a task.

use crate::board::{Board, Caller, Hooks};
use crate::change::Change;
use crate::edit::{Update, check_open};
use crate::error::{BoardError, Refusal};
use crate::facts::TaskResult;
use crate::id::TaskId;
use crate::index::Index;
use crate::prepared::Edited;
use crate::ready::Dependencies;
use crate::section::{ListDir, Section};
use crate::snapshot::Entry;
use crate::task::{Status, Task};

/// What completing a task brought about.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// As it is now.
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

impl Board {
    /// Completes task `id`, asking `hooks` first.
    pub fn complete(
        &self,
        id: TaskId,
        caller: &Caller,
        hooks: Option<&dyn Hooks>,
    ) -> Result<Completed, BoardError> {
        self.complete_with(id, caller, hooks, &Update::default())
    }

    /// Completes task `id` and makes the changes of `update` in the same step.
    pub(crate) fn complete_with(
        &self,
        id: TaskId,
        caller: &Caller,
        hooks: Option<&dyn Hooks>,
        update: &Update,
    ) -> Result<Completed, BoardError> {
        let Some(hooks) = hooks else {
            return self.commit_completion(id, caller, update, None, None);
        };
        // The hook must have seen exactly what is completed. Others may edit the task while
        // it runs; then it is asked once more about the new version.
        for last_try in [false, true] {
            // In a lock section, so that the same rules meet the same board as without hooks:
            // expired leases are returned and interrupted changes finished.
            let shown = self.completable(id, caller)?;
            let result = hooks.before_complete(&shown.task)?;
            match self.commit_completion(
                id,
                caller,
                update,
                Some(shown.fingerprint),
                result.as_ref(),
            ) {
                Err(BoardError::ChangedMeanwhile { .. }) if !last_try => {}
                outcome => return outcome,
            }
        }
        Err(BoardError::ChangedMeanwhile { id })
    }

    /// The task as it is now, if the rules allow `caller` to complete it.
    fn completable(&self, id: TaskId, caller: &Caller) -> Result<Entry, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(shown) = self.completable_in_tables(id, caller) {
            return shown;
        }
        self.section(|section| {
            let shown = section.read(id)?;
            check(section.index(), &shown.task, caller)?;
            Ok(shown)
        })
    }

    fn commit_completion(
        &self,
        id: TaskId,
        caller: &Caller,
        update: &Update,
        shown: Option<u64>,
        result: Option<&TaskResult>,
    ) -> Result<Completed, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.complete_in_tables(id, caller, update, shown, result) {
            return done;
        }
        let completed = self.change(Change {
            list: ListDir::Leave,
            choose: |section: &mut Section<'_>| {
                let before = section.read(id)?;
                if shown.is_some_and(|shown| shown != before.fingerprint) {
                    return Ok(Err(BoardError::ChangedMeanwhile { id }));
                }
                Ok(Ok(before))
            },
            edit: |index: &Index, task: &Task, _: i64| finish(index, task, caller, update, result),
            then: |index: &Index| (unblocked(index, id), nudge(index)),
        })?;
        let (task, (unblocked, nudge)) = completed?;
        Ok(Completed {
            task,
            unblocked,
            nudge,
        })
    }
}

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

/// What waited for `id` alone: it was open until now, so nothing that waits for it could
/// start before.
fn unblocked(index: &Index, id: TaskId) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> = index
        .dependents(id)
        .filter(|id| index.may_start(*id))
        .collect();
    ids.sort_unstable();
    ids
}

fn nudge(index: &Index) -> Option<String> {
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
