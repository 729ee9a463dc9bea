//! Changing a task that exists.

use serde_json::{Map, Value};

use crate::board::{Board, Caller, Hooks};
use crate::claim::{ClaimRequest, check_claim, start};
use crate::complete::Completed;
use crate::error::{BoardError, Refusal};
use crate::id::TaskId;
use crate::snapshot::Snapshot;
use crate::task::{Status, Task, check_description, check_line};
use crate::txn::ListDir;

/// What is to change; everything left out stays.
#[derive(Debug, Clone, Default)]
pub struct Update {
    /// A new subject.
    pub subject: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// A new activity text; the inner `None` removes it.
    pub active_form: Option<Option<String>>,
    /// A new owner; the inner `None` gives the task back.
    pub owner: Option<Option<String>>,
    /// A new status. `in_progress` is a claim, `completed` a completion, with their rules.
    pub status: Option<Status>,
    /// Merged into the metadata; `null` removes a key.
    pub metadata: Map<String, Value>,
}

impl Update {
    fn check(&self) -> Result<(), BoardError> {
        if let Some(subject) = &self.subject {
            check_line("subject", subject)?;
        }
        if let Some(description) = &self.description {
            check_description(description)?;
        }
        if let Some(Some(text)) = &self.active_form {
            check_line("active form", text)?;
        }
        if let Some(Some(owner)) = &self.owner {
            check_line("owner", owner)?;
        }
        Ok(())
    }

    /// Makes the changes that have no rules of their own.
    pub(crate) fn edit(&self, task: &mut Task) -> Result<(), BoardError> {
        if let Some(subject) = &self.subject {
            task.subject.clone_from(subject);
        }
        if let Some(description) = &self.description {
            task.description.clone_from(description);
        }
        if let Some(active_form) = &self.active_form {
            task.active_form.clone_from(active_form);
        }
        task.merge_metadata(&self.metadata)
    }
}

impl Board {
    /// Changes task `id` in one step. The completion's answer is given where it completed.
    pub fn update(
        &self,
        id: TaskId,
        update: &Update,
        caller: &Caller,
        hooks: Option<&dyn Hooks>,
    ) -> Result<Completed, BoardError> {
        update.check()?;
        if update.status == Some(Status::Completed) {
            let caller = match &update.owner {
                Some(Some(owner)) => Caller {
                    agent: owner.clone(),
                    ..caller.clone()
                },
                _ => caller.clone(),
            };
            return self.complete_with(id, &caller, hooks, update);
        }
        self.transact(|txn| {
            let task = txn.snapshot.require(id)?;
            caller.check_token(task)?;
            let mut task = task.clone();
            let op = match update.status {
                Some(Status::InProgress) => {
                    let agent = match &update.owner {
                        Some(Some(owner)) => owner.clone(),
                        _ => caller.agent.clone(),
                    };
                    let request = ClaimRequest::new(agent);
                    if !caller.force {
                        check_claim(&txn.snapshot, id, &request)?;
                    }
                    start(&mut task, &request, txn.board.now_ms());
                    "claim"
                }
                Some(Status::Pending) => {
                    // A completed task is nobody's any more; anyone may open it again.
                    if task.status != Status::Completed {
                        caller_may_move(&task, update, caller)?;
                    }
                    task.make_pending();
                    task.owner = update.owner.clone().flatten();
                    "release"
                }
                _ => change_owner(&txn.snapshot, &mut task, update, caller)?,
            };
            update.edit(&mut task)?;
            txn.write(op, task.clone(), ListDir::Leave)?;
            Ok(Completed {
                task,
                unblocked: Vec::new(),
                nudge: None,
            })
        })
    }
}

/// Assigns, gives back or leaves alone, as `update.owner` says.
fn change_owner(
    snapshot: &Snapshot,
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
    let before = snapshot.require(task.id)?;
    if task.status == Status::Completed && !caller.force {
        return Err(BoardError::refused(before, Refusal::AlreadyResolved));
    }
    caller_may_move(before, update, caller)?;
    match (new, task.status) {
        (_, Status::Completed) => task.owner.clone_from(new),
        (None, _) => {
            task.make_pending();
            return Ok("release");
        }
        // Taken from somebody who was working on it: the new owner has not begun.
        (Some(_), Status::InProgress) if task.owner.is_some() => {
            task.make_pending();
            task.owner.clone_from(new);
        }
        (Some(_), _) => task.owner.clone_from(new),
    }
    Ok("assign")
}

/// Only the owner moves a task away from itself, unless the caller insists.
fn caller_may_move(task: &Task, update: &Update, caller: &Caller) -> Result<(), BoardError> {
    let to_itself = update.owner.as_ref().is_some_and(|new| *new == task.owner);
    if to_itself {
        Ok(())
    } else {
        caller.check_owner(task)
    }
}
