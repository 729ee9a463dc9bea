//! Wanting a run to end: `stop.json`, and a ring.

use serde::{Deserialize, Serialize};
use store::atomic::Durability;

use super::run_dir::{RunDir, RunError, json};

/// Somebody wants the run to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StopRequest {
    /// Which life.
    pub life: u32,
    /// Who wants it.
    pub by: String,
    /// Since when, RFC 3339.
    pub at: String,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it may take to end by itself.
    pub grace_ms: u64,
}

impl RunDir {
    /// Asks for the run to end. Whoever supervises it sees to it; if nobody does any more, it
    /// at least counts as stopped and not as lost.
    pub fn ask_to_stop(&self, request: &StopRequest) -> Result<(), RunError> {
        self.write("stop.json", &json(request)?, Durability::Ordered)?;
        self.ring();
        Ok(())
    }

    /// Whether somebody wants this life of the run to end.
    pub fn stop_request(&self, life: u32) -> Result<Option<StopRequest>, RunError> {
        let request: Option<StopRequest> = self.read("stop.json")?;
        Ok(request.filter(|request| request.life == life))
    }
}
