//! The answer of a hook, and the answers of several hooks together.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::HookEvent;
use crate::process::Ending;

/// The longest reason, context or message that is passed on, in characters.
pub(super) const MAX_WORDS: usize = 12 * 1024;

/// The end of a hook's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookEnd {
    /// By itself or by a signal.
    Ended(Ending),
    /// It was killed after its time limit.
    TimedOut(Duration),
    /// It did not start.
    NotStarted(String),
}

/// The answer of one hook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The reason, if the hook says no.
    pub block: Option<String>,
    /// True if the no is `continue: false`: the agent shall stop, and not continue in another way.
    pub halt: bool,
    /// For the agent to know.
    pub context: Option<String>,
    /// For the user to know.
    pub message: Option<String>,
    /// The path of the worktree that the hook made.
    pub worktree_path: Option<PathBuf>,
    /// True if the hook's output is not shown.
    pub suppress_output: bool,
    /// The error of the hook itself.
    pub failure: Option<String>,
}

impl Answer {
    /// Reads what a hook left.
    pub(super) fn read(event: HookEvent, end: &HookEnd, stdout: &[u8], stderr: &[u8]) -> Self {
        let reason = |otherwise: &str| {
            let text = String::from_utf8_lossy(stderr);
            match text.trim() {
                "" => otherwise.to_owned(),
                text => bounded(text),
            }
        };
        let code = match end {
            HookEnd::Ended(Ending::Exited(code)) => *code,
            HookEnd::Ended(ending) => return Self::unknown(event, &ending.in_words()),
            HookEnd::TimedOut(limit) => {
                let why = format!("took longer than {:.0} s", limit.as_secs_f64().ceil());
                return Self::unknown(event, &why);
            }
            HookEnd::NotStarted(why) => {
                return Self::unknown(event, &format!("did not start: {why}"));
            }
        };
        match code {
            0 => Self::read_output(event, stdout),
            2 => Self {
                block: Some(reason("a hook said no and gave no reason")),
                ..Self::default()
            },
            // There is no worktree unless the hook says that it has made one.
            _ if event == HookEvent::WorktreeCreate => Self {
                block: Some(reason(&format!("the hook ended with exit code {code}"))),
                ..Self::default()
            },
            _ => Self {
                failure: Some(reason(&format!("the hook ended with exit code {code}"))),
                ..Self::default()
            },
        }
    }

    /// The report about a hook that ran without a waiting caller; `None` if it has nothing to
    /// report.
    pub fn in_words(&self) -> Option<String> {
        let mut parts = [&self.block, &self.failure, &None, &None];
        if !self.suppress_output {
            parts = [&self.block, &self.context, &self.message, &self.failure];
        }
        let mut words: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        words.dedup();
        (!words.is_empty()).then(|| words.join("\n"))
    }

    /// The answer of a hook that gave none.
    fn unknown(event: HookEvent, why: &str) -> Self {
        let why = format!("the hook {why}");
        Self {
            block: event.is_veto().then(|| why.clone()),
            failure: Some(why),
            ..Self::default()
        }
    }

    fn read_output(event: HookEvent, stdout: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stdout);
        let text = text.trim();
        let said = match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(said)) if text.starts_with('{') => said,
            _ => return Self::read_plain(event, text),
        };
        let said = Value::Object(said);
        let words = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.filter(|text| !text.trim().is_empty()).map(bounded)
        };
        let specific = said.get("hookSpecificOutput").unwrap_or(&Value::Null);
        // A field for another event does not count for this one.
        let meant = words(specific, "hookEventName").is_none_or(|name| name == event.as_str());
        let specific = if meant { specific } else { &Value::Null };
        let stops = said.get("continue") == Some(&Value::Bool(false));
        let blocks = words(&said, "decision").as_deref() == Some("block");
        let no_reason = || "a hook said no and gave no reason".to_owned();
        let block = match (stops, blocks) {
            (true, _) => words(&said, "stopReason").or_else(|| words(&said, "reason")),
            (false, true) => words(&said, "reason"),
            (false, false) => None,
        };
        let block = (stops || blocks).then(|| block.unwrap_or_else(no_reason));
        Self {
            block,
            halt: stops,
            context: words(specific, "additionalContext"),
            message: words(&said, "systemMessage"),
            worktree_path: words(specific, "worktreePath").map(PathBuf::from),
            suppress_output: said.get("suppressOutput") == Some(&Value::Bool(true)),
            failure: None,
        }
    }

    /// Text that is not JSON: the hook that makes a worktree may simply print where it is.
    fn read_plain(event: HookEvent, text: &str) -> Self {
        let last = text.lines().next_back().map(str::trim);
        let path = last.filter(|line| line.starts_with('/') && event == HookEvent::WorktreeCreate);
        Self {
            worktree_path: path.map(PathBuf::from),
            ..Self::default()
        }
    }
}

/// The part of a text that fits into a message.
fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{} […]", &text[..end]),
        None => text.to_owned(),
    }
}

/// The answers of all hooks of an event together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// The first that says no: its command and its reason.
    pub block: Option<(String, String)>,
    /// The first that says `continue: false`; it also counts as a no.
    pub halt: Option<(String, String)>,
    /// Texts for the agent, in the order of the hooks.
    pub context: Vec<String>,
    /// Texts for the user.
    pub messages: Vec<String>,
    /// The path of the worktree that a hook made.
    pub worktree_path: Option<PathBuf>,
    /// Errors of hooks: their commands and the reasons.
    pub failures: Vec<(String, String)>,
}

impl Outcome {
    /// True if no hook says no.
    pub fn passes(&self) -> bool {
        self.block.is_none()
    }

    pub(super) fn add(&mut self, command: &str, answer: Answer) {
        if let Some(reason) = answer.block {
            let said = (command.to_owned(), reason);
            if answer.halt && self.halt.is_none() {
                self.halt = Some(said.clone());
            }
            self.block.get_or_insert(said);
        }
        self.context.extend(answer.context);
        self.messages.extend(answer.message);
        if self.worktree_path.is_none() {
            self.worktree_path = answer.worktree_path;
        }
        if let Some(why) = answer.failure {
            self.failures.push((command.to_owned(), why));
        }
    }
}
