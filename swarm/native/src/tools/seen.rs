//! The files that the model has seen, and their content at that time.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Remembers files that were read or written, so that none is changed unseen. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    files: Arc<Mutex<HashMap<PathBuf, Version>>>,
}

/// Tells one content of a file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Version {
    fn of(meta: &Metadata) -> Self {
        Self {
            inode: meta.ino(),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// The model's knowledge of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The model has seen its present content.
    AsItIs,
    /// The model has seen an earlier content.
    Before,
    /// The model has not seen it.
    Never,
}

impl Seen {
    /// The model has seen this file, which is at `path` with links followed.
    pub(super) fn note(&self, path: &Path, file: &File) -> io::Result<()> {
        let version = Version::of(&file.metadata()?);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(path.to_owned(), version);
        Ok(())
    }

    /// Tells if the agent has read the file, and if the file is still the same.
    pub(super) fn known(&self, path: &Path, file: &File) -> io::Result<Known> {
        let now = Version::of(&file.metadata()?);
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match files.get(path) {
            Some(version) if *version == now => Known::AsItIs,
            Some(_) => Known::Before,
            None => Known::Never,
        })
    }
}
