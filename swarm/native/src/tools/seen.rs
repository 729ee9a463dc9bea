//! Which files the model has seen, and as what.

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

/// What tells one content of a file from the next.
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

/// How the model knows a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// As it is.
    AsItIs,
    /// As it was.
    Before,
    /// Not at all.
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

    /// Whether it has, and whether it is still the same.
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
