//! Finds the changes in a worktree.
//!
//! One `git status`, and the small files git keeps. An unreadable part makes the answer *unknown*,
//! and unknown counts as changed: ccb removes only a worktree that is known to have no work of its
//! own without asking.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::change_report::Changes;
use crate::changes::nested;
use crate::error::TreeError;
use crate::git::files::{self, is_oid};
use crate::git::stay::Left;
use crate::git::{Git, path_from, zero_split};
use crate::layout::Layout;
use crate::private;
use crate::registry::{Entry, Placed};
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// The changes in the worktree since its base.
    pub fn changes(&self, slug: &Slug) -> Result<Changes, TreeError> {
        Ok(self.changes_of(&self.get(slug)?))
    }

    /// The same for an entry that was just listed.
    pub fn changes_of(&self, entry: &Entry) -> Changes {
        self.try_to_catch_up(entry);
        of(&self.layout, entry)
    }

    /// Files of the worktree that git ignores and a removal would delete.
    pub fn ignored(&self, slug: &Slug) -> Result<Vec<PathBuf>, TreeError> {
        ignored(self.get(slug)?.path())
    }
}

/// Looks at the worktree of `entry`. Never fails: unreadable parts are in the answer.
pub(crate) fn of(layout: &Layout, entry: &Entry) -> Changes {
    let mut changes = Changes::default();
    if entry.hook_based {
        return changes.unknown("it was made by a hook");
    }
    let admin = match files::admin_of(layout, entry.path()) {
        Ok(admin) => admin,
        Err(why) => return changes.unknown(why),
    };
    if let Err(error) = read_status(entry, &mut changes) {
        return changes.unknown(error.to_string());
    }
    changes.in_progress = files::in_progress(&admin);
    match nested::count(entry.path(), &admin) {
        // Initialised ones of a linked worktree are counted once.
        Ok(count) => changes.nested += count.max(count_entries(&admin.join("modules"))),
        Err(error) => return changes.unknown(error.to_string()),
    }
    let branch = entry.branch.as_deref().unwrap_or_default();
    changes.stashes = files::stashes_on(&layout.common, branch);
    if let Err(why) = count_commits(layout, entry, &admin, &mut changes) {
        return changes.unknown(why);
    }
    match private::what_is_left(layout, entry.path()) {
        Ok(left) => add_private(&mut changes, &left),
        Err(error) => return changes.unknown(error.to_string()),
    }
    changes.judged()
}

/// Counts the work that is only in the agent's own `.git`.
fn add_private(changes: &mut Changes, left: &Left) {
    changes.stashes += left.stashes;
    changes.nested += left.nested;
    changes.private_modules = left.nested;
    changes.moved_module.clone_from(&left.moved_module);
    // A stash is a commit, too.
    changes.unreferenced += left.commits.len().saturating_sub(left.stashes);
    // A later commit by others has finished the operation.
    if changes.head.as_ref() == Some(&left.tip) {
        changes.unmerged += left.unmerged;
        changes.in_progress = changes.in_progress.or(left.unfinished());
    }
}

/// Reads one `git status`.
fn read_status(entry: &Entry, changes: &mut Changes) -> Result<(), TreeError> {
    let bytes = Git::status(entry.path())
        .args(["--porcelain=v2", "-z", "--branch", "--no-renames"])
        .args(["--untracked-files=all"])
        .run()?;
    let is_placed = |path: &[u8]| {
        let mut placed = entry.placed.iter();
        placed.any(|placed| is_untouched(entry.path(), placed, path))
    };
    read_records(&bytes, is_placed, changes);
    Ok(())
}

