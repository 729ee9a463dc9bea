//! What is in a working tree at one moment, to tell later what has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::git::{Git, line, path_from, zero_split};

/// The files of a working tree: its commit's content, and every file git sees as changed.
/// Ignored files do not count, so a build changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    top: PathBuf,
    tree: String,
    files: BTreeMap<PathBuf, u64>,
}

impl Snapshot {
    /// Of the working tree around `dir`; none if git cannot tell.
    pub fn take(dir: &Path) -> Option<Self> {
        let top = Git::at(dir, "rev-parse").args(["--show-toplevel"]).run();
        let top = path_from(line(&top.ok()?).as_bytes());
        let tree = Git::at(&top, "rev-parse").args(["HEAD^{tree}"]).run();
        let bytes = Git::at(&top, "status")
            .args(["--porcelain=v1", "-z", "--no-renames"])
            .args(["--untracked-files=all"])
            .run()
            .ok()?;
        let files = zero_split(&bytes).filter_map(|record| {
            let path = path_from(record.get(3..)?);
            let file = top.join(&path);
            let content = file.is_file().then(|| store::atomic::read(&file));
            let content = content.and_then(|read| read.ok().flatten());
            let print = content.map_or(0, |bytes| store::fingerprint(&bytes));
            Some((path, print))
        });
        let files = files.collect();
        Some(Self {
            // A repository without a commit has no tree.
            tree: tree.map(|bytes| line(&bytes)).unwrap_or_default(),
            files,
            top,
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
