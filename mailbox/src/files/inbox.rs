//! One agent's inbox, and the lock section that contains every change of it.
//!
//! A section begins with a look at the log: its length, and, if another process wrote, the number
//! of its last line. Then broadcasts the inbox does not have yet are copied into it. Then comes the
//! operation itself, for a message one append. Syncing and waking come after the lock is released.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::atomic::{self, Durability};
use store::fault::{pass, reached};
use store::fifo::{self, Ringer};
use store::home::create_private_dir;
use store::name::Name;
use store::shared_log::SyncHandle;
use store::{IoContext, StoreError};

use crate::backend::{Feed, Kept};
use crate::consumer::Consumer;
use crate::error::{MailError, Result};
use crate::fault;
use crate::files::live::Live;
use crate::line;
use crate::listing::Listing;
use crate::message::{Draft, Posted};
use crate::options::MailOptions;

/// One agent's inbox, in its directory.
#[derive(Debug)]
pub(crate) struct FileInbox {
    name: Name,
    /// The name of the locked inbox, for errors.
    what: String,
    pub(crate) paths: Paths,
    pub(crate) options: Arc<MailOptions>,
    live: Mutex<Live>,
    ringer: Mutex<Ringer>,
}

/// The paths of an inbox.
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

impl FileInbox {
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
        let live = Live::new(&paths);
        Self {
            what: format!("the inbox of {name}"),
            name,
            ringer: Mutex::new(Ringer::new(paths.wake.clone())),
            live: Mutex::new(live),
            paths,
            options,
        }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn durability(&self) -> Durability {
        self.options.durability
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    pub(super) fn is_made(&self) -> bool {
        self.paths.log.exists()
    }

    /// Appends a message: one write under the lock, the sync after it.
    pub(crate) fn append(&self, draft: &Draft) -> Result<Posted> {
        let sealed = line::seal(draft, self.now_ms(), None, &self.options.secret_filter)?;
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
            // Another process deleted the whole inbox.
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
        live.lock
            .acquire(|| self.what.as_str(), self.options.lock_timeout)
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the inbox, if it is not there.
    fn prepare(&self) -> Result<()> {
        if self.is_made() && self.paths.wake.exists() {
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

impl Kept for FileInbox {
    fn name(&self) -> &Name {
        &self.name
    }

    fn dir(&self) -> &Path {
        &self.paths.dir
    }

    fn exists(&self) -> bool {
        self.is_made()
    }

    fn has_reader(&self) -> Result<bool> {
        Ok(store::lock::is_held(&self.paths.consumer)?)
    }

    fn consumer(self: Arc<Self>) -> Result<Consumer> {
        self.read()
    }

    fn list(&self, all: bool) -> Result<Listing> {
        self.listing(all)
    }

    fn follow(self: Arc<Self>, since: Option<u64>) -> Result<Box<dyn Feed>> {
        self.feed(since)
    }
}

/// Syncs what was appended to the log at `path`.
pub(crate) fn sync(
    handle: Option<&SyncHandle>,
    path: &Path,
    durability: Durability,
) -> Result<(), StoreError> {
    pass(fault::SYNC).context("sync", path)?;
    match handle {
        Some(handle) if durability == Durability::Full => handle.sync(),
        _ => Ok(()),
    }
}

/// Removes the temporary files in `dir`, all of which dead processes left.
pub(crate) fn sweep(dir: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        atomic::remove(&entry.path())?;
    }
    Ok(())
}
