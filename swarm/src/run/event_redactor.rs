//! Takes secrets out of everything an agent says before anything is done with it.

use std::sync::Arc;

use serde_json::Value;

use crate::redact::{Redactor, Secrets};
use crate::runtime::{Event, Stream, TurnEnd};

/// The streams of one agent.
#[derive(Debug)]
pub(super) struct EventRedactor {
    secrets: Arc<Secrets>,
    stdout: Redactor,
    stderr: Redactor,
}

impl EventRedactor {
    pub(super) fn new(secrets: &Arc<Secrets>) -> Self {
        Self {
            secrets: Arc::clone(secrets),
            stdout: Redactor::new(Arc::clone(secrets)),
            stderr: Redactor::new(Arc::clone(secrets)),
        }
    }

    /// The event as it may be seen.
    pub(super) fn redact(&mut self, event: Event) -> Event {
        match event {
            Event::Output { stream, bytes } => {
                let mut shown = Vec::with_capacity(bytes.len());
                self.stream(stream).push(&bytes, &mut shown);
                Event::Output {
                    stream,
                    bytes: shown,
                }
            }
            Event::Text(text) => Event::Text(self.text(&text)),
            Event::ToolUse { id, name, input } => Event::ToolUse {
                id,
                name,
                input: self.value(input),
            },
            Event::ToolResult {
                id,
                output,
                is_error,
            } => Event::ToolResult {
                id,
                output: self.text(&output),
                is_error,
            },
            Event::Permission { id, tool, input } => Event::Permission {
                id,
                tool,
                input: self.value(input),
            },
            Event::Stalled { why } => Event::Stalled {
                why: self.text(&why),
            },
            Event::TurnEnded(turn) => Event::TurnEnded(TurnEnd {
                status: turn.status,
                text: self.text(&turn.text),
                error: turn.error.map(|error| self.text(&error)),
            }),
            other => other,
        }
    }

    /// What was held back to see how it goes on.
    pub(super) fn rest(&mut self) -> Vec<(Stream, Vec<u8>)> {
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
    pub(super) fn text(&self, text: &str) -> String {
        self.secrets.redact(text)
    }

    fn value(&self, value: Value) -> Value {
        let text = value.to_string();
        let shown = self.text(&text);
        if shown == text {
            return value;
        }
        serde_json::from_str(&shown).unwrap_or(Value::String(shown))
    }

    fn stream(&mut self, stream: Stream) -> &mut Redactor {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}
