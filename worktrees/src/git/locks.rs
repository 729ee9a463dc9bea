//! Lock files that a killed git left behind.
//!
//! git makes `X.lock`, writes, and renames it to `X`. If it is killed in between, the file remains,
//! and every later git says "File exists" for ever. ccb removes one only if it is known to be
//! abandoned: every process that could have made it was seen to end while the file did not change.
//! Where people's own git works as well (their index, their branches), either a git of ccb is known
//! to have been killed there, or ccb watched the lock for a while: its holder may be on another
//! machine.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use store::atomic;
use store::lock::FileLock;

use crate::git::Repository;
use crate::layout::Layout;
use crate::process::Finished;

/// Time limit for processes that may hold the lock.
const HOLDER_WAIT: Duration = Duration::from_secs(2);
/// Time to watch a lock that people share and no process here holds, before it is removed.
const WATCH_TIME: Duration = Duration::from_secs(10);
/// Time between two looks at a lock.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The lock that made git fail, if one did.
pub(crate) fn in_the_way(finished: &Finished) -> Option<PathBuf> {
    if finished.status.success() {
        return None;
    }
    named_in(&String::from_utf8_lossy(&finished.stderr))
}

pub(crate) fn named_in(stderr: &str) -> Option<PathBuf> {
    let (_, rest) = stderr.split_once("Unable to create '")?;
    let (path, _) = rest.split_once("': File exists")?;
    let path = PathBuf::from(path);
    (path.is_absolute() && path.extension().is_some_and(|end| end == "lock")).then_some(path)
}

/// Removes the lock at `path` if it is abandoned; true if it is gone. `killed`: a git of ccb was
/// killed where it is.
pub(crate) fn clear(path: &Path, killed: bool) -> bool {
    if FileId::of(path).is_none() {
        return true;
    }
    let Some(common) = common_dir(path) else {
        return false;
    };
    let watch = match killed || is_ours(&common, path) {
        true => Duration::ZERO,
        false => WATCH_TIME,
    };
    // One at a time: two that both found it abandoned must not remove the next one's.
    let turn = common.join("ccb/locks/git-locks");
    let turn = FileLock::exclusive(&turn, "git's lock files", HOLDER_WAIT + WATCH_TIME);
    let Ok(_turn) = turn else {
        return false;
    };
    match is_abandoned(path, &common, watch) {
        LockState::Gone => true,
        LockState::Held => false,
        LockState::Abandoned => match atomic::remove(path) {
            Ok(_) => {
                tracing::info!(lock = %path.display(), "left by a git that was killed; removed");
                true
            }
            Err(error) => {
                tracing::warn!(%error, "an abandoned lock is kept");
                false
            }
        },
    }
}

/// Removes the locks below `refs/ccb` that no process has. Only ccb's own git makes them.
pub(crate) fn clear_own(layout: &Layout) {
    for lock in named_lock(&layout.common.join("refs/ccb")) {
        clear(&lock, true);
    }
}

/// Files below `dir` that are named as git names its locks.
fn named_lock(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let walked = store::tree::walk(dir, &mut |path, meta| {
        if meta.is_file() && path.extension().is_some_and(|end| end == "lock") {
            found.push(path.to_owned());
        }
        Ok(true)
    });
    if let Err(error) = walked {
        tracing::debug!(%error, dir = %dir.display(), "not all of its locks are known");
    }
    found
}

/// Locks in this repository that seem abandoned.
pub(crate) fn left(layout: &Layout) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut dirs = vec![layout.common.clone()];
    dirs.extend(crate::git::admin::all(layout));
    for dir in dirs {
        for name in ["index.lock", "HEAD.lock", "packed-refs.lock"] {
            found.push(dir.join(name));
        }
    }
    // Refs are files in directories named after them.
    found.extend(named_lock(&layout.common.join("refs")));
    found.retain(|path| {
        let Some(first) = FileId::of(path) else {
            return false;
        };
        let nobody = holders(path, &layout.common).is_some_and(|held| held.is_empty());
        // The holder may have finished meanwhile, and another process may have it now.
        nobody && FileId::of(path) == Some(first)
    });
    found
}

enum LockState {
    Gone,
    Held,
    Abandoned,
}

