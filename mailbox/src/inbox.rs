//! One agent's inbox, and the lock section in which everything about it happens.
//!
//! A section begins with a look at the log: how long it is, and, if somebody else wrote, the
//! number of its last line. Then broadcasts the inbox does not have yet are copied into it.
//! Then comes the operation itself, for a message one append. Syncing and waking come after
//! the lock is released.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::StoreError;
use store::atomic::{self, Durability};
use store::fault::{pass, reached};
use store::fifo::{self, Ringer};
use store::home::create_private_dir;
use store::lock::ReusableLock;
use store::name::Name;
use store::shared_log::{Look, SharedLog, SyncHandle};
use uuid::Uuid;

use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::fault;
use crate::line::{self, VERSION};
use crate::mailbox::MailOptions;
use crate::marks::Marks;
use crate::message::Draft;

/// One agent's inbox.
#[derive(Debug)]
pub struct Inbox {
    name: Name,
    /// What its lock protects, for errors.
    what: String,
    pub(crate) paths: Paths,
    pub(crate) options: Arc<MailOptions>,
    live: Mutex<Live>,
    ringer: Mutex<Ringer>,
}

/// What became of a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    /// Its id.
    pub id: Uuid,
    /// Its number in the inbox.
    pub seq: u64,
    /// It was there already: a message with the same id had been sent before.
    pub already: bool,
}

/// Where the parts of an inbox are.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) dir: PathBuf,
    pub(crate) tmp: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) cursor: PathBuf,
    pub(crate) rejected: PathBuf,
    pub(crate) wake: PathBuf,
    pub(crate) consumer: PathBuf,
    pub(crate) activity: PathBuf,
    pub(crate) broadcast: PathBuf,
}

/// What a process keeps of an inbox between sections.
#[derive(Debug)]
pub(crate) struct Live {
    lock: ReusableLock,
    /// The directory and what belongs in it have been made.
    prepared: bool,
    pub(crate) log: SharedLog,
    pub(crate) marks: Marks,
    pub(crate) broadcast: SharedLog,
    /// The inbox has every broadcast up to the end of the log as it was last seen.
    pub(crate) caught_up: bool,
    /// The number of the last message, 0 if there is none.
    pub(crate) last_seq: u64,
    /// Counts how often the log was replaced: offsets hold as long as it stays the same.
    pub(crate) incarnation: u64,
    /// The number of the first message in the log; looked up when it is needed.
    pub(crate) first_seq: Option<u64>,
    /// The log was written by a newer ccb, in this version.
    newer: Option<u64>,
}

impl Inbox {
    pub(crate) fn new(name: Name, dir: PathBuf, team: &Path, options: Arc<MailOptions>) -> Self {
        let paths = Paths {
            tmp: dir.join("tmp"),
            log: dir.join("log.jsonl"),
            cursor: dir.join("cursor.json"),
            rejected: dir.join("rejected.jsonl"),
            wake: dir.join("wake"),
            consumer: dir.join("consumer.lock"),
            activity: dir.join("activity.json"),
            broadcast: team.join("broadcast.jsonl"),
            dir,
        };
        let live = Live {
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
        };
        Self {
            what: format!("the inbox of {name}"),
            name,
            ringer: Mutex::new(Ringer::new(paths.wake.clone())),
            live: Mutex::new(live),
            paths,
            options,
        }
    }

