//! Changing, linking and deleting tasks that exist.

use crate::board::Board;
use crate::caller::Caller;
use crate::error::BoardError;
use crate::hooks::Hooks;
use crate::id::TaskId;
use crate::rules::complete::Completed;
use crate::rules::edit::Update;
use crate::rules::index::Index;
use crate::rules::needs::{Edited, Needs};
use crate::task::{Status, Task};

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
        let agent = update.owner.as_ref().and_then(Option::as_ref);
        let agent = agent.unwrap_or(&caller.agent);
        let needs = Needs {
            edges: update.edges(id).collect(),
            ..Needs::busy(update.one_at_a_time, agent)
        };
        let task = self.edit(id, &needs, |index, before, now| {
            update.apply(index, before, caller, now)
        })?;
        Ok(Completed {
            task,
            unblocked: Vec::new(),
            nudge: None,
        })
    }

    /// Makes `dependent` wait for `blocker`. Returns the dependent.
    pub fn block(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.backend.block(blocker, dependent)
    }

    /// Makes `dependent` no longer wait for `blocker`. Returns the dependent.
    ///
    /// The blocker may be gone already; the dependent must be there.
    pub fn unblock(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.backend.unblock(blocker, dependent)
    }

    /// Deletes a task and every mention of it. Returns what it was.
    pub fn delete(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        self.backend.delete(id, caller)
    }

    /// Deletes all tasks; later ids continue where they were. Returns how many there were.
    ///
    /// Refused while a task is in progress or a file is unreadable, unless forced; with
    /// force, unreadable files are set aside, not deleted.
    pub fn reset(&self, force: bool) -> Result<usize, BoardError> {
        self.backend.reset(force)
    }

    /// Changes task `id` as `edit` says, which is called again before the change is made.
    pub(super) fn edit(
        &self,
        id: TaskId,
        needs: &Needs<'_>,
        edit: impl FnMut(&Index, &Task, i64) -> Result<Edited, BoardError>,
    ) -> Result<Task, BoardError> {
        self.backend.edit(id, needs, &mut self.for_others(edit))
    }

    /// The same change with secrets taken out of the task.
    pub(super) fn for_others(
        &self,
        mut edit: impl FnMut(&Index, &Task, i64) -> Result<Edited, BoardError>,
    ) -> impl FnMut(&Index, &Task, i64) -> Result<Edited, BoardError> {
        move |index, before, now_ms| {
            let mut edited = edit(index, before, now_ms)?;
            edited.task.remove_secrets(&self.secret_filter);
            Ok(edited)
        }
    }
}
