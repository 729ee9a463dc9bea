//! The result of a whole run, and the signal that interrupts it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The result of a whole run; the command line decides which exit code that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    // In the order in which the first one counts when there are several.
    /// It was interrupted by this signal; it can be resumed.
    Interrupted(u8),
    /// A bug.
    Internal,
    /// The provider gives no more; it can be resumed.
    Quota,
    /// Money or time ran out; it can be resumed.
    Budget,
    /// A task, an agent or a check failed.
    Failed,
    /// Everything is proven, but conflicts are left to land.
    Conflicts,
    /// All is well.
    Done,
}

/// Says which signal has come since it was last asked.
pub type Interrupted = Arc<dyn Fn() -> Option<u8> + Send + Sync>;
