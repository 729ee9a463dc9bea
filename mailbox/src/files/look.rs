//! Looking at an inbox without taking anything out of it, and without its lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use store::StoreError;
use store::log::{LogTail, read_from};
use store::name::Name;
use store::shared_log::SharedLog;
use store::watch::DirWatch;

use crate::broadcast::last_number;
use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::inbox::{FileInbox, Marks};
use crate::line;
use crate::message::Message;

store::words! {
    /// How far a message has got.
    pub enum MessageState {
        /// Nobody has read it.
        Queued = "queued",
        /// Its reader has it.
        Delivered = "delivered",
        /// It is dealt with.
        Acknowledged = "acknowledged",
    }
}

/// What is in an inbox.
#[derive(Debug, Default)]
pub struct Listing {
    /// By number.
    pub messages: Vec<(Message, MessageState)>,
    /// Every message up to this one is acknowledged.
    pub acked: u64,
    /// How many damaged lines there are or were.
    pub rejected: usize,
}

impl Listing {
    /// Says of `messages` how far they have got; leaves out those that are done with, unless
    /// `all` are wanted.
    pub(crate) fn new(
        messages: impl IntoIterator<Item = Message>,
        cursor: &Cursor,
        rejected: usize,
        all: bool,
        now_ms: i64,
    ) -> Self {
        let state = |seq| match () {
            () if cursor.is_acked(seq) => MessageState::Acknowledged,
            () if cursor.delivered.contains(seq) => MessageState::Delivered,
            () => MessageState::Queued,
        };
        let messages = messages
            .into_iter()
            .map(|message| (state(message.seq), message))
            .filter(|(state, message)| {
                all || (*state != MessageState::Acknowledged && !message.is_expired(now_ms))
            })
            .map(|(state, message)| (message, state))
            .collect();
        Self {
            messages,
            acked: cursor.acked,
            rejected,
        }
    }
}

impl FileInbox {
    pub(crate) fn list(&self, all: bool) -> Result<Listing> {
        self.copy_for_a_look()?;
        let cursor = Cursor::load(&self.paths.cursor)?;
        let mut rejected = read_from(&self.paths.rejected, 0)?.lines.len();
        let mut messages: BTreeMap<u64, Message> = BTreeMap::new();
        let mut add = |bytes: &Vec<u8>| {
            let parsed = line::parse(bytes).map(|parsed| parsed.message);
            parsed.map(|message| messages.entry(message.seq).or_insert(message).seq)
        };
        // The log before the archives: what moves meanwhile is found twice, not missed.
        let lines = read_from(&self.paths.log, 0)?.lines;
        rejected += lines.iter().filter(|line| add(line).is_err()).count();
        if all {
            for (_, path) in self.archives()? {
                let lines = read_from(&path, 0)?.lines;
                lines.iter().for_each(|line| drop(add(line)));
            }
        }
        let messages = messages.into_values();
        Ok(Listing::new(
            messages,
            &cursor,
            rejected,
            all,
            self.now_ms(),
        ))
    }

    /// Gets broadcasts that are not copied yet. Looking must not fail because that does.
    fn copy_for_a_look(&self) -> Result<()> {
        let copied = self.has_uncopied().and_then(|some| match some {
            true => self.section(|_| Ok(())),
            false => Ok(()),
        });
        match copied {
            Err(MailError::Store(
                error @ (StoreError::LockTimeout { .. } | StoreError::NewerVersion { .. }),
            )) => {
                tracing::warn!(%error, "broadcasts may be missing");
                Ok(())
            }
            other => other,
        }
    }

    fn has_uncopied(&self) -> Result<bool> {
        let path = &self.paths.broadcast;
        if std::fs::metadata(path).map_or(0, |meta| meta.len()) == 0 {
            return Ok(false);
        }
        if !self.exists() {
            let me = |name: &String| name.eq_ignore_ascii_case(self.name().as_str());
            let lines = read_from(path, 0)?.lines;
            return Ok(lines
                .iter()
                .filter_map(|line| line::parse(line).ok())
                .any(|parsed| parsed.recipients.iter().any(me)));
        }
        let mut broadcasts = SharedLog::new(path);
        broadcasts.look()?;
        let mut marks = Marks::new(&self.paths.dir.join("marks.jsonl"));
        marks.refresh()?;
        Ok(marks.last.copied < last_number(&broadcasts)?)
    }

    pub(crate) fn follow(self: &Arc<Self>, since: Option<u64>) -> Result<FileFollow> {
        let last = self.section(|live| Ok(live.last_seq))?;
        let since = check_since(since, last, self.name())?;
        let older = self.list(true)?.messages.into_iter();
        let older: Vec<Message> = older
            .map(|(message, _)| message)
            .filter(|message| message.seq > since)
            .collect();
        Ok(FileFollow {
            hints: DirWatch::new(&self.paths.dir),
            tail: LogTail::new(self.paths.log.clone(), 0),
            inbox: Arc::clone(self),
            last: since,
            older,
        })
    }
}

/// From which number on somebody follows an inbox whose last one is `last`.
pub(crate) fn check_since(since: Option<u64>, last: u64, inbox: &Name) -> Result<u64> {
    let since = since.unwrap_or(last);
    if since > last {
        return Err(MailError::NoSuchMessage {
            inbox: inbox.to_string(),
            seq: since,
            last,
        });
    }
    Ok(since)
}

/// The messages of a log as they are appended.
#[derive(Debug)]
pub(crate) struct FileFollow {
    inbox: Arc<FileInbox>,
    hints: DirWatch,
    tail: LogTail,
    last: u64,
    older: Vec<Message>,
}

impl FileFollow {
    pub(crate) fn poll(&mut self) -> Result<Vec<Message>> {
        self.inbox.copy_for_a_look()?;
        let mut messages = std::mem::take(&mut self.older);
        if let Some(message) = messages.last() {
            self.last = message.seq;
        }
        let fresh = self.tail.read_new()?.bytes;
        for bytes in fresh.split(|b| *b == b'\n') {
            // A log that was replaced begins with what was there before.
            if let Ok(parsed) = line::parse(bytes)
                && parsed.message.seq > self.last
            {
                self.last = parsed.message.seq;
                messages.push(parsed.message);
            }
        }
        Ok(messages)
    }

    pub(crate) fn wait(&mut self, limit: Duration) {
        self.hints.wait(limit);
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }
}
