//! A task and its worktree. The board keeps the name; the caller, which knows both, makes the
//! worktree name the task as well.

use crate::board::Board;
use crate::error::BoardError;
use crate::id::TaskId;
use crate::rules::claim::{Busy, ClaimRequest, check_claim, start};
use crate::rules::index::Index;
use crate::rules::needs::Edited;
use crate::rules::needs::Needs;
use crate::rules::ready::Dependencies;
use crate::task::{Status, Task, check_line};

/// The effect of binding a worktree to a task that can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin<'a> {
    /// This agent begins it, as if it had claimed it.
    By(&'a str),
    /// The task is in progress, without an owner.
    ByNobody,
    /// The task stays as it is: the worktree is prepared for another agent.
    NotYet,
}

impl Board {
    /// Records that task `id` is done in the worktree `name`. `begin` says what happens to a task
    /// that can start.
    pub fn bind_worktree(
        &self,
        id: TaskId,
        name: &str,
        begin: Begin<'_>,
    ) -> Result<Task, BoardError> {
        check_line("worktree", name)?;
        self.edit_ours(id, |index, before, now| {
            let mut task = before.clone();
            if index.can_start(id, task.status, task.parked().is_some()) {
                match begin {
                    Begin::By(agent) => {
                        let request = ClaimRequest::new(agent);
                        check_claim(index, before, &request, Busy::OwnsUnfinished)?;
                        start(&mut task, &request, now);
                    }
                    Begin::ByNobody => task.status = Status::InProgress,
                    Begin::NotYet => {}
                }
            }
            task.set_worktree(Some(name));
            Ok(task)
        })
    }

    /// Writes down that task `id` is no longer done in the worktree `name`.
    pub fn unbind_worktree(&self, id: TaskId, name: &str) -> Result<Task, BoardError> {
        self.edit_ours(id, |_, before, _| {
            let mut task = before.clone();
            if task.worktree() == Some(name) {
                task.set_worktree(None);
            }
            Ok(task)
        })
    }

    pub(super) fn edit_ours(
        &self,
        id: TaskId,
        mut edit: impl FnMut(&Index, &Task, i64) -> Result<Task, BoardError>,
    ) -> Result<Task, BoardError> {
        self.edit(id, &Needs::nothing(), |index, before, now| {
            Ok(Edited::new("update", edit(index, before, now)?))
        })
    }
}
