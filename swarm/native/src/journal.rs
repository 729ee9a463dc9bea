//! The conversation on the disk: `conversation.jsonl`, a line for each thing that happened, written
//! when it happens.
//!
//! Every beginning of the file is a conversation that can be resumed. A call that has no result in
//! it may or may not have had its effect, and the resumed agent reads that.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::StoreError;
use store::clock::{Clock, SystemClock, rfc3339};
use store::log::LogTail;
use swarm::fork::{self, ForkError};
use uuid::Uuid;

use super::model::{Block, Tokens};

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(super) enum Entry {
    /// A process begins to write here.
    Session {
        v: u32,
        cwd: PathBuf,
        model: String,
        provider: String,
        /// The file that the lines before are a copy of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fork_of: Option<String>,
    },
    /// The bytes that every request begins with from now on.
    Prefix {
        system: String,
        tools: Vec<Value>,
        /// True if the model has no effort setting; requests do not set one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        plain: bool,
    },
    /// A message to the model.
    User {
        text: String,
        /// The message it came in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Uuid>,
    },
    /// The model says something.
    Assistant {
        content: Vec<Block>,
        stop: String,
        usage: Tokens,
    },
    /// A call has its result.
    ToolResult {
        id: String,
        text: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// This replaces everything before it: a new prefix begins.
    Compaction { text: String, why: String },
    /// These results were too long to be kept; requests have a note in their place.
    Dropped { results: Vec<String> },
    /// A turn is over.
    Turn {
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// An entry written by a later version.
    #[serde(other)]
    Unknown,
}

impl Entry {
    /// True if only a copy has such a line: it says so, or the text that begins with the tag does,
    /// in case the first was lost.
    pub(super) fn is_of_fork(&self) -> bool {
        match self {
            Self::Session { fork_of, .. } => fork_of.is_some(),
            Self::User { text, .. } => fork::begins_with_tag(text),
            _ => false,
        }
    }
}

/// The reason why a conversation cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the conversation {path} is not there; start a new agent")]
    Missing { path: String },
    #[error("{path} has no line {at}. Each line begins with its uuid; leave out --at to copy all")]
    NoSuchLine { path: String, at: Uuid },
    #[error(transparent)]
    Fork(#[from] ForkError),
    #[error("line {number} of {path} is damaged ({why}); start a new agent, or repair the line")]
    Damaged {
        path: String,
        number: usize,
        why: String,
    },
}

/// The file, to be written by one process.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    log: LogTail,
    last: Option<Uuid>,
}

impl Journal {
    /// Creates a new one in `dir`, which no other agent uses.
    pub(super) fn create(dir: &Path) -> Result<Self, JournalError> {
        let own = dir.join(format!("conversation-{}.jsonl", Uuid::new_v4().simple()));
        drop(store::atomic::open_private(&own)?);
        // The first one in a directory has the name that people look for.
        let usual = dir.join("conversation.jsonl");
        let path = match store::atomic::rename_new(&own, &usual)? {
            true => usual,
            false => own,
        };
        let log = LogTail::new(path.clone(), 0);
        let last = None;
        Ok(Self { path, log, last })
    }

    /// A journal that is never written, with a path that does not exist.
    pub(super) fn nowhere() -> Self {
        let path = PathBuf::new();
        let log = LogTail::new(path.clone(), 0);
        Self {
            path,
            log,
            last: None,
        }
    }

    /// Opens the one known as `session` and reads all entries. `dir` is searched for it if it was
    /// moved together with everything else.
    pub(super) fn open(session: &str, dir: &Path) -> Result<(Self, Vec<Entry>), JournalError> {
        let path = find(session, dir)?;
        let mut log = LogTail::new(path.clone(), 0);
        let bytes = log.read_new()?.bytes;
        let (entries, last) = read(&bytes, &path)?;
        Ok((Self { path, log, last }, entries))
    }

    /// A copy of the one that is known as `session`, in `dir`: all of it, or its beginning up to
    /// the line `at`.
    pub(super) fn copy(
        session: &str,
        at: Option<Uuid>,
        dir: &Path,
    ) -> Result<(Self, Vec<Entry>), JournalError> {
        let path = find(session, dir)?;
        let bytes = LogTail::new(path.clone(), 0).read_new()?.bytes;
        let bytes = match at {
            Some(at) => &bytes[..end_of_line(&bytes, &path, at)?],
            None => &bytes[..],
        };
        let (entries, last) = read(bytes, &path)?;
        let mut journal = Self::create(dir)?;
        journal.log.read_new()?;
        journal.log.append(bytes)?;
        journal.last = last;
        Ok((journal, entries))
    }

    /// By what it is found again.
    pub(super) fn session(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Reads it from its beginning.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, JournalError> {
        let bytes = LogTail::new(self.path.clone(), 0).read_new()?.bytes;
        Ok(read(&bytes, &self.path)?.0)
    }

    /// Writes down what happened.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let uuid = Uuid::now_v7();
        let parent = match entry {
            Entry::Compaction { .. } => None,
            _ => self.last,
        };
        let line = Line {
            uuid,
            parent_uuid: parent,
            ts: rfc3339(SystemClock.now_ms()),
            entry,
        };
        // A line of ours is JSON always.
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        self.log.append(&bytes)?;
        self.last = Some(uuid);
        Ok(())
    }
}

/// A line as it is written; its name comes first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    uuid: Uuid,
    /// The line before; `None` where a new prefix begins.
    parent_uuid: Option<Uuid>,
    ts: String,
    #[serde(flatten)]
    entry: &'a Entry,
}

pub(super) fn find(session: &str, dir: &Path) -> Result<PathBuf, JournalError> {
    let path = Path::new(session);
    let moved = path.file_name().map(|name| dir.join(name));
    [Some(path.to_owned()), moved]
        .into_iter()
        .flatten()
        .find(|path| path.is_absolute() && path.is_file())
        .ok_or_else(|| JournalError::Missing {
            path: session.to_owned(),
        })
}

/// The offset at which the line called `at` ends.
fn end_of_line(bytes: &[u8], path: &Path, at: Uuid) -> Result<usize, JournalError> {
    // Its name is what a line begins with, and no text holds such bytes: quotes are escaped there.
    let name = format!("{{\"uuid\":\"{at}\"");
    let begins = |found: &usize| *found == 0 || bytes[found - 1] == b'\n';
    let found = memchr::memmem::rfind(bytes, name.as_bytes()).filter(begins);
    if let Some(found) = found {
        let end = memchr::memchr(b'\n', &bytes[found..]);
        return Ok(end.map_or(bytes.len(), |end| found + end + 1));
    }
    let path = path.display().to_string();
    Err(JournalError::NoSuchLine { path, at })
}

/// The part of a line that identifies it.
#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub uuid: Uuid,
    #[serde(rename = "type")]
    pub kind: String,
}

/// All whole lines, and the id of the last.
pub(super) fn read(bytes: &[u8], path: &Path) -> Result<(Vec<Entry>, Option<Uuid>), JournalError> {
    let (mut entries, mut last) = (Vec::new(), None);
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let damaged = |error: serde_json::Error| JournalError::Damaged {
            path: path.display().to_string(),
            number: at + 1,
            why: error.to_string(),
        };
        // In two steps, which is half the work of one with both in it.
        let named: Named = serde_json::from_slice(line).map_err(damaged)?;
        last = Some(named.uuid);
        entries.push(serde_json::from_slice(line).map_err(damaged)?);
    }
    Ok((entries, last))
}
