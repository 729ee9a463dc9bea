//! The record of a check worktree: `checks/<name>.json`.
//!
//! The file says that the directory of this name is ccb's, which tells a damaged one from a foreign
//! directory. The file is derived: if it is missing, ccb deletes the worktree.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::atomic::{self, Durability};

use crate::check::repository::Traits;
use crate::error::TreeError;
use crate::git::MARKER;
use crate::layout::Layout;

const VERSION: u64 = 1;

/// The record of one check worktree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CheckState {
    v: u64,
    /// True if a process makes it or runs a check in it, or died doing so.
    pub(crate) busy: bool,
    pub(crate) traits: Traits,
    /// The files that the set-up copied into it, with the time of the original.
    pub(crate) copied: BTreeMap<String, FileTime>,
}

/// A time of change: seconds and nanoseconds.
pub(crate) type FileTime = (i64, i64);

/// The last change of the content at `path`.
pub(crate) fn modified(path: &Path) -> Option<FileTime> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.mtime(), meta.mtime_nsec()))
}

/// The last change of the file at `path` or its metadata, which no program can set.
pub(crate) fn touched(path: &Path) -> Option<FileTime> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.ctime(), meta.ctime_nsec()))
}

impl CheckState {
    /// The record of a worktree that is being made.
    pub(crate) fn new(traits: Traits) -> Self {
        Self {
            v: VERSION,
            busy: true,
            traits,
            copied: BTreeMap::new(),
        }
    }

    /// The stored record; `None` if there is no such worktree, or if its file cannot be used.
    pub(crate) fn load(layout: &Layout, name: &str) -> Option<Self> {
        let bytes = atomic::read(&Self::path(layout, name)).ok()??;
        let state: Self = serde_json::from_slice(&bytes).ok()?;
        (state.v == VERSION).then_some(state)
    }

    pub(crate) fn save(&mut self, layout: &Layout, name: &str) -> Result<(), TreeError> {
        self.v = VERSION;
        let path = Self::path(layout, name);
        let bytes = serde_json::to_vec(self).map_err(|error| TreeError::Registry {
            path: path.clone(),
            why: error.to_string(),
        })?;
        let tmp = layout.tmp();
        Ok(atomic::replace(&tmp, &path, &bytes, Durability::Relaxed)?)
    }

    pub(crate) fn path(layout: &Layout, name: &str) -> PathBuf {
        layout.checks().join(format!("{name}.json"))
    }

    /// True if the directory of this name is a check worktree, in whatever state.
    pub(crate) fn is_ours(layout: &Layout, name: &str) -> bool {
        let marker = layout.trees().join(name).join(".git").join(MARKER);
        Self::path(layout, name).exists() || marker.is_file()
    }
}
