//! Work that no commit has, because git was told to ignore it.

use std::path::Path;

use crate::error::TreeError;
use crate::git::{Git, path_from, zero_split};

/// Maximum of files named.
const MAX_NAMED: usize = 5;

/// Describes the files in the worktree `of` that are hidden from git and not in `check`; `None` if
/// there are none, or if git cannot say.
pub(crate) fn describe(of: &Path, check: &Path) -> Option<String> {
    let found = marked(of).and_then(|mut found| {
        found.extend(ignored(of, check)?);
        Ok(found)
    });
    let found = found
        .map_err(|error| tracing::info!(%error, "cannot tell what is hidden from git"))
        .ok()?;
    let count = found.len();
    let mut names = found
        .into_iter()
        .take(MAX_NAMED)
        .collect::<Vec<_>>()
        .join(", ");
    if count > MAX_NAMED {
        names.push_str(&format!(" and {} more", count - MAX_NAMED));
    }
    match count {
        0 => None,
        1 => Some(format!(
            "1 file of the worktree is hidden from git, so the commit that was checked does not \
             have it: {names}"
        )),
        _ => Some(format!(
            "{count} files of the worktree are hidden from git, so the commit that was checked \
             does not have them: {names}"
        )),
    }
}

/// Files that git must not compare, with the mark that says so.
fn marked(tree: &Path) -> Result<Vec<String>, TreeError> {
    let listed = Git::at(tree, "ls-files").args(["-v", "-z"]).run()?;
    let marked = zero_split(&listed).filter_map(|record| {
        let (tag, path) = (record.first()?, record.get(2..)?);
        let name = String::from_utf8_lossy(path).into_owned();
        match tag {
            // Where only some paths are checked out, the others have this mark and no file.
            b'S' if std::fs::symlink_metadata(tree.join(path_from(path))).is_err() => None,
            b'S' => Some(format!("{name} (skip-worktree)")),
            tag if tag.is_ascii_lowercase() => Some(format!("{name} (assume-unchanged)")),
            _ => None,
        }
    });
    Ok(marked.collect())
}

/// Ignored files that the check worktree does not have: files that a check makes itself are in
/// both.
fn ignored(tree: &Path, check: &Path) -> Result<Vec<String>, TreeError> {
    let ignored = crate::changes::ignored(tree)?;
    let only_here = ignored
        .iter()
        .filter(|path| std::fs::symlink_metadata(check.join(path)).is_err());
    Ok(only_here
        .map(|path| format!("{} (ignored)", path.display()))
        .collect())
}
