//! The messages between our loop and its host after the first line ([`Opening`](super::Opening)):
//! the lines of `runtime::lines`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarm::runtime::Usage;
use uuid::Uuid;

/// A message of the host after the first line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Told {
    Message {
        id: Uuid,
        text: String,
        #[serde(default)]
        now: bool,
    },
    Interrupt,
    Permission {
        id: String,
        allow: bool,
        #[serde(default)]
        reason: Option<String>,
    },
    Mode {
        mode: String,
    },
    Stop,
}

/// A message of the loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Say {
    Ready {
        session: String,
        model: String,
    },
    Text {
        text: String,
    },
    Tool {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        id: String,
        output: String,
        error: bool,
    },
    Accepted {
        id: Uuid,
    },
    Usage(Usage),
    Permission {
        id: String,
        tool: String,
        input: Value,
    },
    Mode {
        mode: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    Stalled {
        why: String,
    },
    Result {
        status: &'static str,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}
