//! The worktree that a program is in.

use std::path::{Path, PathBuf};

/// The worktree that `dir` is in: the nearest directory above with a `.git`, else `dir`.
pub fn tree_around(dir: &Path) -> PathBuf {
    let mut above = dir.ancestors();
    let tree = above.find(|dir| std::fs::symlink_metadata(dir.join(".git")).is_ok());
    tree.unwrap_or(dir).to_owned()
}
