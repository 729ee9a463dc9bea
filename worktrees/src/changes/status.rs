//! The changes in a worktree, as a typed answer.
//!
//! One `git status`, and the small files git keeps. What cannot be read makes the answer
//! *unknown*, and unknown counts as changed: only a tree that is known to hold nothing of its
//! own is taken away without asking.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::TreeError;
use crate::git::files::{self, is_oid};
use crate::git::{Git, Head, History, path_from, zero_split};
use crate::layout::Layout;
use crate::registry::{Entry, Placed};

/// Whether there is anything to lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeState {
    /// Nothing but the base.
    Clean,
    /// Something.
    Changed,
    /// Not everything could be read, so it counts as changed.
    #[default]
    Unknown,
}

impl ChangeState {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Changed => "changed",
            Self::Unknown => "unknown",
        }
    }
}

/// The differences between a worktree and the commit it started from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Tracked files that are modified or staged.
    pub files: usize,
    /// The tracked files whose change is staged.
    pub staged: usize,
    /// Files git does not know and does not ignore.
    pub untracked: usize,
    /// Commits since the stored base.
    pub commits: usize,
    /// Commits that were made here and are only in the reflogs any more.
    pub unreferenced: usize,
    /// Stashes made on the tree's branch.
    pub stashes: usize,
    /// Repositories inside: submodules that were initialised, or clones.
    pub nested: usize,
    /// HEAD is on no branch.
    pub detached: bool,
    /// Files with conflicts.
    pub unmerged: usize,
    /// A merge, rebase, cherry-pick, revert or bisect that is not finished.
    pub in_progress: Option<&'static str>,
    /// The summary.
    pub state: ChangeState,
    /// Why it is unknown.
    pub reason: Option<String>,
    /// The commit HEAD is at.
    pub head: Option<String>,
    /// The branch HEAD is on, without `refs/heads/`.
    pub branch: Option<String>,
    /// The uncommitted paths, those of `files` and `untracked`, as git names them.
    pub(crate) paths: Vec<Vec<u8>>,
}

impl Changes {
    /// Why the tree is not exactly at `commit`, if it is not.
    pub fn beyond(&self, commit: &str) -> Option<String> {
        if self.head.as_deref() != Some(commit) {
            return Some("commits were added meanwhile".into());
        }
        if self.files + self.untracked + self.unmerged == 0 {
            return None;
        }
        let uncommitted = Self {
            commits: 0,
            ..self.clone()
        };
        let what = uncommitted.describe();
        Some(format!("files changed meanwhile ({what})"))
    }

    /// The fields of section "changes" of the command line's answers.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "files": self.files,
            "staged": self.staged,
            "untracked": self.untracked,
            "commits": self.commits,
            "detached": self.detached,
            "unmerged": self.unmerged,
            "unreferenced": self.unreferenced,
            "stashes": self.stashes,
            "nested": self.nested,
            "state": self.state.as_str(),
            "head": self.head,
            "branch": self.branch,
        });
        if let Some(what) = self.in_progress {
            json["inProgress"] = what.into();
        }
        if let Some(reason) = &self.reason {
            json["reason"] = reason.clone().into();
        }
        json
    }

    /// Whether `commit` is all there is.
    pub(crate) fn only_commits_until(&self, commit: &str) -> bool {
        let rest = Self {
            commits: 0,
            ..self.clone()
        };
        self.state != ChangeState::Unknown
            && self.head.as_deref() == Some(commit)
            && rest.judged().state == ChangeState::Clean
    }

    /// Whether there are commits and nothing else that could be lost.
    pub(crate) fn are_only_commits(&self) -> bool {
        let mut rest = self.clone();
        rest.commits = 0;
        self.state == ChangeState::Changed && rest.describe() == "none"
    }

    /// A short description for people.
    pub fn describe(&self) -> String {
        let counts = [
            (self.files, "changed file", "changed files"),
            (self.untracked, "untracked file", "untracked files"),
            (self.commits, "commit", "commits"),
            (
                self.unreferenced,
                "commit in the reflog",
                "commits in the reflog",
            ),
            (self.stashes, "stash", "stashes"),
            (self.nested, "repository inside", "repositories inside"),
            (self.unmerged, "conflict", "conflicts"),
        ];
        let mut parts: Vec<String> = counts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
            .collect();
        parts.extend(self.in_progress.map(|what| format!("an unfinished {what}")));
        match (&self.reason, parts.is_empty()) {
            (Some(reason), _) => parts.push(format!("cannot tell: {reason}")),
            (None, true) => parts.push("none".into()),
            (None, false) => {}
        }
        parts.join(", ")
    }

    pub(crate) fn unknown(mut self, reason: impl Into<String>) -> Self {
        self.state = ChangeState::Unknown;
        self.reason = Some(reason.into());
        self
    }

    fn judged(mut self) -> Self {
        let anything = self.files + self.untracked + self.commits + self.unreferenced > 0
            || self.stashes + self.nested + self.unmerged > 0
            || self.in_progress.is_some();
        self.state = if anything {
            ChangeState::Changed
        } else {
            ChangeState::Clean
        };
        self
    }
}

/// Looks at the tree of `entry`. Never fails: what cannot be read is part of the answer.
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
    changes.nested += count_entries(&admin.join("modules"));
    let branch = entry.branch.as_deref().unwrap_or_default();
    changes.stashes = files::stashes_on(&layout.common, branch);
    match count_commits(layout, entry, &admin, &mut changes) {
        Ok(()) => changes.judged(),
        Err(why) => changes.unknown(why),
    }
}

/// Reads one `git status`.
fn read_status(entry: &Entry, changes: &mut Changes) -> Result<(), TreeError> {
    let bytes = Git::at(entry.path(), "status")
        .args(["--porcelain=v2", "-z", "--branch", "--no-renames"])
        .args(["--untracked-files=all", "--ignore-submodules=none"])
        .run()?;
    for record in zero_split(&bytes) {
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
                } else if !entry
                    .placed
                    .iter()
                    .any(|placed| is_untouched(entry.path(), placed, path))
                {
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
    Ok(())
}

/// Whether `path` is this thing the set-up put there, and still the same.
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

/// The commits beyond the base: those of HEAD and of the tree's branch, and those that are
/// only in the reflogs.
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

/// Every commit named in the reflogs of the tree's HEAD and of its branch; `None` if HEAD has
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
        // In the trash nothing but git itself could read it, and git no longer knows it.
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

/// The files git ignores in the tree; a directory that is ignored as a whole is one entry.
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

/// The commit HEAD of the tree is at, without a process where that is possible.
pub(crate) fn head_commit(layout: &Layout, tree: &Path, admin: &Path) -> Option<String> {
    match files::head(layout, admin) {
        Head::Elsewhere => History::open(tree).resolve("HEAD").ok(),
        head => head.commit(),
    }
}
