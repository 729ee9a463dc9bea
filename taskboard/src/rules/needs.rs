//! One change of one task, as every backend carries it out.

use crate::error::BoardError;
use crate::id::TaskId;
use crate::rules::index::Index;
use crate::task::Task;

/// Checks the rules, given the board, the task and the time in ms, and says what the task is to be.
/// A backend may call it again before it makes the change.
pub(crate) type Edit<'a> = &'a mut dyn FnMut(&Index, &Task, i64) -> Result<Edited, BoardError>;

/// The result of a change of a task.
pub(crate) struct Edited {
    /// For the history.
    pub(crate) op: &'static str,
    pub(crate) task: Task,
}

impl Edited {
    pub(crate) fn new(op: &'static str, task: Task) -> Self {
        Self { op, task }
    }
}

/// The facts that an edit needs besides the task and its blockers. With files they are in the index
/// anyway; a database is asked for them.
#[derive(Debug, Default)]
pub(crate) struct Needs<'a> {
    /// The agent whose unfinished tasks must not change meanwhile; `None` if that does not matter.
    pub(crate) agent: Option<&'a str>,
    /// Edges that are to be made, as (blocker, dependent). The backend writes both sides.
    pub(crate) edges: Vec<(TaskId, TaskId)>,
}

impl<'a> Needs<'a> {
    /// Nothing else.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// True if `agent` is busy, if that is to be checked.
    pub(crate) fn busy(check: bool, agent: &'a str) -> Self {
        Self {
            agent: check.then_some(agent),
            edges: Vec::new(),
        }
    }
}
