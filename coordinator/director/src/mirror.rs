//! The director's copy of the board: changes update it, so that reading it costs nothing.

use std::collections::{BTreeMap, BTreeSet};

use landing::is_workers;
use runs::progress::rests_until;
use taskboard::{Board, BoardError, Status, Task, TaskId};

use super::inputs::{TaskView, Tasks};

/// The known tasks of a board.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    pub(super) tasks: Tasks,
    pub(super) unreadable: BTreeSet<TaskId>,
    /// The tasks among them that could not be read for a temporary reason: they are read again.
    stale: BTreeSet<TaskId>,
    /// Tasks whose agents are lost repeatedly, and until when they do not start.
    pub(super) rests: BTreeMap<TaskId, i64>,
}

impl Mirror {
    /// Reads every task.
    pub(super) fn load(board: &Board) -> Result<Self, BoardError> {
        let snapshot = board.snapshot()?;
        let mut mirror = Self {
            unreadable: snapshot.unreadable().keys().copied().collect(),
            ..Self::default()
        };
        for task in snapshot.tasks() {
            mirror.put(task);
        }
        // Edges that other tools wrote on one side only count too.
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
        // A worker's own task is invisible to other agents, but it reserves files and counts as one
        // more at work.
        let at_work = is_workers(task) && task.status == Status::InProgress;
        if task.is_internal() && !at_work {
            self.tasks.remove(&task.id);
        } else {
            self.tasks.insert(task.id, TaskView::of(task));
        }
    }

    /// Reads one task again.
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

    /// Reads again the tasks that could not be read: no event says when a database is available
    /// again. Returns those that can be read now.
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
