//! The files of a worktree at one moment, to find later changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::git::{Git, path_from, pin, zero_split};

/// The files of a worktree: its commit's content, and every file git sees as changed. Ignored files
/// do not count, so a build changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSnapshot {
    top: PathBuf,
    tree: String,
    files: BTreeMap<PathBuf, u64>,
}

impl TreeSnapshot {
    /// The snapshot of the worktree around `dir`; `None` if git cannot say.
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

    /// The files that differ, sorted.
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

impl TreeSnapshot {
    /// The files that differ and that no commit accounts for, sorted: changes by a merge or a
    /// commit since then do not count.
    pub fn disturbed(&self, now: &Self) -> Vec<PathBuf> {
        let differs = |(path, print): &(&PathBuf, &u64)| self.files.get(*path) != Some(print);
        let now_different = now.files.iter().filter(differs).map(|(path, _)| path);
        // Without a new commit, a change that is gone was reverted by hand.
        let same = self.tree == now.tree;
        let gone = |path: &&PathBuf| same && !now.files.contains_key(*path);
        let all = now_different.chain(self.files.keys().filter(gone));
        let all: BTreeSet<PathBuf> = all.cloned().collect();
        all.into_iter().collect()
    }
}

/// The differences between a worktree and its last commit.
struct ChangedFiles {
    /// Its top directory.
    top: PathBuf,
    /// The tree object of the commit; `None` in a repository without a commit.
    tree: Option<String>,
    /// The line of `git status` for each file, and a fingerprint of its content (0 for none).
    records: Vec<(Vec<u8>, u64)>,
}

impl ChangedFiles {
    /// The changes of the worktree around `dir`; `None` if git cannot say.
    fn around(dir: &Path) -> Option<Self> {
        let top = match pin::tree_around(dir) {
            // A directory in it may have become a repository.
            Some(tree) => tree,
            None => {
                let top = Git::at(dir, "rev-parse").arg("--show-toplevel").line();
                path_from(top.ok()?.as_bytes())
            }
        };
        let tree = Git::at(&top, "rev-parse").arg("HEAD^{tree}").line().ok();
        let bytes = Git::status(&top)
            .args(["--porcelain=v1", "-z", "--no-renames"])
            .args(["--untracked-files=all"])
            .run()
            .ok()?;
        let records = zero_split(&bytes).map(|record| {
            let file = top.join(Self::path(record));
            let content = file.is_file().then(|| store::atomic::read(&file));
            let content = content.and_then(|read| read.ok().flatten());
            let print = content.map_or(0, |bytes| store::fingerprint(&bytes));
            (record.to_owned(), print)
        });
        let records = records.collect();
        Some(Self { top, tree, records })
    }

    /// The path in a record.
    fn path(record: &[u8]) -> PathBuf {
        path_from(record.get(3..).unwrap_or_default())
    }
}

/// A fingerprint of the worktree around `dir`: its commit's content, and every file git sees as
/// changed. `None` if git cannot say.
pub fn fingerprint_of(dir: &Path) -> Option<String> {
    let files = ChangedFiles::around(dir)?;
    let mut seen = files.tree?.into_bytes();
    seen.push(b'\n');
    for (record, print) in files.records {
        seen.extend(record);
        // The content, not the time: writing the same bytes again changes nothing.
        seen.extend_from_slice(&print.to_le_bytes());
    }
    Some(format!("{:016x}", store::fingerprint(&seen)))
}
