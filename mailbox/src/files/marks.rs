//! The facts about an inbox's log that outlive the log.
//!
//! Two facts: which broadcasts are copied into it, and which ids given by senders are used. The log
//! itself is the truth about both; `marks.jsonl` lists them up to some line, so that no process has
//! to read the log from its beginning, and after acknowledged messages have left it. A process that
//! needs more reads on from there. Every line repeats how far all earlier lines go, so that the
//! last line is enough for a process that only needs the broadcasts:
//!
//! `{"v":1,"seq":S,"at":O,"copied":N,"from":B,"id":…?}`: the log is listed up to message S, which
//! ends at byte O; broadcasts are copied up to number N, which ends at byte B of `broadcast.jsonl`;
//! message S has this id.
//!
//! Offsets are hints: they are checked against the line found there.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use store::StoreError;
use store::atomic::{self, Durability};
use store::shared_log::{Look, SharedLog};
use uuid::Uuid;

use crate::error::{MailError, Result};
use crate::files::inbox::FileInbox;
use crate::files::live::{Live, line_at};
use crate::line::{self, MAX_SEQ, VERSION};

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Mark {
    #[serde(default)]
    v: u64,
    pub(crate) seq: u64,
    at: u64,
    pub(crate) copied: u64,
    pub(crate) from: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Uuid>,
}

impl Mark {
    /// Listed up to this message and offset, copied up to this broadcast and offset.
    pub(crate) fn new((seq, at): (u64, u64), (copied, from): (u64, u64)) -> Self {
        Self {
            v: VERSION,
            seq,
            at,
            copied,
            from,
            id: None,
        }
    }

    fn write(self, bytes: &mut Vec<u8>) -> Result<()> {
        let line = Self { v: VERSION, ..self };
        serde_json::to_writer(&mut *bytes, &line)
            .map_err(|error| MailError::invalid("mark", error.to_string()))?;
        bytes.push(b'\n');
        Ok(())
    }
}

/// About how long a line with an id is.
const LINE: u64 = 128;

/// The marks of one inbox, as far as this process needs them.
#[derive(Debug)]
pub(crate) struct Marks {
    log: SharedLog,
    /// The last line, or further than it if nothing worth listing followed.
    pub(crate) last: Mark,
    /// All ids, and up to which byte of the marks they were read; loaded when first asked for.
    ids: Option<(HashMap<Uuid, u64>, u64)>,
    /// True if other processes recorded marks that this one has not read yet. Kept, because reading
    /// can fail.
    unread: bool,
}

impl Marks {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            log: SharedLog::new(path),
            last: Mark::default(),
            ids: None,
            unread: true,
        }
    }

    /// Reads the marks of other processes.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        let look = self.log.look()?;
        self.unread |= look != Look::Same;
        if !self.unread {
            return Ok(());
        }
        if look == Look::Restarted {
            self.ids = None;
        }
        let last: Option<Mark> = self
            .log
            .find_last(|line| serde_json::from_slice(line).ok())?
            .filter(|mark: &Mark| mark.seq <= MAX_SEQ);
        let last = last.unwrap_or_default();
        StoreError::check_version(self.log.path(), last.v, VERSION)?;
        if last.seq > self.last.seq {
            (self.last.seq, self.last.at) = (last.seq, last.at);
        }
        if last.copied > self.last.copied {
            (self.last.copied, self.last.from) = (last.copied, last.from);
        }
        self.unread = false;
        Ok(())
    }

    /// Appends marks. The messages they name must be synced already.
    pub(crate) fn append(&mut self, marks: &[Mark]) -> Result<()> {
        let Some(last) = marks.last() else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        for mark in marks {
            mark.write(&mut bytes)?;
        }
        self.log.append(&bytes)?;
        self.last = Mark { id: None, ..*last };
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.log.sync()?)
    }

    /// All ids that are listed.
    fn ids(&mut self) -> Result<&mut HashMap<Uuid, u64>> {
        let (mut ids, from) = self.ids.take().unwrap_or_default();
        let bytes = self.log.read(from, self.log.end())?;
        for line in bytes.split(|b| *b == b'\n') {
            if let Ok(Mark {
                id: Some(id), seq, ..
            }) = serde_json::from_slice(line)
            {
                ids.insert(id, seq);
            }
        }
        let (ids, _) = self.ids.insert((ids, self.log.end()));
        Ok(ids)
    }

    /// Forgets the oldest ids if there are too many, and marks that say nothing new.
    pub(crate) fn shorten(&mut self, tmp: &Path, limit: usize) -> Result<()> {
        let last = self.last;
        let long = self.log.end() > (limit as u64).saturating_mul(2 * LINE);
        let ids = self.ids()?;
        if !long && ids.len() < limit.saturating_mul(2) {
            return Ok(());
        }
        let mut newest: Vec<(u64, Uuid)> = ids.iter().map(|(id, seq)| (*seq, *id)).collect();
        newest.sort_unstable();
        let kept = &newest[newest.len().saturating_sub(limit)..];
        let marks = kept.iter().map(|(seq, id)| Mark {
            seq: *seq,
            at: 0,
            id: Some(*id),
            ..last
        });
        let mut bytes = Vec::new();
        for mark in marks.chain([last]) {
            mark.write(&mut bytes)?;
        }
        // Synced, because the log may not hold what it lists any more.
        atomic::replace(tmp, self.log.path(), &bytes, Durability::Full)?;
        self.refresh()
    }
}

