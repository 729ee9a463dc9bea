//! Changing a task that exists.

use serde_json::{Map, Value};

use crate::board::{Board, Caller, Hooks};
use crate::change::Edited;
use crate::claim::{Busy, ClaimRequest, LeaseTerm, check_claim, start};
use crate::complete::Completed;
use crate::error::{BoardError, Refusal};
use crate::graph::cycle_with;
use crate::id::TaskId;
use crate::index::Index;
use crate::intent::insert;
use crate::ready::Dependencies;
use crate::section::ListDir;
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
    /// More tasks that wait for this one.
    pub add_blocks: Vec<TaskId>,
    /// More tasks this one waits for.
    pub add_blocked_by: Vec<TaskId>,
    /// What ends the claim, where the new status is one.
    pub lease: Option<LeaseTerm>,
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
        if self.decides_check() {
            task.end_dispute();
        }
        task.merge_metadata(&self.metadata)
    }

    /// Adds the new edges to this task's side; says which of the new blockers are open.
    ///
    /// Both directions stand in the one file, so the change is still one rename. The other
    /// sides follow; until then everybody takes the union, and the next change of the board
    /// completes them.
    pub(crate) fn link(&self, index: &Index, task: &mut Task) -> Result<Vec<TaskId>, BoardError> {
        if self.add_blocks.is_empty() && self.add_blocked_by.is_empty() {
            return Ok(Vec::new());
        }
        let mut edges = index.edges();
        for (blocker, dependent) in self.edges(task.id) {
            for other in [blocker, dependent] {
                if index.get(other).is_none() {
                    return Err(BoardError::NotFound { id: other });
                }
            }
            if let Some(path) = cycle_with(&edges, blocker, dependent) {
                return Err(BoardError::Cycle { path });
            }
            edges.add_edge(blocker, dependent, ());
        }
        for dependent in &self.add_blocks {
            insert(&mut task.blocks, *dependent);
        }
        for blocker in &self.add_blocked_by {
            insert(&mut task.blocked_by, *blocker);
        }
        let open = self.add_blocked_by.iter().copied();
        Ok(open.filter(|blocker| index.is_open(*blocker)).collect())
    }

    /// The new edges of task `id`, as (blocker, dependent).
    fn edges(&self, id: TaskId) -> impl Iterator<Item = (TaskId, TaskId)> {
        let before = self.add_blocked_by.iter().map(move |other| (*other, id));
        before.chain(self.add_blocks.iter().map(move |other| (id, *other)))
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
        let waits_for = self.link(index, &mut task)?;
        let op = match self.status {
            Some(Status::InProgress) => {
                let agent = match &self.owner {
                    Some(Some(owner)) => owner.clone(),
                    _ => caller.agent.clone(),
                };
                let request = ClaimRequest {
                    lease: self.lease.clone(),
                    ..ClaimRequest::new(agent)
                };
                if !caller.force {
                    check_claim(index, before, &request, Busy::OwnsUnfinished)?;
                    check_open(before, waits_for)?;
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
                if before.parked().is_some() {
                    // Somebody has acted: what failed before does not count any more.
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
            let completed = self.complete_with(id, caller, hooks, update)?;
            self.complete_edges(id, update);
            return Ok(completed);
        }
        let now = self.now_ms();
        let task = self.edit(id, ListDir::Leave, |index, before| {
            update.apply(index, before, caller, now)
        })?;
        self.complete_edges(id, update);
        Ok(Completed {
            task,
            unblocked: Vec::new(),
            nudge: None,
        })
    }

    /// Writes the other sides of the new edges. They are made already, so whatever stops this
    /// is no failure of the change.
    fn complete_edges(&self, id: TaskId, update: &Update) {
        for (blocker, dependent) in update.edges(id) {
            if let Err(error) = self.block(blocker, dependent) {
                tracing::warn!(%blocker, %dependent, %error, "the next change completes this edge");
            }
        }
    }
}

/// Refuses what has just been made to wait.
pub(crate) fn check_open(task: &Task, by: Vec<TaskId>) -> Result<(), BoardError> {
    match by.is_empty() {
        true => Ok(()),
        false => Err(BoardError::refused(task, Refusal::Blocked { by })),
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
