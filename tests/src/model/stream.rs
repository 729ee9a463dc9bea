//! A streamed answer as a list of actions, so that only one place knows about time.

use serde_json::Value;

use super::step::Step;

/// One action of a streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Emit {
    /// Send a server-sent event.
    Event {
        name: Option<&'static str>,
        data: String,
    },
    /// Wait as the step says, sending `ping` now and then.
    Hang { ping: Option<&'static str> },
    /// Wait between two words.
    Pause,
    /// Break the connection.
    Cut,
}

impl Emit {
    /// An event as it is sent.
    pub(super) fn text(&self) -> Option<String> {
        let Self::Event { name, data } = self else {
            return None;
        };
        let name = name.map(|name| format!("event: {name}\n"));
        Some(format!("{}data: {data}\n\n", name.unwrap_or_default()))
    }

    /// An event that has a name.
    pub(super) fn named(name: &'static str, data: &Value) -> Self {
        Self::Event {
            name: Some(name),
            data: data.to_string(),
        }
    }

    /// An event without a name.
    pub(super) fn data(data: &Value) -> Self {
        Self::Event {
            name: None,
            data: data.to_string(),
        }
    }
}

/// The pieces in which a step's text is sent.
pub(super) fn pieces(step: &Step) -> Vec<&str> {
    match &step.text {
        Some(text) if step.slow.is_some() => text.split_inclusive(' ').collect(),
        Some(text) if !text.is_empty() => vec![text],
        _ => Vec::new(),
    }
}

/// The failures in the middle of a stream; `error` makes the protocol's own event.
pub(super) fn trouble(step: &Step, error: impl FnOnce(&str) -> Emit) -> Vec<Emit> {
    match &step.stream_error {
        Some(kind) => vec![error(kind), Emit::Cut],
        None if step.drop => vec![Emit::Cut],
        None => Vec::new(),
    }
}
