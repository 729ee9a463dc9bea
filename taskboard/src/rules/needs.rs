//! One change of one task, as every backend carries it out.

use crate::error::BoardError;
use crate::id::TaskId;
use crate::rules::index::Index;
use crate::task::Task;

/// Checks the rules, given the board, the task and the time in ms, and says what the task is to be.
/// A backend may call it again before it makes the change.
pub(crate) type Edit<'a> = &'a mut dyn FnMut(&Index, &Task, i64) -> Result<Edited, BoardError>;

/// What a change makes of a task.
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

/// What an edit has to know besides the task and what it waits for. Files are in the index anyway; a
/// database is asked for it.
#[derive(Debug, Default)]
pub(crate) struct Needs<'a> {
    /// Everything unfinished that this agent has. Nothing of it may change meanwhile.
    pub(crate) agent: Option<&'a str>,
    /// Edges that are to be made, as (blocker, dependent). The backend writes both sides.
    pub(crate) edges: Vec<(TaskId, TaskId)>,
}

impl<'a> Needs<'a> {
    /// Nothing else.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// Whether `agent` is busy, if that is to be checked.
    pub(crate) fn busy(check: bool, agent: &'a str) -> Self {
        Self {
            agent: check.then_some(agent),
            edges: Vec::new(),
        }
    }
}
