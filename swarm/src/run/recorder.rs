//! Writes down what happens in a run. A full disk must not end the agent: what cannot be
//! written is dropped, and that is said once it can be.

use std::sync::Arc;

use uuid::Uuid;

use super::host::HostOptions;
use super::output::Output;
use super::run_dir::{RunDir, RunError};
use super::transcript::{Entry, Transcript};
use crate::redact::Secrets;
use crate::runtime::{Event, Stream};

/// Maximum bytes of an agent's output in its transcript, besides the output file.
const PRINTED_IN_TRANSCRIPT: u64 = 2 * 1024 * 1024;

/// The transcript and the output of a life.
#[derive(Debug)]
pub(super) struct Recorder {
    transcript: Transcript,
    output: Output,
    secrets: Arc<Secrets>,
    dropped: u64,
    warned: bool,
}

impl Recorder {
    /// The agent's events come without secrets; those in other texts are taken out here.
    pub(super) fn open(run: &RunDir, life: u32, options: &HostOptions) -> Self {
        Self {
            transcript: Transcript::open(run, life, PRINTED_IN_TRANSCRIPT),
            output: Output::open(run, options.output_limit),
            secrets: Arc::clone(&options.secrets),
            dropped: 0,
            warned: false,
        }
    }

    /// Writes down an entry.
    pub(super) fn add(&mut self, entry: Entry) {
        let written = self.transcript.add(entry);
        self.noted(written);
    }

    /// Writes down something the engine did or noticed.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = self.secrets.redact(&text.into());
        self.add(Entry::Note { text });
    }

    /// Writes down a message to the agent.
    pub(super) fn message(&mut self, id: Uuid, text: &str) {
        let text = self.secrets.redact(text);
        self.add(Entry::Message { id, text });
    }

    /// Writes down what the agent printed.
    pub(super) fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        let written = self.output.write(bytes);
        self.noted(written);
        let written = self.transcript.add_output(stream, bytes);
        self.noted(written);
    }

    /// Writes down what an event says, where it says something by itself.
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Output { stream, bytes } => self.printed(*stream, bytes),
            Event::Text(text) => {
                let written = self.output.write(format!("{text}\n").as_bytes());
                self.noted(written);
                self.add(Entry::Text { text: text.clone() });
            }
            Event::ToolUse { id, name, input } => self.add(Entry::ToolUse {
                id: id.clone(),
                name: name.clone(),
                input: input.clone(),
            }),
            Event::ToolResult {
                id,
                output,
                is_error,
            } => self.add(Entry::ToolResult {
                id: id.clone(),
                output: output.clone(),
                error: *is_error,
            }),
            Event::Permission { id, tool, input } => self.add(Entry::Permission {
                id: id.clone(),
                tool: tool.clone(),
                input: input.clone(),
            }),
            Event::Usage(usage) => self.add(Entry::Usage(*usage)),
            Event::Stalled { why } => self.add(Entry::Stalled { why: why.clone() }),
            Event::TurnEnded(turn) => self.add(Entry::TurnEnded {
                status: turn.status.as_str().into(),
                text: turn.text.clone(),
                error: turn.error.clone(),
            }),
            Event::Mode { mode, refused } => match refused {
                Some(why) => self.note(format!("the mode {mode:?} was refused: {why}")),
                None => self.note(format!("its mode is {mode:?} now")),
            },
            Event::Started { .. } | Event::Accepted { .. } | Event::Ended(_) => {}
        }
    }

    fn noted(&mut self, written: Result<(), RunError>) {
        match written {
            Err(error) => {
                if !std::mem::replace(&mut self.warned, true) {
                    tracing::warn!(%error, "what happens cannot be written down");
                }
                self.dropped += 1;
            }
            Ok(()) if self.dropped > 0 => {
                let text = format!("{} entries before this could not be written", self.dropped);
                if self.transcript.add(Entry::Note { text }).is_ok() {
                    self.dropped = 0;
                }
            }
            Ok(()) => {}
        }
    }
}