/// Waits until it is known if a process has the lock.
fn is_abandoned(path: &Path, common: &Path, watch: Duration) -> LockState {
    let Some(first) = FileId::of(path) else {
        return LockState::Gone;
    };
    // The process that made it is among these, or has ended.
    let Some(mut holders) = holders(path, common) else {
        return LockState::Held;
    };
    let began = Instant::now();
    loop {
        if FileId::of(path).as_ref() != Some(&first) {
            return LockState::Gone;
        }
        holders.retain(Process::is_alive);
        let watched = began.elapsed();
        if holders.is_empty() && watched >= watch {
            return LockState::Abandoned;
        }
        if !holders.is_empty() && watched >= HOLDER_WAIT {
            return LockState::Held;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The directory all worktrees share, found from a file in it, if ccb has files there.
fn common_dir(path: &Path) -> Option<PathBuf> {
    let is_common = |dir: &&Path| dir.join("objects").is_dir() && dir.join("ccb/locks").is_dir();
    path.ancestors().find(is_common).map(Path::to_owned)
}

/// True if only ccb and its agents have reason to lock it: one of ccb's worktrees or refs.
fn is_ours(common: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(common) else {
        return false;
    };
    // Below `ccb` are worktrees for checks.
    let ours = ["refs/heads/worktree", "refs/ccb", "ccb"];
    if ours.iter().any(|dir| inside.starts_with(dir)) {
        return true;
    }
    let Ok(admin) = inside.strip_prefix("worktrees") else {
        return false;
    };
    let admin = admin.components().next().map(|name| name.as_os_str());
    let gitdir = admin.map(|name| common.join("worktrees").join(name).join("gitdir"));
    let gitdir = gitdir.and_then(|file| atomic::read(&file).ok().flatten());
    gitdir.is_some_and(|text| {
        let text = String::from_utf8_lossy(&text);
        text.contains("/.claude/worktrees/")
    })
}

/// Tells a file from another one made later at the same path.
#[derive(Debug, PartialEq, Eq)]
struct FileId {
    inode: u64,
    changed: Option<SystemTime>,
}

impl FileId {
    fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        Some(Self {
            inode: meta.ino(),
            changed: meta.modified().ok(),
        })
    }
}

/// A process, by its number and its start.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: String,
    began: String,
}

impl Process {
    fn of(pid: &str) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything, also brackets.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        let dead = matches!(fields.next(), None | Some("Z" | "X"));
        let began = fields.nth(18)?.to_owned();
        (!dead).then(|| Self {
            pid: pid.to_owned(),
            began,
        })
    }

    fn is_alive(&self) -> bool {
        Self::of(&self.pid).as_ref() == Some(self)
    }
}

/// Every process that may have the lock: those that have the file open, and every git that works in
/// this repository, because git closes the file before it is done with it. `None` if that cannot be
/// known.
fn holders(path: &Path, common: &Path) -> Option<BTreeSet<Process>> {
    let mut holders = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|pid| pid.parse::<u32>().is_ok()) else {
            continue;
        };
        if has_open(&entry.path(), path) || is_git_in(&entry.path(), common) {
            holders.extend(Process::of(pid));
        }
    }
    Some(holders)
}

fn has_open(process: &Path, path: &Path) -> bool {
    let files = std::fs::read_dir(process.join("fd")).into_iter().flatten();
    files
        .flatten()
        .any(|file| std::fs::read_link(file.path()).is_ok_and(|at| at == path))
}

fn is_git_in(process: &Path, common: &Path) -> bool {
    let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    if !name.starts_with("git") {
        return false;
    }
    // One that serves others for hours holds no lock.
    let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
    if String::from_utf8_lossy(&words).contains("--daemon") {
        return false;
    }
    let Ok(dir) = std::fs::read_link(process.join("cwd")) else {
        return false;
    };
    Repository::discover(&dir).is_some_and(|found| found.common_dir == common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_the_one_git_names() {
        for (said, lock) in [
            (
                "fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git process",
                Some("/r/.git/index.lock"),
            ),
            (
                "error: cannot lock ref 'refs/heads/a': Unable to create \
                 '/r/.git/refs/heads/a.lock': File exists.",
                Some("/r/.git/refs/heads/a.lock"),
            ),
            (
                "fatal: Unable to create '/r/.git/index.lock': No space left on device",
                None,
            ),
            ("fatal: Unable to create 'index.lock': File exists", None),
            ("fatal: bad object", None),
        ] {
            assert_eq!(named_in(said), lock.map(PathBuf::from), "{said}");
        }
    }

    fn repository() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let common = dir.path().canonicalize().unwrap().join(".git");
        for name in ["objects", "refs/heads/worktree", "ccb/locks", "worktrees/t"] {
            store::home::create_dir(&common.join(name)).unwrap();
        }
        (dir, common)
    }

    #[test]
    fn a_lock_nobody_has_goes_and_one_that_somebody_has_stays() {
        let (_dir, common) = repository();
        let lock = common.join("index.lock");
        let held = atomic::open_private(&lock).unwrap();
        assert!(!clear(&lock, true), "this process has it open");
        assert!(lock.exists());
        drop(held);
        assert!(clear(&lock, true));
        assert!(!lock.exists());
        assert!(clear(&lock, true), "nothing is in the way any more");
    }

    #[test]
    fn ours_are_refs_of_trees_and_what_we_keep_and_the_records_of_our_trees() {
        let (_dir, common) = repository();
        let gitdir = common.join("worktrees/t/gitdir");
        let write = |text: &str| {
            let tmp = common.join("ccb");
            atomic::replace(&tmp, &gitdir, text.as_bytes(), atomic::Durability::Relaxed).unwrap();
        };
        let ours = |path: &str| is_ours(&common, &common.join(path));
        assert!(ours("refs/heads/worktree/agent-1.lock"));
        assert!(ours("refs/ccb/rescue/x-1/head.lock"));
        for theirs in [
            "index.lock",
            "refs/heads/main.lock",
            "packed-refs.lock",
            "HEAD.lock",
        ] {
            assert!(!ours(theirs), "{theirs}");
        }
        write("/r/.claude/worktrees/t/.git\n");
        assert!(ours("worktrees/t/index.lock"));
        write("/elsewhere/t/.git\n");
        assert!(!ours("worktrees/t/index.lock"));
    }
}
