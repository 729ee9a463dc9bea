//! The messages of an agent about a turn that is under way.

use std::collections::HashMap;

use serde_json::Value;

use super::super::translator::{Step, Steps};
use super::super::{Event, Usage};

/// Text is passed on in pieces of about this size, if nothing else ends one.
const PIECE: usize = 32 * 1024;
/// Maximum tool calls of a turn that are remembered.
const CALLS: usize = 4096;

/// A turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// True if we asked for it to be broken off.
    pub interrupted: bool,
    /// The usage so far, as far as single calls report it.
    pub used: Usage,
    /// The model's text that was not passed on yet.
    saying: String,
    /// The model's last text.
    said: String,
    /// The id of the message that is being sent.
    message: Option<String>,
    calls: HashMap<String, Call>,
}

/// A use of a tool.
#[derive(Debug, Default)]
struct Call {
    name: Option<String>,
    input: Value,
    begun: bool,
    done: bool,
}

impl Turn {
    /// Takes in a `session/update`.
    pub(super) fn update(&mut self, update: &Value, steps: &mut Steps) {
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => self.chunk(update, steps),
            Some("tool_call" | "tool_call_update") => self.tool(update, steps),
            _ => {}
        }
        self.used.add(&usage(&update["_meta"]["usage"]));
    }

    fn chunk(&mut self, update: &Value, steps: &mut Steps) {
        let message = update["messageId"].as_str();
        if message.is_some() && message != self.message.as_deref() {
            self.flush(steps);
            self.message = message.map(str::to_owned);
        }
        self.saying
            .push_str(update["content"]["text"].as_str().unwrap_or_default());
        if self.saying.len() > PIECE {
            self.flush(steps);
        }
    }

    /// Passes on what was said.
    pub(super) fn flush(&mut self, steps: &mut Steps) {
        if !self.saying.is_empty() {
            self.said = std::mem::take(&mut self.saying);
            steps.push(Step::Event(Event::Text(self.said.clone())));
        }
    }

    /// The model's last text.
    pub(super) fn text(self) -> String {
        self.said
    }

    /// Takes in news about a tool call; it may be the first of it.
    fn tool(&mut self, update: &Value, steps: &mut Steps) {
        self.flush(steps);
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let status = update["status"].as_str().unwrap_or("pending");
        if status != "pending" {
            self.begin(update, steps);
        } else {
            self.learn(id, update);
        }
        let call = self.call(id);
        if matches!(status, "completed" | "failed") && !call.done {
            call.done = true;
            steps.push(Step::Event(Event::ToolResult {
                id: id.to_owned(),
                output: output(update),
                is_error: status == "failed",
            }));
        }
    }

    /// Notes a call that is under way, or that asks for permission.
    pub(super) fn begin(&mut self, update: &Value, steps: &mut Steps) -> (String, Value) {
        self.flush(steps);
        let id = update["toolCallId"].as_str().unwrap_or_default();
        self.learn(id, update);
        let call = self.call(id);
        let name = call.name.clone().unwrap_or_else(|| "tool".into());
        if !std::mem::replace(&mut call.begun, true) {
            steps.push(Step::Event(Event::ToolUse {
                id: id.to_owned(),
                name: name.clone(),
                input: call.input.clone(),
            }));
        }
        (name, call.input.clone())
    }

    /// Notes that the call was not allowed. Not all agents report that themselves.
    pub(super) fn deny(&mut self, id: &str, reason: Option<String>, steps: &mut Steps) {
        self.call(id).done = true;
        steps.push(Step::Event(Event::ToolResult {
            id: id.to_owned(),
            output: reason.unwrap_or_else(|| "not allowed".into()),
            is_error: true,
        }));
    }

    /// The name comes with the first news of a call, its arguments often only later.
    fn learn(&mut self, id: &str, update: &Value) {
        let name = tool_name(id, update);
        let call = self.call(id);
        if call.name.is_none() {
            call.name = name;
        }
        match &update["rawInput"] {
            Value::Null => {}
            input => call.input = input.clone(),
        }
        if call.input.is_null()
            && let Some(title) = update["title"].as_str()
        {
            call.input = serde_json::json!({ "title": title });
        }
    }

    fn call(&mut self, id: &str) -> &mut Call {
        if self.calls.len() >= CALLS && !self.calls.contains_key(id) {
            self.calls.clear();
        }
        self.calls.entry(id.to_owned()).or_default()
    }
}

/// Agents put a tool's name in different places, and a title for people in front.
fn tool_name(id: &str, update: &Value) -> Option<String> {
    if let Some(name) = update["_meta"]["toolName"].as_str() {
        return Some(name.to_owned());
    }
    // gemini: `run_shell_command__fc9f8389d5`.
    if let Some((name, _)) = id.rsplit_once("__")
        && !name.is_empty()
    {
        return Some(name.to_owned());
    }
    let is_word = |title: &&str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        !title.is_empty() && title.bytes().all(is_part)
    };
    let title = update["title"].as_str().filter(is_word);
    let name = title.or_else(|| update["kind"].as_str());
    name.map(str::to_owned)
}

/// The answer of a tool, as text.
fn output(update: &Value) -> String {
    let content = update["content"].as_array().into_iter().flatten();
    let texts: Vec<String> = content
        .map(|block| match block["content"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!("[{}]", block["type"].as_str().unwrap_or("something")),
        })
        .collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    match &update["rawOutput"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other["output"]
            .as_str()
            .map_or_else(|| other.to_string(), str::to_owned),
    }
}

/// Tokens in one of the shapes agents use.
pub(super) fn usage(value: &Value) -> Usage {
    let number = |key: &str| value[key].as_u64().unwrap_or(0);
    Usage {
        input_tokens: number("inputTokens").saturating_add(number("input_tokens")),
        output_tokens: number("outputTokens").saturating_add(number("output_tokens")),
        ..Usage::default()
    }
}
