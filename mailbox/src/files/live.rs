//! The state of an inbox that a process keeps from one lock section to the next: the length of the
//! log, and the number of its last message.

use store::StoreError;
use store::lock::ReusableLock;
use store::shared_log::{Look, SharedLog};

use crate::cursor::Cursor;
use crate::error::Result;
use crate::files::inbox::{FileInbox, Paths};
use crate::files::marks::Marks;
use crate::line::{self, VERSION};

/// The state of an inbox that a process keeps between sections.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) lock: ReusableLock,
    /// True if the directory and its files exist.
    pub(crate) prepared: bool,
    pub(crate) log: SharedLog,
    pub(crate) marks: Marks,
    pub(crate) broadcast: SharedLog,
    /// True if the inbox has every broadcast up to the end of the log as it was last read.
    pub(crate) caught_up: bool,
    /// The number of the last message, 0 if there is none.
    pub(crate) last_seq: u64,
    /// Counts how often the log was replaced: offsets hold as long as it stays the same.
    pub(crate) incarnation: u64,
    /// The number of the first message in the log; `None` until it is needed.
    pub(crate) first_seq: Option<u64>,
    /// The version of a newer ccb that wrote the log; `None` if none did.
    newer: Option<u64>,
    /// The part of the log after `last_seq`. Stored, because reading it can fail.
    unread: Unread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unread {
    Nothing,
    More,
    All,
}

impl Live {
    pub(crate) fn new(paths: &Paths) -> Self {
        Self {
            lock: ReusableLock::new(paths.dir.join("lock")),
            prepared: false,
            log: SharedLog::new(&paths.log),
            marks: Marks::new(&paths.dir.join("marks.jsonl")),
            broadcast: SharedLog::new(&paths.broadcast),
            caught_up: false,
            last_seq: 0,
            incarnation: 0,
            first_seq: None,
            newer: None,
            unread: Unread::All,
        }
    }

    /// Takes in what others did since the last section.
    pub(crate) fn refresh(&mut self, inbox: &FileInbox) -> Result<()> {
        match self.log.look()? {
            Look::Same => {}
            Look::Grown => self.unread = self.unread.max(Unread::More),
            Look::Restarted => {
                self.incarnation += 1;
                self.first_seq = None;
                self.unread = Unread::All;
            }
        }
        if self.unread != Unread::Nothing {
            self.read_last(inbox, self.unread == Unread::All)?;
            self.unread = Unread::Nothing;
        }
        if self.newer.is_none() {
            self.copy_broadcasts(inbox)?;
        }
        Ok(())
    }

    /// Finds the number of the last message.
    fn read_last(&mut self, inbox: &FileInbox, restarted: bool) -> Result<()> {
        let last = self.log.find_last(line::head)?;
        self.newer = last.map(|head| head.v).filter(|v| *v > VERSION);
        let last = last.map_or(0, |head| head.seq);
        if !restarted {
            // Within one log numbers only grow; if not, something else wrote to it.
            self.last_seq = if last > self.last_seq {
                last
            } else {
                self.highest_in_log()?.max(self.last_seq)
            };
            return Ok(());
        }
        let mut highest = if self.ends_well()? {
            last
        } else {
            self.highest_in_log()?
        };
        // A log that was cut off or deleted by hand must not make numbers come again: those
        // that were acknowledged would never be shown, those in the marks never be listed.
        if highest == 0 {
            self.marks.refresh()?;
            highest = self.marks.last.seq;
        }
        self.last_seq = highest.max(Cursor::load(&inbox.paths.cursor)?.highest());
        Ok(())
    }

    /// True if the last two lines are messages that follow each other. If not, the log was damaged,
    /// and its end says nothing about its numbers.
    fn ends_well(&self) -> Result<bool> {
        let mut last_two = Vec::new();
        self.log.find_last(|bytes| {
            let seq = line::parse(bytes).ok().map(|parsed| parsed.message.seq);
            last_two.push(seq);
            (last_two.len() == 2).then_some(())
        })?;
        Ok(match last_two[..] {
            [Some(last), Some(before)] => before + 1 == last,
            [] | [Some(_)] => true,
            _ => false,
        })
    }

    fn highest_in_log(&self) -> Result<u64> {
        let bytes = self.log.read(0, self.log.end())?;
        let lines = bytes.split(|b| *b == b'\n');
        let numbers = lines.filter_map(|line| line::parse(line).ok());
        Ok(numbers.map(|parsed| parsed.message.seq).max().unwrap_or(0))
    }

    /// Appends complete lines, the last of which has number `last_seq`.
    pub(crate) fn append(&mut self, bytes: &[u8], last_seq: u64) -> Result<()> {
        self.check_version()?;
        self.log.append(bytes)?;
        self.last_seq = last_seq;
        Ok(())
    }

    /// Refuses to write to a log of a newer format.
    pub(crate) fn check_version(&self) -> Result<()> {
        let found = self.newer.unwrap_or(VERSION);
        Ok(StoreError::check_version(self.log.path(), found, VERSION)?)
    }

    /// The number of the first message in the log.
    pub(crate) fn first_seq(&mut self) -> Result<u64> {
        if let Some(seq) = self.first_seq {
            return Ok(seq);
        }
        let mut start = 0;
        while start < self.log.end() {
            let line = self.line_at(start)?;
            if let Some(head) = line::head(&line) {
                self.first_seq = Some(head.seq);
                return Ok(head.seq);
            }
            start += line.len() as u64 + 1;
        }
        Ok(self.last_seq + 1)
    }

    /// The line that begins at `start`, without its newline.
    pub(crate) fn line_at(&self, start: u64) -> Result<Vec<u8>> {
        line_at(&self.log, start)
    }

    /// Refuses if too much waits to be read.
    pub(crate) fn check_room(&mut self, inbox: &FileInbox) -> Result<()> {
        let limits = &inbox.options.limits;
        let in_log = (self.last_seq + 1).saturating_sub(self.first_seq()?);
        // The log contains at least the unread messages; most of the time this check is enough.
        if in_log < limits.unread && self.log.end() < limits.log_bytes {
            return Ok(());
        }
        let acked = Cursor::load(&inbox.paths.cursor)?.acked;
        let done = (acked + 1).saturating_sub(self.first_seq()?);
        // Moving acknowledged messages out costs as much as the log is long, so only when
        // that makes much room.
        if done * 4 >= in_log {
            self.rotate(inbox, acked)?;
        }
        let unread = self.last_seq.saturating_sub(acked);
        limits.check_room(inbox.name(), unread, self.log.end())
    }
}

/// The line of `log` that begins at `start`, without its newline; empty at the end.
pub(crate) fn line_at(log: &SharedLog, start: u64) -> Result<Vec<u8>> {
    let mut size = 1024;
    loop {
        let end = log.end().min(start + size);
        let mut bytes = log.read(start, end)?;
        if let Some(newline) = memchr::memchr(b'\n', &bytes) {
            bytes.truncate(newline);
            return Ok(bytes);
        }
        if end == log.end() {
            return Ok(bytes);
        }
        size *= 8;
    }
}