    /// Whose inbox it is.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.paths.dir
    }

    pub(crate) fn durability(&self) -> Durability {
        self.options.durability
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    /// Whether anything was ever sent here.
    pub(crate) fn exists(&self) -> bool {
        self.paths.log.exists()
    }

    /// Appends a message: one write under the lock, the sync after it.
    pub(crate) fn post(&self, draft: &Draft) -> Result<Posted> {
        let sealed = line::seal(draft, self.now_ms(), None)?;
        let id = sealed.id;
        let (posted, handle) = self.section(|live| {
            if draft.id.is_some()
                && let Some(seq) = live.seq_of(id, self)?
            {
                let already = true;
                return Ok((Posted { id, seq, already }, live.log.sync_handle()));
            }
            live.check_room(self)?;
            let seq = live.last_seq + 1;
            let mut bytes = Vec::new();
            sealed.write(seq, &mut bytes);
            live.append(&bytes, seq)?;
            let already = false;
            Ok((Posted { id, seq, already }, live.log.sync_handle()))
        })?;
        self.ring();
        self.sync(handle.as_ref())
            .map_err(|source| MailError::NotDurable { source })?;
        Ok(posted)
    }

    /// Makes what was appended survive a power cut. Outside the lock, where the kernel merges
    /// it with the syncs of others.
    pub(crate) fn sync(&self, handle: Option<&SyncHandle>) -> Result<(), StoreError> {
        sync(handle, &self.paths.log, self.durability())
    }

    /// Wakes a host that waits for mail.
    pub(crate) fn ring(&self) {
        let mut ringer = self.ringer.lock().unwrap_or_else(PoisonError::into_inner);
        ringer.ring();
    }

    /// Copies broadcasts and wakes the reader; what a sender of a broadcast does at its end.
    pub(crate) fn catch_up(&self) -> Result<()> {
        self.section(|_| Ok(()))?;
        self.ring();
        Ok(())
    }

    /// Runs `body` under the inbox's lock, with everything up to date.
    pub(crate) fn section<T>(&self, body: impl FnOnce(&mut Live) -> Result<T>) -> Result<T> {
        let mut live = self.live();
        if !live.prepared {
            self.prepare()?;
            live.prepared = true;
        }
        match self.lock(&mut live) {
            // Somebody deleted the whole inbox.
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.prepare()?;
                self.lock(&mut live)?;
            }
            other => other?,
        }
        let result = live.refresh(self).and_then(|()| body(&mut live));
        live.lock.release();
        result
    }

    fn lock(&self, live: &mut Live) -> Result<(), StoreError> {
        live.lock.acquire(&self.what, self.options.lock_timeout)
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the inbox, if it is not there.
    fn prepare(&self) -> Result<()> {
        if self.exists() && self.paths.wake.exists() {
            return Ok(());
        }
        create_private_dir(&self.paths.tmp)?;
        reached(fault::INBOX_MADE);
        fifo::create(&self.paths.wake)?;
        // Both logs get their names here, so that their names are synced with the rest.
        atomic::open_private(&self.paths.log)?;
        atomic::open_private(&self.paths.broadcast)?;
        let mut dir: Option<&Path> = Some(&self.paths.dir);
        // The inbox, `inboxes`, the team, `teams`, the home.
        for _ in 0..5 {
            if let Some(path) = dir {
                atomic::sync_dir(path, self.durability())?;
                dir = path.parent();
            }
        }
        Ok(())
    }
}

impl Live {
    /// Takes in what others did since the last section.
    fn refresh(&mut self, inbox: &Inbox) -> Result<()> {
        match self.log.look()? {
            Look::Same => {}
            Look::Grown => self.read_last(inbox, false)?,
            Look::Restarted => {
                self.incarnation += 1;
                self.first_seq = None;
                self.read_last(inbox, true)?;
            }
        }
        if self.newer.is_none() {
            self.copy_broadcasts(inbox)?;
        }
        Ok(())
    }

    /// Finds the number of the last message.
    fn read_last(&mut self, inbox: &Inbox, restarted: bool) -> Result<()> {
        let last = self.log.find_last(line::head)?;
        self.newer = last.map(|head| head.v).filter(|v| *v > VERSION);
        let in_log = last.map_or(0, |head| head.seq);
        // A log that was cut off or deleted by hand must not make numbers come again that
        // were acknowledged: such messages would never be shown.
        self.last_seq = if restarted {
            in_log.max(Cursor::load(&inbox.paths.cursor)?.highest())
        } else {
            in_log.max(self.last_seq)
        };
        Ok(())
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
        match self.newer {
            Some(found) => Err(StoreError::NewerVersion {
                path: self.log.path().to_owned(),
                found,
                known: VERSION,
            }
            .into()),
            None => Ok(()),
        }
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
    pub(crate) fn check_room(&mut self, inbox: &Inbox) -> Result<()> {
        let limits = &inbox.options.limits;
        let in_log = (self.last_seq + 1).saturating_sub(self.first_seq()?);
        // What is in the log is at least what is unread; most of the time that is all.
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
        if unread >= limits.unread || self.log.end() >= limits.log_bytes {
            return Err(MailError::Full {
                inbox: inbox.name.to_string(),
                unread,
            });
        }
        Ok(())
    }
}

/// Syncs what was appended to the log at `path`.
pub(crate) fn sync(
    handle: Option<&SyncHandle>,
    path: &Path,
    durability: Durability,
) -> Result<(), StoreError> {
    let injected = pass(fault::SYNC).map_err(|source| StoreError::Io {
        verb: "sync",
        path: path.to_owned(),
        source,
    });
    injected.and_then(|()| match handle {
        Some(handle) if durability == Durability::Full => handle.sync(),
        _ => Ok(()),
    })
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
