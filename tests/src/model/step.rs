//! The steps of the model, and finding them in a prompt.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::{Conversation, Role};
use crate::marked::last_after;

/// The mark of a script, followed by a JSON list of [`Step`]s.
pub const MARK: &str = "<<SCRIPT ";

/// One answer of the model. A missing field does nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// It thinks this first, where the protocol has a place for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// It says this. `{{last}}` is the last tool's result, `{{user}}` the user's last text,
    /// `{{after:WORD}}` the text after the last WORD up to a blank, `{{n}}` the request's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It calls these, all at once. The same words as in `text` are replaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Call>,
    /// Short for one in `tools`, with `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The input of `tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The stop reason, by the protocol's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// The usage it reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    /// Seconds before it answers at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<f64>,
    /// It does not answer before this file exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<PathBuf>,
    /// Seconds between two words of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<f64>,
    /// True to send nothing after the beginning of the answer until the client goes away.
    #[serde(skip_serializing_if = "is_false")]
    pub hang: bool,
    /// The same until this file exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang_until: Option<PathBuf>,
    /// The answer is this HTTP status instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
    /// The body of an HTTP error; `None` for a default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Seconds in the header `retry-after` of an HTTP error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// True to break the connection after the first piece of the answer.
    #[serde(skip_serializing_if = "is_false")]
    pub drop: bool,
    /// The stream ends with an error of this type after the first piece of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_error: Option<String>,
    /// True to send the whole stream at once, at its end, as through a proxy that buffers.
    #[serde(skip_serializing_if = "is_false")]
    pub buffered: bool,
    /// Number of times that `http`, `drop` and `stream_error` happen before the rest of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// A tool it calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its name, as the client offers it.
    pub tool: String,
    /// Its arguments.
    #[serde(default = "empty_object")]
    pub input: Value,
    /// Text in place of the arguments, JSON or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

impl Call {
    /// The arguments as they are written.
    pub fn written(&self) -> String {
        let raw = self.raw.clone();
        raw.unwrap_or_else(|| self.input.to_string())
    }
}

/// The usage that a step reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct StepUsage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Step {
    /// Says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// Calls a tool.
    pub fn tool(tool: impl Into<String>, input: Value) -> Self {
        Self::default().and_tool(tool, input)
    }

    /// Answers with an HTTP error, always.
    pub fn http(status: u16) -> Self {
        Self {
            http: Some(status),
            ..Self::default()
        }
    }

    /// Answers with an HTTP error first, this often.
    pub fn http_first(mut self, status: u16, times: u32) -> Self {
        self.http = Some(status);
        self.times(times)
    }

    /// Calls one more tool.
    pub fn and_tool(mut self, tool: impl Into<String>, input: Value) -> Self {
        let (tool, raw) = (tool.into(), None);
        self.tools.push(Call { tool, input, raw });
        self
    }

    /// Calls one more tool with this text as its arguments.
    pub fn and_raw_tool(mut self, tool: impl Into<String>, raw: impl Into<String>) -> Self {
        let (tool, raw) = (tool.into(), Some(raw.into()));
        let input = empty_object();
        self.tools.push(Call { tool, input, raw });
        self
    }

    /// Sends all of the answer at its end.
    pub fn buffered(mut self) -> Self {
        self.buffered = true;
        self
    }

    /// Says something as well.
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.thinking = Some(text.into());
        self
    }

    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some(StepUsage {
            input,
            output,
            ..StepUsage::default()
        });
        self
    }

    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// Answers only when this file exists.
    pub fn wait_for(mut self, file: &Path) -> Self {
        self.wait_for = Some(file.to_owned());
        self
    }

    /// Begins to answer, and continues when this file exists.
    pub fn hang_until(mut self, file: &Path) -> Self {
        self.hang_until = Some(file.to_owned());
        self
    }

    /// Begins to answer and never continues.
    pub fn hang(mut self) -> Self {
        self.hang = true;
        self
    }

    /// Breaks off after the first piece.
    pub fn drop_stream(mut self) -> Self {
        self.drop = true;
        self
    }

    /// Ends the stream with an error of this type.
    pub fn stream_error(mut self, kind: impl Into<String>) -> Self {
        self.stream_error = Some(kind.into());
        self
    }

    /// Limits the number of failures.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// All its calls.
    pub fn calls(&self) -> Vec<Call> {
        let input = || self.input.clone().unwrap_or_else(empty_object);
        let one = self.tool.clone().map(|tool| Call {
            tool,
            input: input(),
            raw: None,
        });
        one.into_iter().chain(self.tools.clone()).collect()
    }
}

