//! What a whole run comes to, and what a person may do to it meanwhile.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a whole run came to; which exit code that is, is up to the command line.
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
