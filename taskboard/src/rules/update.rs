//! The rules for a change of a task that exists.

use crate::caller::Caller;
use crate::error::{BoardError, Refusal};
use crate::rules::claim::{Busy, ClaimRequest, check_claim, start};
use crate::rules::edit::{Update, check_open};
use crate::rules::index::Index;
use crate::rules::needs::Edited;
use crate::task::{Status, Task};

impl Update {
    /// The task's new state, if the rules allow it.
    pub(crate) fn apply(
        &self,
        index: &Index,
        before: &Task,
        caller: &Caller,
        now_ms: i64,
    ) -> Result<Edited, BoardError> {
        caller.check_token(before)?;
        let mut task = before.clone();
        let waits_for = self.link(index, &mut task)?;
        let op = match self.status {
            Some(Status::InProgress) => {
                let agent = match &self.owner {
                    Some(Some(owner)) => owner.clone(),
                    _ => caller.agent.clone(),
                };
                let request = ClaimRequest {
                    lease: self.lease.clone(),
                    check_busy: self.one_at_a_time,
                    ..ClaimRequest::new(agent)
                };
                if !caller.force {
                    check_claim(index, before, &request, Busy::IsWorking)?;
                    check_open(before, waits_for)?;
                }
                start(&mut task, &request, now_ms);
                "claim"
            }
            Some(Status::Pending) => {
                // A completed task has no owner any more; any caller may open it again.
                if before.status != Status::Completed {
                    caller.check_owner(before)?;
                }
                task.make_pending();
                if before.parked().is_some() {
                    // A caller has acted: earlier failures do not count any more.
                    task.forget_attempts();
                }
                task.owner = self.owner.clone().flatten();
                "release"
            }
            _ => change_owner(&mut task, self, caller)?,
        };
        self.edit(&mut task)?;
        Ok(Edited { op, task })
    }
}

/// Assigns, gives back or leaves alone, as `update.owner` says.
fn change_owner(
    task: &mut Task,
    update: &Update,
    caller: &Caller,
) -> Result<&'static str, BoardError> {
    let Some(new) = &update.owner else {
        return Ok("update");
    };
    if *new == task.owner {
        return Ok("update");
    }
    if task.status == Status::Completed && !caller.force {
        return Err(BoardError::refused(task, Refusal::AlreadyResolved));
    }
    caller.check_owner(task)?;
    match (new, task.status) {
        (_, Status::Completed) => task.owner.clone_from(new),
        (None, _) => {
            task.make_pending();
            return Ok("release");
        }
        // Taken from an agent that was working on it: the new owner has not begun.
        (Some(_), Status::InProgress) if task.owner.is_some() => {
            task.make_pending();
            task.owner.clone_from(new);
        }
        (Some(_), _) => task.owner.clone_from(new),
    }
    Ok("assign")
}
