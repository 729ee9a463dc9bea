//! The board as the director knows it: kept up to date by changes, so that looking at it costs
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use landing::is_workers;
use runs::progress::rests_until;
use taskboard::{Board, BoardError, Status, Task, TaskId};

use super::inputs::{TaskView, Tasks};

/// What is known of a board.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    pub(super) tasks: Tasks,
    pub(super) unreadable: BTreeSet<TaskId>,
    /// Those among them that could not be read for a reason that passes: they are looked at again.
    stale: BTreeSet<TaskId>,
    /// Tasks whose agents are lost over and over, and until when they are left alone.
    pub(super) rests: BTreeMap<TaskId, i64>,
}

impl Mirror {
    /// Looks at every task.
    pub(super) fn load(board: &Board) -> Result<Self, BoardError> {
        let snapshot = board.snapshot()?;
        let mut mirror = Self {
            unreadable: snapshot.unreadable().keys().copied().collect(),
            ..Self::default()
        };
        for task in snapshot.tasks() {
            mirror.put(task);
        }
        // Edges other tools made on one side only count all the same.
        for (blocker, dependent) in snapshot.half_edges() {
            if let Some(view) = mirror.tasks.get_mut(&dependent)
                && !view.blocked_by.contains(&blocker)
            {
                view.blocked_by.push(blocker);
            }
        }
        Ok(mirror)
    }

    pub(super) fn put(&mut self, task: &Task) {
        self.unreadable.remove(&task.id);
        self.stale.remove(&task.id);
        match rests_until(&task.attempts()) {
            Some(until) => self.rests.insert(task.id, until),
            None => self.rests.remove(&task.id),
        };
        // A worker's own task is nobody else's business, but it is at its files and counts as
        // one more at work.
        let at_work = is_workers(task) && task.status == Status::InProgress;
        if task.is_internal() && !at_work {
            self.tasks.remove(&task.id);
        } else {
            self.tasks.insert(task.id, TaskView::of(task));
        }
    }

    /// Looks at one task again.
    pub(super) fn refresh(&mut self, board: &Board, id: TaskId) {
        match board.get(id) {
            Ok(task) => self.put(&task),
            Err(BoardError::NotFound { .. }) => {
                self.tasks.remove(&id);
                self.unreadable.remove(&id);
                self.stale.remove(&id);
            }
            Err(error) => {
                tracing::warn!(%error, %id, "what depends on this task waits");
                self.tasks.remove(&id);
                self.unreadable.insert(id);
                if error.is_passing() {
                    self.stale.insert(id);
                }
            }
        }
    }

    /// Looks again at tasks that could not be read: nobody tells when a database answers again.
    /// Those that can be read now.
    pub(super) fn refresh_stale(&mut self, board: &Board) -> Vec<TaskId> {
        let mut read = Vec::new();
        while let Some(id) = self.stale.first().copied() {
            self.refresh(board, id);
            if self.stale.contains(&id) {
                break;
            }
            read.push(id);
        }
        read
    }
}