/// A script as it is written in a prompt.
pub fn script(steps: &[Step]) -> String {
    let json = serde_json::to_string(steps).expect("steps are JSON");
    format!("{MARK}{json}")
}

/// A prompt that carries a script.
pub fn prompt(words: &str, steps: &[Step]) -> String {
    format!("{words} {}", script(steps))
}

/// The last script in `text` that is not part of another one.
fn find(text: &str) -> Option<Vec<Value>> {
    let read = |text: &str| last_after(text, MARK).and_then(Result::ok);
    // Some programs quote the quotes in a prompt from the command line.
    read(text).or_else(|| read(&text.replace("\\\"", "\"")))
}

/// The current step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chosen {
    pub step: Step,
    /// Its place in the script; `None` without a script.
    pub number: Option<usize>,
}

/// The current step: its number is that of the model's answers since the last user text with a
/// script. A user text without one does not end the script.
pub(super) fn choose(conversation: &Conversation, request: u64) -> Result<Chosen, String> {
    let turns = &conversation.turns;
    let mut with_script = turns
        .iter()
        .enumerate()
        .filter(|(_, turn)| turn.role == Role::User)
        .filter_map(|(at, turn)| find(&turn.text).map(|steps| (at, steps)));
    let last_said = conversation.last(Role::User);
    let Some((at, mut steps)) = with_script.next_back() else {
        return Ok(Chosen {
            step: Step::text(format!("no script: {}", end_of(last_said, 200))),
            number: None,
        });
    };
    let answered = turns[at..]
        .iter()
        .filter(|turn| turn.role == Role::Assistant)
        .count();
    if answered >= steps.len() {
        return Ok(Chosen {
            step: Step::text(format!("script is over: {}", end_of(last_said, 300))),
            number: Some(answered),
        });
    }
    let step = fill_in(steps.swap_remove(answered), conversation, request);
    let step = serde_json::from_value(step)
        .map_err(|error| format!("step {answered} of the script is wrong: {error}"))?;
    Ok(Chosen {
        step,
        number: Some(answered),
    })
}

fn end_of(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Replaces `{{…}}` in every text of `value`, but not in scripts for others.
fn fill_in(value: Value, conversation: &Conversation, request: u64) -> Value {
    match value {
        Value::String(text) => {
            let (ours, theirs) = match text.find(MARK) {
                Some(at) => text.split_at(at),
                None => (text.as_str(), ""),
            };
            Value::String(fill_in_text(ours, conversation, request) + theirs)
        }
        Value::Array(values) => values
            .into_iter()
            .map(|value| fill_in(value, conversation, request))
            .collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, fill_in(value, conversation, request)))
            .collect(),
        other => other,
    }
}

fn fill_in_text(text: &str, conversation: &Conversation, request: u64) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(end) = rest[start..].find("}}").map(|end| start + end) else {
            break;
        };
        filled.push_str(&rest[..start]);
        let word = &rest[start + 2..end];
        match word.split_once(':') {
            None if word == "last" => filled.push_str(conversation.last(Role::Tool)),
            None if word == "user" => filled.push_str(conversation.last(Role::User)),
            None if word == "n" => filled.push_str(&request.to_string()),
            Some(("after", prefix)) => filled.push_str(&conversation.after(prefix)),
            _ => filled.push_str(&rest[start..end + 2]),
        }
        rest = &rest[end + 2..];
    }
    filled + rest
}
