//! Landings that a kill or a power cut interrupted where the branch is checked out.
//!
//! git writes the files, then the index, then the branch, and syncs too little of it. It may leave
//! files with the new content, the beginning of it, or none at all beside a branch that has not
//! moved, or old ones beside one that has, and the lock of a git that is gone. That would stop
//! git's own next try. The note in the registry (`pending`) says which files may be affected.

use std::path::Path;

use store::atomic;

use crate::error::TreeError;
use crate::git::{Git, files, locks, path_from, reference_of, zero_split};
use crate::layout::Layout;
use crate::merge::Target;
use crate::registry::{Entry, LandingRecord, Registry};
use crate::trees::Trees;

impl Trees {
    /// Cleans up after every landing whose process died before it was confirmed. The landing lock
    /// is held, so none of them is under way.
    pub(crate) fn settle_landings(&self) -> Result<(), TreeError> {
        for entry in Registry::load(&self.layout)?.worktrees {
            let Some(landed) = entry.merged.as_ref().filter(|landed| landed.pending) else {
                continue;
            };
            if let Err(error) = self.settle_landing(&entry, landed) {
                tracing::warn!(worktree = entry.name, %error, "its landing is not cleaned up");
            }
        }
        self.settle_undos()
    }

    /// Restores each file of the checkout that git may have left half way, from the branch.
    fn settle_landing(&self, entry: &Entry, landed: &LandingRecord) -> Result<(), TreeError> {
        let target = Target::find(&self.layout, Some(&landed.into))?;
        let Some(dir) = target.checkout.as_deref().filter(|dir| dir.is_dir()) else {
            return Ok(());
        };
        self.drop_leftovers(dir, &landed.into)?;
        let history = self.layout.history();
        let moved = history.is_ancestor(&landed.commit, &target.tip)?;
        let other = match (moved, &entry.base) {
            (false, _) => &landed.commit,
            (true, Some(base)) => base,
            (true, None) => return Ok(()),
        };
        put_back(&self.layout, dir, &target.tip, other)
    }

    /// Removes the locks of dead gits, which stop every other one, and an empty `ORIG_HEAD`, which
    /// makes the next merge fail.
    pub(crate) fn drop_leftovers(&self, dir: &Path, branch: &str) -> Result<(), TreeError> {
        let git_dir = match dir == self.layout.main {
            true => self.layout.common.clone(),
            false => match files::admin_of(&self.layout, dir) {
                Ok(admin) => admin,
                Err(_) => return Ok(()),
            },
        };
        let branch = self.layout.common.join(reference_of(branch));
        for lock in [
            git_dir.join("index.lock"),
            git_dir.join("HEAD.lock"),
            git_dir.join("ORIG_HEAD.lock"),
            branch.with_added_extension("lock"),
        ] {
            locks::clear(&lock, true);
        }
        let orig_head = git_dir.join("ORIG_HEAD");
        if files::has_no_text(&orig_head) {
            atomic::remove(&orig_head)?;
        }
        Ok(())
    }
}

/// A file that differs between the two commits.
struct Change {
    path: Vec<u8>,
    /// The object of its content before; `None` if the file did not exist.
    before: Option<String>,
    /// The object of its content after; `None` if it was deleted.
    after: Option<String>,
}

/// Gives every file that a killed git left with the content of `to`, or half of it, the content of
/// `from`, in the worktree at `dir` and in its index. A file with any other content is the user's,
/// and is kept.
pub(crate) fn put_back(layout: &Layout, dir: &Path, from: &str, to: &str) -> Result<(), TreeError> {
    let changes = changes_between(layout, from, to)?;
    let mut restore: Vec<u8> = Vec::new();
    let mut forget: Vec<u8> = Vec::new();
    for change in changes {
        let file = dir.join(path_from(&change.path));
        if !is_left_by_git(layout, dir, &file, &change)? {
            continue;
        }
        let list = match change.before {
            Some(_) => &mut restore,
            None => {
                atomic::remove(&file)?;
                &mut forget
            }
        };
        list.extend_from_slice(&change.path);
        list.push(0);
    }
    if !forget.is_empty() {
        Git::at(dir, "update-index")
            .args(["--force-remove", "-z", "--stdin"])
            .input(forget)
            .after_kill(true)
            .run()?;
    }
    if !restore.is_empty() {
        Git::at(dir, "restore")
            .args([&format!("--source={from}"), "--staged", "--worktree"])
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .input(restore)
            .after_kill(true)
            .run()?;
    }
    Ok(())
}

/// The files that differ between two commits.
fn changes_between(layout: &Layout, from: &str, to: &str) -> Result<Vec<Change>, TreeError> {
    let bytes = layout
        .git("diff-tree")
        .args(["-r", "-z", "--raw", "--no-renames", "--no-abbrev"])
        .args(["--end-of-options", from, to])
        .run()?;
    let mut pieces = zero_split(&bytes);
    let mut changes = Vec::new();
    // ":100644 100644 <oid> <oid> M", then the path.
    while let (Some(what), Some(path)) = (pieces.next(), pieces.next()) {
        let what = String::from_utf8_lossy(what);
        let mut fields = what.split(' ');
        let mut oid = |at| {
            let oid = fields.nth(at).unwrap_or_default();
            (!oid.is_empty() && oid.bytes().any(|byte| byte != b'0')).then(|| oid.to_owned())
        };
        changes.push(Change {
            before: oid(2),
            after: oid(0),
            path: path.to_owned(),
        });
    }
    Ok(changes)
}

/// True if a killed git may have left the file: missing, with the new content, or with its
/// beginning.
fn is_left_by_git(
    layout: &Layout,
    dir: &Path,
    file: &Path,
    change: &Change,
) -> Result<bool, TreeError> {
    let Ok(meta) = std::fs::symlink_metadata(file) else {
        return Ok(change.before.is_some());
    };
    if !meta.is_file() {
        // A link is made in one step, so it is whole; a directory is left alone.
        let Ok(target) = std::fs::read_link(file) else {
            return Ok(false);
        };
        use std::os::unix::ffi::OsStrExt;
        let new = content(layout, change.after.as_deref())?;
        return Ok(new.as_deref() == Some(target.as_os_str().as_bytes()));
    }
    let now = Git::at(dir, "hash-object").arg("--").arg(file).line()?;
    if change.before.as_ref() == Some(&now) {
        return Ok(false);
    }
    if change.after.as_ref() == Some(&now) {
        return Ok(true);
    }
    let new = content(layout, change.after.as_deref())?;
    let written = atomic::read(file)?.unwrap_or_default();
    Ok(new.is_some_and(|new| new.starts_with(&written)))
}

fn content(layout: &Layout, oid: Option<&str>) -> Result<Option<Vec<u8>>, TreeError> {
    let Some(oid) = oid else {
        return Ok(None);
    };
    let blob = layout.git("cat-file").args(["blob", oid]).run();
    match blob {
        Ok(bytes) => Ok(Some(bytes)),
        // A submodule has no content here.
        Err(TreeError::Git { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
