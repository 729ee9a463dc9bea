//! The numbered history of a list, as its followers read it.

use serde::Deserialize;
use serde_json::Value;

use crate::id::TaskId;

/// One numbered change of one task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Change {
    /// Counts up by one per change of the list.
    pub seq: u64,
    /// The time when it was logged, RFC 3339.
    pub ts: String,
    /// The operation: `create`, `claim`, `complete`, `delete`, …
    pub op: String,
    /// To which task.
    pub id: TaskId,
    /// The task afterwards; `None` when it was deleted.
    #[serde(default)]
    pub task: Option<Value>,
    /// True if another tool made it, or a process that died before logging it.
    #[serde(default)]
    pub foreign: bool,
}

impl Change {
    /// The change as `watch --json` prints it.
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
