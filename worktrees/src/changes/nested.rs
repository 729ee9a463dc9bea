//! Repositories inside a worktree that its index knows: submodules, and clones that were added.
//!
//! `git status` compares only their HEAD (see [`crate::git::SKIP_NESTED`]), so that no
//! configuration in them runs anything. git does not report other work in them; so a worktree that
//! has one with files counts as changed.

use std::path::Path;

use memchr::memmem;
use store::atomic;

use crate::error::TreeError;
use crate::git::{Git, path_from, zero_split};
use crate::layout::entries;

/// The mode of an entry for another repository, as every form of an index has it.
const GITLINK: [u8; 4] = 0o160_000_u32.to_be_bytes();

/// The number of repositories that the index in `admin` names and that have files in `tree`.
pub(super) fn count(tree: &Path, admin: &Path) -> Result<usize, TreeError> {
    let shared = entries(admin)
        .into_iter()
        .filter(|path| is_shared_index(path));
    let mut may_have = false;
    for file in shared.chain([admin.join("index")]) {
        let bytes = atomic::read(&file)?.unwrap_or_default();
        may_have |= memmem::find(&bytes, &GITLINK).is_some();
    }
    // Hardly any index has these four bytes for another reason.
    if !may_have {
        return Ok(0);
    }
    let listed = Git::at(tree, "ls-files").args(["--stage", "-z"]).run()?;
    let inside = zero_split(&listed).filter(|record| {
        let tab = record.iter().position(|byte| *byte == b'\t');
        let path = tab.and_then(|tab| record.get(tab + 1..));
        record.starts_with(b"160000 ") && path.is_some_and(|path| has_files(tree, path))
    });
    Ok(inside.count())
}

/// True if the submodule has files; one that was not initialised is an empty directory.
fn has_files(tree: &Path, path: &[u8]) -> bool {
    let dot_git = tree.join(path_from(path)).join(".git");
    std::fs::symlink_metadata(dot_git).is_ok()
}

/// A split index keeps most of its entries in such a file.
fn is_shared_index(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("sharedindex."))
}
