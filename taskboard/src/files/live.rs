//! The state that a process keeps between lock sections: the open files and the index.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use store::atomic::{self, Durability, Stamp};
use store::clock::monotonic_ns;
use store::fault::reached;
use store::home::create_private_dir;
use store::lock::ReusableLock;
use store::log::{LogTail, read_from};
use store::{IoContext, StoreError};

use crate::error::BoardError;
use crate::fault;
use crate::files::index_file::{self, Position};
use crate::files::log::{self, Draft, LOG_VERSION, Paths, head, log_identity};
use crate::files::read::{self, Read};
use crate::files::slots::Slots;
use crate::files::{Files, records_dir};
use crate::id::TaskId;
use crate::rules::index::Index;
use crate::task::Status;

/// The log is rotated when it is larger than this.
const ROTATE_AT: u64 = 16 * 1024 * 1024;
/// The index file is written when at least this much was logged since, and at least as much
/// as the file is long, so that its cost per change does not grow with the board.
const INDEX_EVERY: u64 = 256 * 1024;

/// A few dozen changes.
const FAR_BEHIND: u64 = 32 * 1024;

/// A board as one process has it open.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) lock: ReusableLock,
    loaded: Option<Loaded>,
}

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) index: Index,
    pub(crate) slots: Slots,
    paths: Paths,
    log: LogTail,
    seq: u64,
    max_id: u64,
    /// The position of the index file in the log, and the file's length.
    index_at: u64,
    index_size: u64,
    /// The inode of the directory; another one means that the list was deleted and created again.
    dir_inode: u64,
    /// The directory's mtime at the beginning of the section.
    dir_mtime: i64,
    /// The newest format found in the log.
    newest_format: u64,
    /// True if the index may differ from the files.
    doubtful: bool,
    /// True if the index file is missing or wrong, which every starting process pays for.
    index_due: bool,
    /// Tasks whose check may differ from the record, and if they were completed before that was
    /// seen.
    pub(crate) disputed: BTreeMap<TaskId, bool>,
    /// True if the checks of this list have no record yet.
    unrecorded: bool,
    /// The error of this process's own task, in a section that served others as well; `None`
    /// without one.
    pub(crate) own_error: Option<BoardError>,
}

/// The result of reading every file.
pub(crate) struct Scanned {
    pub(crate) drafts: Vec<Draft>,
    /// The directory's mtime before the read: the next read finds later changes.
    pub(crate) settled: i64,
}

impl Live {
    /// The lock of the list in `dir`.
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            lock: ReusableLock::with_queue(dir.join(".lock"), dir.join(".ccb/queue")),
            loaded: None,
        }
    }

    /// The state that the last section loaded; `None` if there was none.
    pub(crate) fn loaded(&mut self) -> Option<&mut Loaded> {
        self.loaded.as_mut()
    }

    /// Brings the index up to date with everything ccb processes did. The lock is held.
    pub(crate) fn sync(&mut self, files: &Files) -> Result<&mut Loaded, BoardError> {
        let meta = dir_meta(&files.dir)?;
        let dir_inode = meta.ino();
        let usable = match &mut self.loaded {
            Some(loaded) if loaded.dir_inode == dir_inode => loaded.follow_log()?,
            _ => false,
        };
        if !usable {
            self.loaded = None;
        }
        let loaded = match &mut self.loaded {
            Some(loaded) => loaded,
            empty => empty.insert(Loaded::open(files, dir_inode)?),
        };
        StoreError::check_version(&loaded.paths.log, loaded.newest_format, LOG_VERSION)?;
        loaded.dir_mtime = Stamp::of(&meta).mtime_ns;
        Ok(loaded)
    }
}

impl Loaded {
    fn open(files: &Files, dir_inode: u64) -> Result<Self, BoardError> {
        // Another process may have deleted all of ccb's files under a process that has the board
        // open.
        files.create_dirs()?;
        let ours = files.dir.join(".ccb");
        let paths = Paths::new(&ours);
        let file = atomic::read(&files.index_path())?;
        let index_size = file.as_ref().map_or(0, Vec::len) as u64;
        let (index, at) = file
            .as_deref()
            .and_then(index_file::decode)
            .unwrap_or_default();
        let in_log = at.log == log_identity(&paths.log)?;
        let mut loaded = Self {
            index,
            slots: Slots::open(&ours)?,
            log: LogTail::new(paths.log.clone(), if in_log { at.offset } else { 0 }),
            seq: at.seq,
            max_id: at.max_id,
            index_at: if in_log { at.offset } else { 0 },
            index_size,
            dir_inode,
            dir_mtime: 0,
            newest_format: 0,
            doubtful: false,
            index_due: false,
            disputed: BTreeMap::new(),
            unrecorded: !records_dir(&files.dir).is_dir(),
            own_error: None,
            paths,
        };
        if !in_log {
            // It is somewhere in the log before this one, or in a deleted one.
            let in_old = at.log == log_identity(&loaded.paths.old)?;
            let lines = read_from(&loaded.paths.old, if in_old { at.offset } else { 0 })?.lines;
            lines.iter().for_each(|line| loaded.apply(line));
            loaded.doubtful |= !in_old;
        }
        let fresh = loaded.log.read_new()?;
        loaded.doubtful |= fresh.restarted;
        loaded.apply_all(&fresh.bytes);
        Ok(loaded)
    }

