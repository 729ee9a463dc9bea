//! A task's file before and after a change.

use store::atomic::{Durability, Staged};

use crate::error::BoardError;
use crate::files::Files;
use crate::format;
use crate::task::Task;

/// A task's new file, written and synced, but not in its place.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) task: Task,
    pub(crate) staged: Staged,
    pub(crate) fingerprint: u64,
}

impl Prepared {
    pub(crate) fn new(files: &Files, task: Task) -> Result<Self, BoardError> {
        Self::write(files, task, files.durability())
    }

    /// A written file that another process is to sync.
    pub(crate) fn unsynced(files: &Files, task: Task) -> Result<Self, BoardError> {
        Self::write(files, task, Durability::Relaxed)
    }

    /// A change that was written before and [kept](Self::keep).
    pub(crate) fn adopt(task: Task, staged: Staged, fingerprint: u64) -> Self {
        Self {
            task,
            staged,
            fingerprint,
        }
    }

    fn write(files: &Files, task: Task, durability: Durability) -> Result<Self, BoardError> {
        let bytes = format::to_bytes(&task);
        let staged = Staged::write(&files.tmp_dir(), &bytes, durability)?;
        Ok(Self {
            task,
            staged,
            fingerprint: store::fingerprint(&bytes),
        })
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Leaves the file for later; returns its name.
    pub(crate) fn keep(mut self) -> String {
        self.staged.keep();
        self.staged.name()
    }
}
