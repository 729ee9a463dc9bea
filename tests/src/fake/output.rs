//! The output of the agent.

use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::acp::Acp;
use crate::script::To;

/// The protocol of its output.
#[derive(Debug, Clone)]
pub(super) enum Output {
    Plain,
    Lines,
    Acp(Arc<Acp>),
}

impl Output {
    /// The ACP side, if it speaks ACP.
    pub(super) fn acp(&self) -> Option<&Acp> {
        match self {
            Self::Acp(acp) => Some(acp),
            _ => None,
        }
    }

    /// Prints bytes as they are.
    pub(super) fn raw(&self, to: To, bytes: &[u8]) -> io::Result<()> {
        match to {
            To::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
            To::Stderr => io::stderr().lock().write_all(bytes),
        }
    }

    fn line(&self, value: &Value) -> io::Result<()> {
        if !matches!(self, Self::Lines) {
            return Ok(());
        }
        self.raw(To::Stdout, format!("{value}\n").as_bytes())
    }

    pub(super) fn ready(&self, session: &str) -> io::Result<()> {
        self.line(&json!({ "type": "ready", "session": session, "model": "fake" }))
    }

    pub(super) fn say(&self, text: &str) -> io::Result<()> {
        if let Self::Acp(acp) = self {
            return acp.say(text);
        }
        if matches!(self, Self::Plain) {
            return self.raw(To::Stdout, format!("{text}\n").as_bytes());
        }
        self.line(&json!({ "type": "text", "text": text }))
    }

    pub(super) fn tool(&self, id: &str, name: &str, input: &Value) -> io::Result<()> {
        if let Self::Acp(acp) = self {
            return acp.tool(id, name, input);
        }
        self.line(&json!({ "type": "tool", "id": id, "name": name, "input": input }))
    }

    pub(super) fn tool_result(&self, id: &str, output: &str, error: bool) -> io::Result<()> {
        if let Self::Acp(acp) = self {
            return acp.tool_result(id, output, error);
        }
        self.line(&json!({ "type": "tool_result", "id": id, "output": output, "error": error }))
    }

    pub(super) fn accepted(&self, id: &str) -> io::Result<()> {
        if let Self::Acp(acp) = self {
            return acp.accepted(id);
        }
        self.line(&json!({ "type": "accepted", "id": id }))
    }

    pub(super) fn usage(&self, input: u64, output: u64, cost: f64) -> io::Result<()> {
        if let Self::Acp(acp) = self {
            acp.usage(input, output);
            return Ok(());
        }
        self.line(&json!({
            "type": "usage", "inputTokens": input, "outputTokens": output, "costUsd": cost,
        }))
    }

    pub(super) fn stalled(&self, why: &str) -> io::Result<()> {
        self.line(&json!({ "type": "stalled", "why": why }))
    }

    pub(super) fn ask(&self, id: &str, tool: &str, input: &Value) -> io::Result<()> {
        if let Self::Acp(acp) = self {
            return acp.ask(id, tool, input);
        }
        self.line(&json!({ "type": "permission", "id": id, "tool": tool, "input": input }))
    }

    pub(super) fn mode(&self, mode: &str, error: Option<&str>) -> io::Result<()> {
        self.line(&json!({ "type": "mode", "mode": mode, "error": error }))
    }

    pub(super) fn result(&self, status: &str, text: &str, error: Option<&str>) -> io::Result<()> {
        if let Self::Acp(acp) = self {
            return acp.result(status, text, error);
        }
        if matches!(self, Self::Plain) && !text.is_empty() {
            return self.raw(To::Stdout, format!("{text}\n").as_bytes());
        }
        self.line(&json!({ "type": "result", "status": status, "text": text, "error": error }))
    }
}
