//! What the agent prints.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::script::To;

/// How it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Plain,
    Lines,
}

impl Output {
    /// Prints bytes as they are.
    pub(super) fn raw(self, to: To, bytes: &[u8]) -> io::Result<()> {
        match to {
            To::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
            To::Stderr => io::stderr().lock().write_all(bytes),
        }
    }

    fn line(self, value: &Value) -> io::Result<()> {
        if self == Self::Plain {
            return Ok(());
        }
        self.raw(To::Stdout, format!("{value}\n").as_bytes())
    }

    pub(super) fn ready(self, session: &str) -> io::Result<()> {
        self.line(&json!({ "type": "ready", "session": session, "model": "fake" }))
    }

    pub(super) fn say(self, text: &str) -> io::Result<()> {
        if self == Self::Plain {
            return self.raw(To::Stdout, format!("{text}\n").as_bytes());
        }
        self.line(&json!({ "type": "text", "text": text }))
    }

    pub(super) fn tool(self, id: &str, name: &str, input: &Value) -> io::Result<()> {
        self.line(&json!({ "type": "tool", "id": id, "name": name, "input": input }))
    }

    pub(super) fn tool_result(self, id: &str, output: &str, error: bool) -> io::Result<()> {
        self.line(&json!({ "type": "tool_result", "id": id, "output": output, "error": error }))
    }

    pub(super) fn accepted(self, id: &str) -> io::Result<()> {
        self.line(&json!({ "type": "accepted", "id": id }))
    }

    pub(super) fn usage(self, input: u64, output: u64, cost: f64) -> io::Result<()> {
        self.line(&json!({
            "type": "usage", "inputTokens": input, "outputTokens": output, "costUsd": cost,
        }))
    }

    pub(super) fn stalled(self, why: &str) -> io::Result<()> {
        self.line(&json!({ "type": "stalled", "why": why }))
    }

    pub(super) fn ask(self, id: &str, tool: &str, input: &Value) -> io::Result<()> {
        self.line(&json!({ "type": "permission", "id": id, "tool": tool, "input": input }))
    }

    pub(super) fn mode(self, mode: &str, error: Option<&str>) -> io::Result<()> {
        self.line(&json!({ "type": "mode", "mode": mode, "error": error }))
    }

    pub(super) fn result(self, status: &str, text: &str, error: Option<&str>) -> io::Result<()> {
        if self == Self::Plain && !text.is_empty() {
            return self.raw(To::Stdout, format!("{text}\n").as_bytes());
        }
        self.line(&json!({ "type": "result", "status": status, "text": text, "error": error }))
    }
}
