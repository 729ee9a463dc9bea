//! Changing a task that exists.

use serde_json::{Map, Value};

use crate::board::{Board, Caller, Hooks};
use crate::change::{Change, Edited};
use crate::claim::{Busy, ClaimRequest, check_claim, start};
use crate::complete::Completed;
use crate::error::{BoardError, Refusal};
use crate::id::TaskId;
use crate::index::Index;
use crate::section::{ListDir, Section};
use crate::task::{Status, Task, check_description, check_line};

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

    /// What the task is to be, if the rules allow it.
    fn apply(
        &self,
        index: &Index,
        before: &Task,
        caller: &Caller,
        now_ms: i64,
    ) -> Result<Edited, BoardError> {
        caller.check_token(before)?;
        let mut task = before.clone();
        let op = match self.status {
            Some(Status::InProgress) => {
                let agent = match &self.owner {
                    Some(Some(owner)) => owner.clone(),
                    _ => caller.agent.clone(),
                };
                let request = ClaimRequest::new(agent);
                if !caller.force {
                    check_claim(index, before, &request, Busy::OwnsUnfinished)?;
                }
                start(&mut task, &request, now_ms);
                "claim"
            }
            Some(Status::Pending) => {
                // A completed task is nobody's any more; anyone may open it again.
                if before.status != Status::Completed {
                    caller.check_owner(before)?;
                }
                task.make_pending();
                task.owner = self.owner.clone().flatten();
                "release"
            }
            _ => change_owner(&mut task, self, caller)?,
        };
        self.edit(&mut task)?;
        Ok(Edited { op, task })
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
            return self.complete_with(id, caller, hooks, update);
        }
        let now = self.now_ms();
        let changed = self.change(Change {
            list: ListDir::Leave,
            choose: |section: &mut Section<'_>| Ok(Ok::<_, BoardError>(section.read(id)?)),
            edit: |index: &Index, before: &Task| update.apply(index, before, caller, now),
            then: |_: &Index| (),
        })?;
        let (task, ()) = changed?;
        Ok(Completed {
            task,
            unblocked: Vec::new(),
            nudge: None,
        })
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
        // Taken from somebody who was working on it: the new owner has not begun.
        (Some(_), Status::InProgress) if task.owner.is_some() => {
            task.make_pending();
            task.owner.clone_from(new);
        }
        (Some(_), _) => task.owner.clone_from(new),
    }
    Ok("assign")
}
