//! What processes tell each other through `.ccb/slots`, a file of short fixed-length lines.
//!
//! The first line is the mtime the list's directory had when a process last left it with
//! everything in the index. If it has another one, something foreign happened. The second
//! line says how far the index file has come, so that not every process writes it.
//!
//! Every other line belongs to one process at a time, the *worker* that holds the kernel lock
//! on `.ccb/workers/<n>`, and names the task it is about to claim. Others pick something else
//! meanwhile. This is a courtesy, not a lock: what counts is the check when the claim is
//! written. So a stale line can cost a moment, never a task.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use store::StoreError;
use store::atomic::open_private;
use store::home::create_private_dir;
use store::lock::FileLock;

use crate::error::BoardError;
use crate::id::TaskId;

const WIDTH: usize = 32;
/// Lines before those of the workers.
const HEADER: usize = 2;
/// More processes than this simply do not announce what they are about to claim.
const WORKERS: u64 = 256;

#[derive(Debug)]
pub(crate) struct Slots {
    path: PathBuf,
    file: File,
    workers: PathBuf,
    /// Ours, once we needed one.
    worker: Option<(u64, FileLock)>,
}

impl Slots {
    pub(crate) fn open(ours: &Path) -> Result<Self, BoardError> {
        let path = ours.join("slots");
        let file = open_private(&path)?;
        Ok(Self {
            path,
            file,
            workers: ours.join("workers"),
            worker: None,
        })
    }

    /// The directory's mtime when it was last left in order.
    pub(crate) fn settled(&self) -> Result<Option<i64>, BoardError> {
        let mut line = [0; WIDTH];
        let count = self
            .file
            .read_at(&mut line, 0)
            .map_err(|e| self.error("read", e))?;
        Ok(parse(&line[..count]))
    }

    pub(crate) fn set_settled(&self, mtime_ns: i64) -> Result<(), BoardError> {
        self.write(0, &mtime_ns.to_string())
    }

    /// Up to where in the log somebody has written the index file.
    pub(crate) fn indexed(&self) -> Result<Option<u64>, BoardError> {
        let mut line = [0; WIDTH];
        let count = self
            .file
            .read_at(&mut line, WIDTH as u64)
            .map_err(|e| self.error("read", e))?;
        Ok(parse(&line[..count]))
    }

    pub(crate) fn set_indexed(&self, offset: u64) -> Result<(), BoardError> {
        self.write(1, &offset.to_string())
    }

    /// What living workers other than this one are about to claim. Lines of dead ones are
    /// cleared. The caller holds the list's lock.
    pub(crate) fn reserved(&self, check_alive: bool) -> Result<HashSet<TaskId>, BoardError> {
        let mut bytes = vec![0; WIDTH * (64 + HEADER)];
        let mut count = self
            .file
            .read_at(&mut bytes, 0)
            .map_err(|e| self.error("read", e))?;
        if count == bytes.len() {
            bytes.resize(WIDTH * (usize::try_from(WORKERS).unwrap_or(0) + HEADER), 0);
            count = self
                .file
                .read_at(&mut bytes, 0)
                .map_err(|e| self.error("read", e))?;
        }
        let own = self.worker.as_ref().map(|(n, _)| *n);
        let mut reserved = HashSet::new();
        for (n, line) in (0..).zip(bytes[..count].chunks(WIDTH).skip(HEADER)) {
            let Some(id) = parse(line).and_then(TaskId::new) else {
                continue;
            };
            if Some(n) == own {
                continue;
            }
            if check_alive && FileLock::try_exclusive(&self.worker_path(n))?.is_some() {
                self.write_worker(n, "")?;
                continue;
            }
            reserved.insert(id);
        }
        Ok(reserved)
    }

    /// Announces that this process is about to claim `id`.
    pub(crate) fn reserve(&mut self, id: TaskId) -> Result<(), BoardError> {
        if self.worker.is_none() {
            self.worker = self.become_worker()?;
        }
        match &self.worker {
            Some((n, _)) => self.write_worker(*n, &id.to_string()),
            None => Ok(()),
        }
    }

    /// Takes the announcement back.
    pub(crate) fn clear(&self) -> Result<(), BoardError> {
        match &self.worker {
            Some((n, _)) => self.write_worker(*n, ""),
            None => Ok(()),
        }
    }

    fn become_worker(&self) -> Result<Option<(u64, FileLock)>, BoardError> {
        create_private_dir(&self.workers)?;
        for n in 0..WORKERS {
            if let Some(lock) = FileLock::try_exclusive(&self.worker_path(n))? {
                return Ok(Some((n, lock)));
            }
        }
        Ok(None)
    }

    fn worker_path(&self, n: u64) -> PathBuf {
        self.workers.join(n.to_string())
    }

    fn write_worker(&self, n: u64, text: &str) -> Result<(), BoardError> {
        self.write(n + HEADER as u64, text)
    }

    fn write(&self, n: u64, text: &str) -> Result<(), BoardError> {
        let line = format!("{text:<width$}\n", width = WIDTH - 1);
        self.file
            .write_all_at(line.as_bytes(), n * WIDTH as u64)
            .map_err(|error| self.error("write", error))
    }

    fn error(&self, verb: &'static str, source: io::Error) -> BoardError {
        StoreError::Io {
            verb,
            path: self.path.clone(),
            source,
        }
        .into()
    }
}

fn parse<T: std::str::FromStr>(line: &[u8]) -> Option<T> {
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> TaskId {
        TaskId::new(n).unwrap()
    }

    #[test]
    fn reservations_are_seen_by_others_until_their_worker_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Slots::open(dir.path()).unwrap();
        let second = Slots::open(dir.path()).unwrap();
        assert_eq!(second.settled().unwrap(), None);
        first.set_settled(-5).unwrap();
        first.reserve(id(7)).unwrap();
        assert_eq!(second.settled().unwrap(), Some(-5));
        assert_eq!(second.reserved(true).unwrap(), HashSet::from([id(7)]));
        assert!(
            first.reserved(true).unwrap().is_empty(),
            "its own does not count"
        );
        drop(first);
        assert_eq!(second.reserved(false).unwrap(), HashSet::from([id(7)]));
        assert!(second.reserved(true).unwrap().is_empty());
        assert!(second.reserved(false).unwrap().is_empty(), "it was cleared");
    }
}
