//! Wanting a run to end: `stop.json`, and a ring.

use serde::{Deserialize, Serialize};
use store::atomic::Durability;

use super::run_dir::{RunDir, RunError, json};

/// A request to end the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StopRequest {
    /// The life of the run.
    pub life: u32,
    /// The name of the caller.
    pub by: String,
    /// Since when, RFC 3339.
    pub at: String,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Maximum time for the run to end by itself, in milliseconds.
    pub grace_ms: u64,
}

impl RunDir {
    /// Asks for the run to end. Its supervisor ends it; if it has none any more, it at least counts
    /// as stopped and not as lost.
    pub fn ask_to_stop(&self, request: &StopRequest) -> Result<(), RunError> {
        self.write("stop.json", &json(request)?, Durability::Ordered)?;
        self.ring();
        Ok(())
    }

    /// The request to end this life of the run; `None` if there is none.
    pub fn stop_request(&self, life: u32) -> Result<Option<StopRequest>, RunError> {
        let request: Option<StopRequest> = self.read("stop.json")?;
        Ok(request.filter(|request| request.life == life))
    }
}
