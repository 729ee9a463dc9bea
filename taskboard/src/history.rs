//! The numbered history of a list, as those who follow it read it.

use serde::Deserialize;
use serde_json::Value;

use crate::id::TaskId;

/// One numbered change of one task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Change {
    /// Counts up by one per change of the list.
    pub seq: u64,
    /// When it was written down, RFC 3339.
    pub ts: String,
    /// What was done: `create`, `claim`, `complete`, `delete`, …
    pub op: String,
    /// To which task.
    pub id: TaskId,
    /// The task afterwards; `None` when it was deleted.
    #[serde(default)]
    pub task: Option<Value>,
    /// It was made by another tool, or by a process that died at it.
    #[serde(default)]
    pub foreign: bool,
}

impl Change {
    /// As `watch --json` prints it.
    pub fn to_json(&self) -> Value {
        let mut line = serde_json::json!({
            "seq": self.seq, "ts": self.ts, "op": self.op, "id": self.id, "task": self.task,
        });
        if self.foreign {
            line["foreign"] = true.into();
        }
        line
    }
}