/// Reads the output of `git status --porcelain=v2 -z --branch`. Files the set-up placed there, as
/// `is_placed` says, are no changes.
pub(crate) fn read_records(bytes: &[u8], is_placed: impl Fn(&[u8]) -> bool, changes: &mut Changes) {
    for record in zero_split(bytes) {
        let text = String::from_utf8_lossy(record);
        match record[0] {
            b'#' => match text.split_once(' ').map(|(_, rest)| rest) {
                Some("branch.head (detached)") => changes.detached = true,
                Some(rest) => {
                    if let Some(oid) = rest.strip_prefix("branch.oid ") {
                        changes.head = is_oid(oid).then(|| oid.to_owned());
                    } else if let Some(name) = rest.strip_prefix("branch.head ") {
                        changes.branch = Some(name.to_owned());
                    }
                }
                None => {}
            },
            b'u' => {
                changes.files += 1;
                changes.unmerged += 1;
            }
            b'?' => {
                let path = record.get(2..).unwrap_or_default();
                if path.ends_with(b"/") {
                    changes.nested += 1;
                } else if !is_placed(path) {
                    changes.untracked += 1;
                    changes.paths.push(path.to_owned());
                }
            }
            _ => {
                changes.files += 1;
                changes.staged += usize::from(record.get(2).is_some_and(|x| *x != b'.'));
                // Seven fields stand before the path, which may itself hold spaces.
                let path = record.splitn(9, |byte| *byte == b' ').nth(8);
                changes.paths.push(path.unwrap_or_default().to_owned());
            }
        }
    }
}

/// True if `path` is this file or link of the set-up, unchanged.
fn is_untouched(tree: &Path, placed: &Placed, path: &[u8]) -> bool {
    if placed.path.as_bytes() != path {
        return false;
    }
    let full = tree.join(&placed.path);
    if let Some(link) = &placed.link {
        return std::fs::read_link(&full)
            .is_ok_and(|at| at.as_os_str().as_bytes() == link.as_bytes());
    }
    let content = store::atomic::read(&full).ok().flatten();
    content.map(|bytes| store::fingerprint(&bytes)) == placed.fingerprint
}

/// The commits beyond the base: those of HEAD and of the worktree's branch, and those that are only
/// in the reflogs.
fn count_commits(
    layout: &Layout,
    entry: &Entry,
    admin: &Path,
    changes: &mut Changes,
) -> Result<(), String> {
    let base = entry.base.as_ref().ok_or("its base is not known")?;
    let head = changes.head.clone().ok_or("its HEAD is at no commit")?;
    let history = layout.history();
    let said = |error: TreeError| error.to_string();
    let mut tips = vec![head];
    if let Some(branch) = &entry.branch {
        tips.extend(layout.tip_of(branch).map_err(said)?);
    }
    changes.commits = history.count_beyond(base, &tips).map_err(said)?;
    let logged = reflog_commits(layout, entry, admin).map_err(said)?;
    let logged = logged.ok_or("its reflog is missing")?;
    tips.extend(logged);
    let all = history.count_beyond(base, &tips).map_err(said)?;
    changes.unreferenced = all.saturating_sub(changes.commits);
    Ok(())
}

/// Every commit named in the reflogs of the worktree's HEAD and of its branch; `None` if HEAD has
/// no reflog.
pub(crate) fn reflog_commits(
    layout: &Layout,
    entry: &Entry,
    admin: &Path,
) -> Result<Option<Vec<String>>, TreeError> {
    let branch = entry
        .branch
        .as_ref()
        .map(|branch| format!("refs/heads/{branch}"));
    if layout.common.join("reftable").exists() {
        // In the trash only git itself could read it, and git no longer knows it.
        if admin.parent() != Some(&layout.admin_dirs()) {
            return Ok(None);
        }
        return reflog_by_git(entry.path(), branch.as_deref()).map(Some);
    }
    let Some(mut oids) = files::reflog(admin, "HEAD") else {
        return Ok(None);
    };
    if let Some(branch) = branch {
        oids.extend(files::reflog(&layout.common, &branch).unwrap_or_default());
    }
    Ok(Some(oids))
}

fn reflog_by_git(tree: &Path, branch: Option<&str>) -> Result<Vec<String>, TreeError> {
    let mut oids = Vec::new();
    for reference in ["HEAD"].into_iter().chain(branch) {
        let exists = Git::at(tree, "reflog").args(["exists", reference]).ask()?.0;
        if !exists {
            continue;
        }
        let show = Git::at(tree, "reflog").args(["show", "--format=%H", reference]);
        oids.extend(show.lines()?);
    }
    Ok(oids)
}

fn count_entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

/// The files git ignores in the worktree; a directory that is ignored as a whole is one entry.
pub(crate) fn ignored(tree: &Path) -> Result<Vec<PathBuf>, TreeError> {
    let bytes = Git::at(tree, "ls-files")
        .args([
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
        ])
        .run()?;
    Ok(zero_split(&bytes).map(path_from).collect())
}