    /// Reads the lines that other processes logged; `false` if they do not continue the known
    /// state.
    fn follow_log(&mut self) -> Result<bool, BoardError> {
        let fresh = self.log.read_new()?;
        self.apply_all(&fresh.bytes);
        Ok(!fresh.restarted && !self.doubtful)
    }

    fn apply_all(&mut self, bytes: &[u8]) {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            if end > from {
                self.apply(&bytes[from..end]);
            }
            from = end + 1;
        }
    }

    fn apply(&mut self, line: &[u8]) {
        let Some(head) = head(line) else {
            tracing::warn!(log = %self.paths.log.display(), "malformed line skipped");
            self.doubtful = true;
            return;
        };
        self.newest_format = self.newest_format.max(head.v);
        if head.seq <= self.seq {
            return;
        }
        // A gap: part of the history is gone, and with it the changes of the tasks.
        self.doubtful |= head.seq > self.seq + 1;
        self.seq = head.seq;
        self.max_id = self.max_id.max(head.id.get());
        match head.slim {
            Some(slim) => self.index.put(head.id, slim),
            None => self.index.remove(head.id),
        }
    }

    /// Wakes a worker that waits to be served, so that it serves itself. Skips a worker that would
    /// first have to read all of this process's changes: another process comes by soon.
    pub(crate) fn wake_one_who_waits(&mut self) {
        if let Some((worker, seen)) = self.slots.somebody_waits()
            && self.log.end().saturating_sub(seen) <= FAR_BEHIND
        {
            self.slots.wake(worker);
        }
    }

    /// The position up to which this process has read the log.
    pub(crate) fn seen(&self) -> u64 {
        self.log.end()
    }

    /// True if other processes have changed so much since this process's last section that reading
    /// it would take longer than a few claims, and an active process would not have to.
    pub(crate) fn should_stand_back(&mut self) -> Result<bool, BoardError> {
        let better = self.log.end() + FAR_BEHIND;
        Ok(self.log.behind() > FAR_BEHIND && self.slots.others_have_seen()? > better)
    }

    /// The number of the last change.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// The highest id that is in use or in the history that is left.
    pub(crate) fn max_id(&self) -> u64 {
        self.max_id.max(self.index.max_id())
    }

    /// True if something other than ccb may have changed the directory.
    pub(crate) fn foreign_change(&self) -> Result<bool, BoardError> {
        Ok(self.doubtful || self.unrecorded || self.slots.settled()? != Some(self.dir_mtime))
    }

    /// Compares every file with the index and reads the ones that differ. `recovered` names the
    /// changes that this process redid after a crash.
    pub(crate) fn scan(
        &mut self,
        files: &Files,
        recovered: &HashMap<TaskId, &'static str>,
    ) -> Result<Scanned, BoardError> {
        let dir = &files.dir;
        let started = monotonic_ns();
        let settled = Stamp::of(&dir_meta(dir)?).mtime_ns;
        let mut drafts = Vec::new();
        let ids = read::list_ids(dir)?;
        for id in &ids {
            let Some(stamp) = stamp_on_disk(dir, *id) else {
                continue;
            };
            if self.stamp(*id) != Some(stamp) || self.doubtful || self.unrecorded {
                drafts.extend(self.refresh(dir, *id, recovered.get(id).copied())?);
            }
        }
        let gone: Vec<TaskId> = self
            .index
            .iter()
            .map(|(id, _)| id)
            .filter(|id| !ids.contains(id))
            .collect();
        for id in gone {
            drafts.extend(self.refresh(dir, id, recovered.get(&id).copied())?);
        }
        let bad: Vec<TaskId> = self
            .index
            .unreadable()
            .keys()
            .filter(|id| !ids.contains(id))
            .copied()
            .collect();
        bad.into_iter().for_each(|id| self.index.remove(id));
        self.index_due |= std::mem::take(&mut self.doubtful);
        if std::mem::take(&mut self.unrecorded) {
            create_private_dir(&records_dir(dir))?;
        }
        self.slots.set_scanned(started)?;
        Ok(Scanned { drafts, settled })
    }

    /// The stamp of a task's file when it was last read.
    fn stamp(&self, id: TaskId) -> Option<Stamp> {
        match self.index.get(id) {
            Some(slim) => Some(slim.stamp),
            None => self.index.unreadable().get(&id).copied(),
        }
    }

    /// True if the file of a task is as it was when it was last read.
    pub(crate) fn knows(&self, dir: &Path, id: TaskId) -> bool {
        self.stamp(id) == stamp_on_disk(dir, id)
    }

    /// Reads one task's present file; returns the change, if there is one. `op` is this process's
    /// own operation on it.
    pub(crate) fn refresh(
        &mut self,
        dir: &Path,
        id: TaskId,
        op: Option<&'static str>,
    ) -> Result<Option<Draft>, BoardError> {
        let before = self.index.get(id);
        let was_done = before.is_some_and(|slim| slim.status == Status::Completed);
        let before = before.map(|slim| slim.fingerprint);
        let foreign = op.is_none();
        match read::read_task(dir, id)? {
            Read::Task(entry) => {
                let slim = entry.slim();
                self.index.put(id, slim.clone());
                let changed = before != Some(entry.fingerprint);
                if changed || self.unrecorded {
                    self.attend_check(dir, &entry.task, was_done);
                }
                if !changed {
                    return Ok(None);
                }
                let guess = if before.is_some() { "update" } else { "create" };
                let op = op.unwrap_or(guess);
                Ok(Some(Draft {
                    op,
                    id,
                    after: Some((slim, entry.task.to_json())),
                    foreign,
                }))
            }
            Read::Absent => {
                self.index.remove(id);
                // A file that vanished may come back, with another check.
                if !foreign {
                    self.forget_check(dir, id);
                }
                let op = op.unwrap_or("delete");
                Ok(before.map(|_| Draft {
                    op,
                    id,
                    after: None,
                    foreign,
                }))
            }
            // No change to speak of until it can be read again, but it blocks what waits.
            Read::Unreadable(bad) => {
                let meta = std::fs::symlink_metadata(&bad.path);
                let stamp = meta.map(|meta| Stamp::of(&meta)).unwrap_or_default();
                self.index.put_unreadable(id, stamp);
                Ok(None)
            }
        }
    }

    /// Numbers `drafts` and writes them down. The index has them already.
    pub(crate) fn append(&mut self, files: &Files, drafts: &[Draft]) -> Result<(), BoardError> {
        if !drafts.is_empty() {
            let bytes = log::lines(drafts, self.seq, files.now_ms())?;
            self.log.append(&bytes)?;
            self.seq += drafts.len() as u64;
            for draft in drafts {
                self.max_id = self.max_id.max(draft.id.get());
            }
        }
        // Only now: an index file must not know anything the log does not say.
        let full = self.log.end() >= ROTATE_AT;
        if full || self.index_due || self.index_is_old()? {
            self.write_index(files)?;
        }
        if full {
            // The index file belongs to the log that is moved, and is valid before and after.
            atomic::rename(&self.paths.log, &self.paths.old)?;
            reached(fault::LOG_ROTATED);
            self.log = LogTail::new(self.paths.log.clone(), 0);
            self.index_at = 0;
            self.slots.set_indexed(0)?;
        }
        Ok(())
    }

    /// True if so much was logged since the index file was written that it is worth writing it
    /// again.
    fn index_is_old(&mut self) -> Result<bool, BoardError> {
        let limit = INDEX_EVERY.max(self.index_size);
        if self.log.end().saturating_sub(self.index_at) <= limit {
            return Ok(false);
        }
        // Another process may have done it; an offset behind the end is from before a rotation.
        if let Some(at) = self.slots.indexed()?.filter(|at| *at <= self.log.end()) {
            self.index_at = at;
        }
        Ok(self.log.end().saturating_sub(self.index_at) > limit)
    }

    fn write_index(&mut self, files: &Files) -> Result<(), BoardError> {
        let at = Position {
            seq: self.seq,
            offset: self.log.end(),
            log: log_identity(&self.paths.log)?,
            max_id: self.max_id,
        };
        let bytes = index_file::encode(&self.index, at);
        atomic::replace(
            &files.tmp_dir(),
            &files.index_path(),
            &bytes,
            Durability::Relaxed,
        )?;
        self.slots.set_indexed(at.offset)?;
        self.index_at = at.offset;
        self.index_due = false;
        self.index_size = bytes.len() as u64;
        Ok(())
    }
}

fn stamp_on_disk(dir: &Path, id: TaskId) -> Option<Stamp> {
    let meta = std::fs::symlink_metadata(dir.join(id.file_name()));
    meta.ok().map(|meta| Stamp::of(&meta))
}

fn dir_meta(dir: &Path) -> Result<std::fs::Metadata, StoreError> {
    std::fs::metadata(dir).context("read", dir)
}
