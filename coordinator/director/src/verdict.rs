//! The result of a whole run, and the signal that interrupts it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The result of a whole run; the command line decides which exit code that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    // In order of precedence when several apply.
    /// It was interrupted by this signal; it can be resumed.
    Interrupted(u8),
    /// A bug.
    Internal,
    /// The provider's quota is exhausted; the run can be resumed.
    Quota,
    /// Money or time ran out; the run can be resumed.
    Budget,
    /// A task, an agent or a check failed.
    Failed,
    /// Everything is proven, but conflicts have still to be resolved.
    Conflicts,
    /// Everything succeeded.
    Done,
}

/// Returns the signal that arrived since the last call, if one did.
pub type Interrupted = Arc<dyn Fn() -> Option<u8> + Send + Sync>;
