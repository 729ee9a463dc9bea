//! The events of a run: `transcript.jsonl`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::clock::{Clock, SystemClock, rfc3339};
use store::log::{self, LogTail};
use uuid::Uuid;

use super::run_dir::{RunDir, RunError};
use crate::runtime::{Stream, Usage};

/// The longest text of one entry; what is longer is in the output.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When, RFC 3339.
    pub ts: String,
    /// In which life.
    pub life: u32,
    /// The event.
    #[serde(flatten)]
    pub entry: Entry,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    /// Its first prompt.
    Prompt {
        /// The words.
        text: String,
    },
    /// It is up.
    Started {
        /// By what it can be resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Its process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<i32>,
    },
    /// It printed something.
    Output {
        /// Where.
        stream: Stream,
        /// The text.
        text: String,
    },
    /// The model said something.
    Text {
        /// The words.
        text: String,
    },
    /// It uses a tool.
    ToolUse {
        /// Links the result to it.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        input: Value,
    },
    /// A tool answered.
    ToolResult {
        /// Of which use.
        id: String,
        /// The answer.
        output: String,
        /// True if that is an error.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        error: bool,
    },
    /// A message became part of the conversation.
    Message {
        /// Its id.
        id: Uuid,
        /// The text as it was shown.
        text: String,
    },
    /// It asked for permission.
    Permission {
        /// Links the answer to it.
        id: String,
        /// The tool.
        tool: String,
        /// With what.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        input: Value,
    },
    /// Its question was answered.
    Answer {
        /// Of which question.
        id: String,
        /// True if it may.
        allow: bool,
        /// The reason for a no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It used something.
    Usage(Usage),
    /// It makes no progress.
    Stalled {
        /// Why.
        why: String,
    },
    /// A turn is over.
    TurnEnded {
        /// How.
        status: String,
        /// The result.
        text: String,
        /// The error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// An action or observation of the engine.
    Note {
        /// In words.
        text: String,
    },
    /// The life is over.
    Ended {
        /// How, in one word.
        status: String,
        /// The error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// An entry written by a later version.
    #[serde(other)]
    Unknown,
}

/// The transcript of a run, to be written.
#[derive(Debug)]
pub struct Transcript {
    log: LogTail,
    life: u32,
    /// True if a crash left half a line.
    torn: bool,
    /// Bytes of printed text it may still hold.
    room: u64,
}

impl Transcript {
    /// Opens the transcript of `run` to append to it; at most `room` bytes of the agent's output
    /// are kept here.
    pub fn open(run: &RunDir, life: u32, room: u64) -> Self {
        let path = run.transcript_path();
        let (end, torn) = end_of(&path);
        Self {
            log: LogTail::new(path, end),
            life,
            torn,
            room: room.saturating_sub(end),
        }
    }

    /// Adds an entry.
    pub fn add(&mut self, mut entry: Entry) -> Result<(), RunError> {
        self.shorten(&mut entry);
        let record = Record {
            ts: rfc3339(SystemClock.now_ms()),
            life: self.life,
            entry,
        };
        let mut line = Vec::new();
        if self.torn {
            line.push(b'\n');
        }
        serde_json::to_writer(&mut line, &record).map_err(|error| RunError::Corrupt {
            path: PathBuf::from("transcript.jsonl"),
            why: error.to_string(),
        })?;
        line.push(b'\n');
        self.log.append(&line)?;
        self.torn = false;
        Ok(())
    }

    /// Adds what the agent printed, as long as there is room.
    pub fn add_output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), RunError> {
        if self.room == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let left = self.room.saturating_sub(text.len() as u64);
        self.room = left;
        self.add(Entry::Output { stream, text })?;
        if left == 0 {
            let text = "more than fits here was printed; the rest is in the output file".into();
            self.add(Entry::Note { text })?;
        }
        Ok(())
    }

    fn shorten(&self, entry: &mut Entry) {
        match entry {
            Entry::Prompt { text }
            | Entry::Output { text, .. }
            | Entry::Text { text }
            | Entry::Message { text, .. }
            | Entry::TurnEnded { text, .. }
            | Entry::ToolResult { output: text, .. } => cut(text),
            Entry::ToolUse { input, .. } | Entry::Permission { input, .. } => {
                let text = input.to_string();
                if text.len() > MAX_TEXT {
                    let mut text = text;
                    cut(&mut text);
                    *input = Value::String(text);
                }
            }
            _ => {}
        }
    }
}

/// Cuts what is too long.
fn cut(text: &mut String) {
    if text.len() > MAX_TEXT {
        let more = text.len() - MAX_TEXT;
        let mut end = MAX_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(&format!("[{more} bytes more]"));
    }
}

/// The length of a log, and true if it ends in the middle of a line.
fn end_of(path: &Path) -> (u64, bool) {
    let Ok(mut file) = File::open(path) else {
        return (0, false);
    };
    let mut last = [b'\n'];
    let end = file.seek(SeekFrom::End(0)).unwrap_or(0);
    if end > 0 && file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last).ok();
    }
    (end, last != [b'\n'])
}

/// The entries from byte `offset` on, and the offset to continue from later. Lines that cannot be
/// read are left out: a crash cut them off.
pub fn read_from(run: &RunDir, offset: u64) -> Result<(Vec<Record>, u64), RunError> {
    let lines = log::read_from(&run.transcript_path(), offset)?;
    let records = lines.lines.iter();
    let records = records.filter_map(|line| serde_json::from_slice(line).ok());
    Ok((records.collect(), lines.next_offset))
}
