//! The requests to the server.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::cache::Cached;
use super::conversation::Conversation;
use super::step::Step;
use super::wire::Wire;

/// A request and its outcome.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Counted from 1, all requests together.
    pub number: u64,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
    /// Its bytes.
    pub raw: Arc<[u8]>,
    /// The time when all of it was there.
    pub arrived: Instant,
    /// The part of it that was in the cache.
    pub cached: Cached,
    /// The protocol; `None` for requests that are not for the model, such as lists of models.
    pub wire: Option<Wire>,
    pub conversation: Conversation,
    /// The tools that were offered.
    pub tools: Vec<String>,
    /// The step it was answered with.
    pub step: Option<Step>,
    /// The step's place in its script; `None` without a script.
    pub step_number: Option<usize>,
    /// The outcome; `None` as long as the answer is under way.
    pub outcome: Option<Outcome>,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered to the end.
    Answered,
    /// It was answered with this HTTP error.
    Refused(u16),
    /// The script interrupted it.
    Cut,
    /// The client went away.
    AskerGone,
}

impl Recorded {
    /// True if this text is in its bytes, quoted as JSON quotes it.
    pub fn raw_contains(&self, text: &str) -> bool {
        let quoted = Value::from(text).to_string();
        let text = &quoted.as_bytes()[1..quoted.len() - 1];
        self.raw.windows(text.len()).any(|part| part == text)
    }

    /// A request that followed a script.
    pub fn is_scripted(&self) -> bool {
        self.step_number.is_some()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Writes it into `dir`, for people.
    pub(super) fn save(&self, dir: &Path) {
        let kind = self.wire.map_or("other", Wire::name);
        let path = dir.join(format!("{:04}-{kind}.json", self.number));
        let headers: serde_json::Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        let text = json!({
            "path": self.path,
            "step": self.step,
            "stepNumber": self.step_number,
            "tools": self.tools,
            "headers": headers,
            "body": self.body,
        });
        std::fs::write(path, format!("{text:#}\n")).ok();
    }
}
