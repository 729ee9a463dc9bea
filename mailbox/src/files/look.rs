//! Looking at an inbox in files without taking anything out of it, and without its lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use store::StoreError;
use store::log::{LogTail, read_from};
use store::shared_log::SharedLog;
use store::watch::DirWatch;

use crate::backend::Feed;
use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::files::broadcast::last_number;
use crate::files::inbox::FileInbox;
use crate::files::marks::Marks;
use crate::line;
use crate::listing::{Listing, check_since};
use crate::message::Message;

impl FileInbox {
    pub(super) fn listing(&self, all: bool) -> Result<Listing> {
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
        let copied = self.has_uncopied().and_then(|some| {
            if some {
                self.section(|_| Ok(()))?;
            }
            Ok(())
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
        if !self.is_made() {
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

    pub(super) fn feed(self: Arc<Self>, since: Option<u64>) -> Result<Box<dyn Feed>> {
        let last = self.section(|live| Ok(live.last_seq))?;
        let since = check_since(since, last, self.name())?;
        let older = self.listing(true)?.messages.into_iter();
        let older: Vec<Message> = older
            .map(|(message, _)| message)
            .filter(|message| message.seq > since)
            .collect();
        Ok(Box::new(Followed {
            hints: DirWatch::new(&self.paths.dir),
            tail: LogTail::new(self.paths.log.clone(), 0),
            inbox: self,
            last: since,
            older,
        }))
    }
}

/// The messages of a log as they are appended.
#[derive(Debug)]
struct Followed {
    inbox: Arc<FileInbox>,
    hints: DirWatch,
    tail: LogTail,
    last: u64,
    older: Vec<Message>,
}

impl Feed for Followed {
    fn poll(&mut self) -> Result<Vec<Message>> {
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

    fn wait(&mut self, limit: Duration) {
        self.hints.wait(limit);
    }

    fn last(&self) -> u64 {
        self.last
    }
}
