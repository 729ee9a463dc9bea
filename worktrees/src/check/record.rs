//! The record of a check tree: `checks/<name>.json`.
//!
//! The file says that the directory of this name is ours, so that one that is damaged can be
//! told from somebody else's. It is derived: without it the tree is thrown away.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::atomic::{self, Durability};

use crate::check::repository::Traits;
use crate::error::TreeError;
use crate::layout::Layout;
use crate::repository::MARKER;

const VERSION: u64 = 1;

/// The record of one check tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CheckState {
    v: u64,
    /// Somebody makes it or runs a check in it, or died doing so.
    pub(crate) busy: bool,
    pub(crate) traits: Traits,
    /// What the set-up copied into it, with the time of the original.
    pub(crate) copied: BTreeMap<String, FileTime>,
}

/// When something was last changed: seconds and nanoseconds.
pub(crate) type FileTime = (i64, i64);

/// When the content of what is at `path` was last changed.
pub(crate) fn modified(path: &Path) -> Option<FileTime> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.mtime(), meta.mtime_nsec()))
}

/// When anything about what is at `path` last changed, which nobody can set.
pub(crate) fn touched(path: &Path) -> Option<FileTime> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.ctime(), meta.ctime_nsec()))
}

impl CheckState {
    /// Of a tree that is being made.
    pub(crate) fn new(traits: Traits) -> Self {
        Self {
            v: VERSION,
            busy: true,
            traits,
            copied: BTreeMap::new(),
        }
    }

    /// As it was left; `None` if there is no such tree, or if its file cannot be used.
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

    /// True if the directory of this name is a check tree, whatever is left of it.
    pub(crate) fn is_ours(layout: &Layout, name: &str) -> bool {
        let marker = layout.trees().join(name).join(".git").join(MARKER);
        Self::path(layout, name).exists() || marker.is_file()
    }
}
