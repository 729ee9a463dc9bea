//! What the engine keeps with a task: how attempts at it went. Nobody else sets it.

use serde_json::Value;

use crate::board::Board;
use crate::error::BoardError;
use crate::id::TaskId;
use crate::task::Task;

/// Where attempts are kept in `metadata.ccb`.
const ATTEMPTS: &str = "attempts";
/// How many are kept; the last ones count.
const MOST: usize = 8;

impl Task {
    /// What is noted about attempts at it, oldest first.
    pub fn attempts(&self) -> &[Value] {
        self.ours(ATTEMPTS)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }
}

impl Board {
    /// Adds `attempt` to what is noted about attempts at task `id`, unless one with the same
    /// `run` is: whoever notes it may have died before it could say so.
    pub fn note_attempt(&self, id: TaskId, attempt: &Value) -> Result<Task, BoardError> {
        self.edit_ours(id, |_, before| {
            let mut task = before.clone();
            let mut all = before.attempts().to_vec();
            let known = |one: &Value| one.get("run") == attempt.get("run");
            if !all.iter().any(known) {
                all.push(attempt.clone());
                all.drain(..all.len().saturating_sub(MOST));
                task.set_ours(ATTEMPTS, Some(all.into()));
            }
            Ok(task)
        })
    }

    /// Forgets all attempts at task `id`: something has changed that they did not know of.
    pub fn forget_attempts(&self, id: TaskId) -> Result<Task, BoardError> {
        self.edit_ours(id, |_, before| {
            let mut task = before.clone();
            task.set_ours(ATTEMPTS, None);
            Ok(task)
        })
    }
}