impl Live {
    /// The number of the message with this id, if there is or was one.
    pub(crate) fn seq_of(&mut self, id: Uuid, inbox: &FileInbox) -> Result<Option<u64>> {
        self.check_version()?;
        self.list_marks(inbox)?;
        let limit = inbox.options.limits.remembered_ids;
        self.marks.shorten(&inbox.paths.tmp, limit)?;
        Ok(self.marks.ids()?.get(&id).copied())
    }

    /// Lists what is in the log and not in the marks.
    pub(crate) fn list_marks(&mut self, inbox: &FileInbox) -> Result<()> {
        self.marks.refresh()?;
        let listed = self.marks.last;
        if listed.seq >= self.last_seq {
            return Ok(());
        }
        let start = if self.follows(listed.at, listed.seq)? {
            listed.at
        } else {
            0
        };
        let bytes = self.log.read(start, self.log.end())?;
        let mut mark = listed;
        let mut found = Vec::new();
        let mut offset = 0;
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            offset += line.len();
            // The keys cannot come inside a text: there the quotes are escaped.
            let once = memchr::memmem::find(line, b"\"once\":true").is_some();
            let copy = memchr::memmem::find(line, b"\"broadcast\":").is_some();
            if !once && !copy {
                continue;
            }
            let Ok(parsed) = line::parse(line) else {
                continue;
            };
            let message = parsed.message;
            if message.seq <= listed.seq {
                continue;
            }
            mark.seq = message.seq;
            mark.at = start + offset as u64;
            let copied = message.broadcast.filter(|number| *number > mark.copied);
            if let Some(number) = copied {
                (mark.copied, mark.from) = (number, 0);
            }
            mark.id = message.once.then_some(message.id);
            if mark.id.is_some() || copied.is_some() {
                found.push(mark);
            }
        }
        if !found.is_empty() {
            // A mark must not outlive what it speaks of.
            if inbox.durability() == Durability::Full {
                self.log.sync()?;
            }
            self.marks.append(&found)?;
        }
        self.marks.last.seq = self.last_seq;
        self.marks.last.at = self.log.end();
        Ok(())
    }

    /// True if the line after message `seq` begins at `at`.
    fn follows(&self, at: u64, seq: u64) -> Result<bool> {
        if at == 0 || at >= self.log.end() {
            return Ok(false);
        }
        if self.log.read(at - 1, at)? != b"\n" {
            return Ok(false);
        }
        let next = line::head(&line_at(&self.log, at)?);
        Ok(next.is_some_and(|head| head.seq == seq.saturating_add(1)))
    }
}
