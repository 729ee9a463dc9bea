//! Takes secrets out of everything an agent says before anything is done with it.

use std::sync::Arc;

use serde_json::Value;

use super::{Event, Stream};
use crate::redact::{Redactor, Secrets};

/// The streams of one agent.
#[derive(Debug)]
pub(crate) struct EventRedactor {
    secrets: Arc<Secrets>,
    stdout: Redactor,
    stderr: Redactor,
}

impl EventRedactor {
    pub(crate) fn new(secrets: &Arc<Secrets>) -> Self {
        Self {
            secrets: Arc::clone(secrets),
            stdout: Redactor::new(Arc::clone(secrets)),
            stderr: Redactor::new(Arc::clone(secrets)),
        }
    }

    /// The event as it may be seen.
    pub(crate) fn redact(&mut self, mut event: Event) -> Event {
        match &mut event {
            Event::Output { stream, bytes } => {
                let mut shown = Vec::with_capacity(bytes.len());
                self.stream(*stream).push(bytes, &mut shown);
                *bytes = shown;
            }
            Event::Text(text)
            | Event::ToolResult { output: text, .. }
            | Event::Stalled { why: text } => *text = self.text(text),
            Event::ToolUse { input, .. } | Event::Permission { input, .. } => self.value(input),
            Event::TurnEnded(turn) => {
                turn.text = self.text(&turn.text);
                turn.error = turn.error.as_ref().map(|error| self.text(error));
            }
            _ => {}
        }
        event
    }

    /// The bytes that were held back to see how they continue.
    pub(crate) fn rest(&mut self) -> Vec<(Stream, Vec<u8>)> {
        let mut rest = Vec::new();
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut shown = Vec::new();
            self.stream(stream).finish(&mut shown);
            if !shown.is_empty() {
                rest.push((stream, shown));
            }
        }
        rest
    }

    /// `text` as it may be seen.
    pub(crate) fn text(&self, text: &str) -> String {
        self.secrets.redact(text)
    }

    fn value(&self, value: &mut Value) {
        let text = value.to_string();
        let shown = self.text(&text);
        if shown != text {
            *value = serde_json::from_str(&shown).unwrap_or(Value::String(shown));
        }
    }

    fn stream(&mut self, stream: Stream) -> &mut Redactor {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}
