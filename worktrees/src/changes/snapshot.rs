//! What is in a working tree at one moment, to tell later what has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::changes::ChangedFiles;
use crate::git::{Git, path_from, zero_split};

/// The files of a working tree: its commit's content, and every file git sees as changed.
/// Ignored files do not count, so a build changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSnapshot {
    top: PathBuf,
    tree: String,
    files: BTreeMap<PathBuf, u64>,
}

impl TreeSnapshot {
    /// Of the working tree around `dir`; none if git cannot tell.
    pub fn take(dir: &Path) -> Option<Self> {
        let found = ChangedFiles::around(dir)?;
        let files = found.records.iter();
        Some(Self {
            files: files
                .map(|(record, print)| (ChangedFiles::path(record), *print))
                .collect(),
            tree: found.tree.unwrap_or_default(),
            top: found.top,
        })
    }

    /// The files that are not as they were, sorted.
    pub fn changed(&self, now: &Self) -> Vec<PathBuf> {
        let differs = |path: &&PathBuf| self.files.get(*path) != now.files.get(*path);
        let both = self.files.keys().chain(now.files.keys());
        let mut changed: BTreeSet<PathBuf> = both.filter(differs).cloned().collect();
        if self.tree != now.tree {
            let committed = Git::at(&self.top, "diff-tree")
                .args(["-r", "--name-only", "-z", &self.tree, &now.tree])
                .run();
            let committed = committed.unwrap_or_default();
            changed.extend(zero_split(&committed).map(path_from));
        }
        changed.into_iter().collect()
    }
}
