//! Finishing a task.

use serde_json::Value;

use crate::board::{Board, Caller, Hooks};
use crate::error::{BoardError, Refusal};
use crate::id::TaskId;
use crate::snapshot::Snapshot;
use crate::task::{Status, Task};
use crate::txn::{ListDir, all_completed};
use crate::update::Update;

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
            let snapshot = self.snapshot()?;
            let shown = snapshot.require(id)?;
            check(&snapshot, shown, caller)?;
            let fingerprint = snapshot.entry(id).map(|entry| entry.fingerprint);
            let result = hooks
                .before_complete(shown)
                .map_err(|veto| BoardError::Vetoed {
                    reason: veto.reason,
                })?;
            match self.commit_completion(id, caller, update, fingerprint, result.as_ref()) {
                Err(BoardError::ChangedMeanwhile { .. }) if !last_try => {}
                outcome => return outcome,
            }
        }
        Err(BoardError::ChangedMeanwhile { id })
    }

    fn commit_completion(
        &self,
        id: TaskId,
        caller: &Caller,
        update: &Update,
        shown: Option<u64>,
        result: Option<&Value>,
    ) -> Result<Completed, BoardError> {
        self.transact(|txn| {
            let task = txn.snapshot.require(id)?;
            check(&txn.snapshot, task, caller)?;
            if shown.is_some() && txn.snapshot.entry(id).map(|e| e.fingerprint) != shown {
                return Err(BoardError::ChangedMeanwhile { id }.into());
            }
            let waiting = waiting_for(&txn.snapshot, id);
            let mut task = task.clone();
            update.edit(&mut task)?;
            task.status = Status::Completed;
            task.end_lease();
            task.set_ours("parked", None);
            if let Some(result) = result {
                task.set_ours("result", Some(result.clone()));
            }
            txn.write("complete", task.clone(), ListDir::Leave)?;
            let can_start = |id: &TaskId| {
                txn.snapshot
                    .get(*id)
                    .is_some_and(|task| txn.snapshot.can_start(task))
            };
            Ok(Completed {
                task,
                unblocked: waiting.into_iter().filter(can_start).collect(),
                nudge: nudge(&txn.snapshot),
            })
        })
    }
}

/// The rules of a completion.
fn check(snapshot: &Snapshot, task: &Task, caller: &Caller) -> Result<(), BoardError> {
    caller.check_token(task)?;
    if task.status == Status::Completed {
        return Err(BoardError::refused(task, Refusal::AlreadyResolved));
    }
    caller.check_owner(task)?;
    let open = snapshot.open_blockers(task.id);
    if !open.is_empty() && !caller.force {
        return Err(BoardError::refused(task, Refusal::Blocked { by: open }));
    }
    Ok(())
}

/// Dependents of `id` that cannot start yet.
fn waiting_for(snapshot: &Snapshot, id: TaskId) -> Vec<TaskId> {
    snapshot
        .dependents(id)
        .filter(|id| {
            snapshot
                .get(*id)
                .is_some_and(|task| !snapshot.can_start(task))
        })
        .collect()
}

fn nudge(snapshot: &Snapshot) -> Option<String> {
    let (done, count) = all_completed(snapshot);
    let checks = |task: &Task| {
        task.verify_command().is_some() || task.subject.to_lowercase().contains("verif")
    };
    let unchecked = !snapshot.tasks().any(checks);
    (done && count >= NUDGE_FROM && unchecked).then(|| NUDGE.to_owned())
}
