//! Compares a worktree with its index without starting git.
//!
//! It compares what git compares: the times, sizes, owners and inodes of the files with those in
//! the index, and the names in the directories with those in the index. Where git would read a file
//! or ask a setting, the answer is unknown; then git must be asked.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, Stat, statat};
use store::atomic;

use crate::git::index_times::{IndexEntry, PlainIndex};

/// With more files than this git is faster, because it looks at several at once.
const MOST_FILES: usize = 20_000;

/// True if the files of `tree` are those its index names, unchanged, and all others are allowed by
/// `keeps`. `false` also means that git must be asked.
pub(crate) fn is_untouched(tree: &Path, admin: &Path, keeps: &dyn Fn(&[u8]) -> bool) -> bool {
    let path = admin.join("index");
    let Ok(written) = std::fs::symlink_metadata(&path) else {
        return false;
    };
    if admin.join("index.lock").exists() {
        return false;
    }
    let Some(index) = load(&path) else {
        return false;
    };
    let Ok(dir) = File::open(tree) else {
        return false;
    };
    let written = (written.mtime(), written.mtime_nsec());
    let few = index.files().count() <= MOST_FILES;
    few && index.files().all(|entry| {
        let name = OsStr::from_bytes(entry.name());
        let found = statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        // One that changed as late as the index was written may have changed after that.
        let settled = |stat: &Stat| (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)) < written;
        found.is_ok_and(|stat| entry.is_as_in(&stat) && settled(&stat))
    }) && has_only(tree, &index, keeps) == Some(true)
}

/// True if `tree` has only files that its index names; `None` if git must be asked.
pub(crate) fn has_only_indexed(tree: &Path, git_dir: &Path) -> Option<bool> {
    has_only(tree, &load(&git_dir.join("index"))?, &|_| false)
}

fn load(path: &Path) -> Option<PlainIndex> {
    PlainIndex::parse(atomic::read(path).ok()??)
}

fn nanoseconds(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

/// Walks the directories that hold files of the index.
fn has_only(tree: &Path, index: &PlainIndex, keeps: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
    let names: Vec<&[u8]> = index.files().map(IndexEntry::name).collect();
    if !names.is_sorted() {
        // git writes them in order, and the search needs that order.
        return None;
    }
    let mut left = vec![Below {
        dir: Vec::new(),
        names: &names,
    }];
    while let Some(below) = left.pop() {
        for entry in std::fs::read_dir(tree.join(OsStr::from_bytes(&below.dir))).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let name = name.as_bytes();
            if below.dir.is_empty() && name == b".git" {
                continue;
            }
            let known = match entry.file_type().ok()?.is_dir() {
                true => {
                    let inner = below.inner(name);
                    let known = !inner.names.is_empty();
                    left.extend(known.then_some(inner));
                    known
                }
                false => below.has(name),
            };
            if !known && !keeps(&below.path(name)) {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// A directory, and the files of the index that are in it or below, in order.
struct Below<'a> {
    dir: Vec<u8>,
    names: &'a [&'a [u8]],
}

impl<'a> Below<'a> {
    /// The name of a file of the index as seen from here.
    fn seen_from_here(&self, name: &'a [u8]) -> &'a [u8] {
        match self.dir.len() {
            0 => name,
            length => name.get(length + 1..).unwrap_or_default(),
        }
    }

    fn has(&self, name: &[u8]) -> bool {
        let found = self
            .names
            .binary_search_by(|known| self.seen_from_here(known).cmp(name));
        found.is_ok()
    }

    /// The same of a directory in this one.
    fn inner(&self, name: &[u8]) -> Self {
        let before = |end: u8| {
            let limit = [name, &[end]].concat();
            self.names
                .partition_point(|known| self.seen_from_here(known) < limit.as_slice())
        };
        Self {
            dir: self.path(name),
            // The character after the slash is the first that is not below it.
            names: &self.names[before(b'/')..before(b'/' + 1)],
        }
    }

    fn path(&self, name: &[u8]) -> Vec<u8> {
        match self.dir.is_empty() {
            true => name.to_vec(),
            false => [&self.dir, b"/".as_slice(), name].concat(),
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "files as an agent in the worktree writes them"
)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    fn git(dir: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A worktree whose files are older than its index.
    fn tree() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().to_owned();
        git(&tree, &["init", "-q"]);
        std::fs::create_dir_all(tree.join("a/b")).unwrap();
        for name in ["top", "a/one", "a/b/two", "a/b/\u{e9} three"] {
            std::fs::write(tree.join(name), name).unwrap();
        }
        symlink("top", tree.join("link")).unwrap();
        std::fs::write(tree.join(".gitignore"), "*.ignored\n").unwrap();
        git(&tree, &["add", "."]);
        assert!(
            super::super::index_times::backdate_files(&tree, &tree.join(".git"), &tree).unwrap()
        );
        (dir, tree)
    }

    fn nothing(_: &[u8]) -> bool {
        false
    }

    #[test]
    fn a_tree_that_nobody_touched_is_known_to_be_so() {
        let (_dir, tree) = tree();
        assert!(is_untouched(&tree, &tree.join(".git"), &nothing));
        assert_eq!(has_only_indexed(&tree, &tree.join(".git")), Some(true));
    }

    #[test]
    fn whatever_differs_is_seen() {
        type Meddle = fn(&Path);
        let meddles: &[(&str, Meddle)] = &[
            ("content", |tree| {
                std::fs::write(tree.join("a/one"), "A/one").unwrap();
            }),
            ("the content of a link", |tree| {
                std::fs::remove_file(tree.join("link")).unwrap();
                symlink("pot", tree.join("link")).unwrap();
            }),
            ("mode", |tree| {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(tree.join("top"), mode).unwrap();
            }),
            ("deleted", |tree| {
                std::fs::remove_file(tree.join("a/b/two")).unwrap();
            }),
            ("a file more", |tree| {
                std::fs::write(tree.join("a/b/new"), "").unwrap();
            }),
            ("an ignored file", |tree| {
                std::fs::write(tree.join("a/x.ignored"), "").unwrap();
            }),
            ("an empty directory", |tree| {
                std::fs::create_dir(tree.join("a/empty")).unwrap();
            }),
            ("a directory instead of a file", |tree| {
                std::fs::remove_file(tree.join("top")).unwrap();
                std::fs::create_dir(tree.join("top")).unwrap();
            }),
            ("a bit that hides changes", |tree| {
                git(tree, &["update-index", "--assume-unchanged", "top"]);
            }),
            ("git at work", |tree| {
                std::fs::write(tree.join(".git/index.lock"), "").unwrap();
            }),
            ("no index", |tree| {
                std::fs::remove_file(tree.join(".git/index")).unwrap();
            }),
        ];
        for (what, meddle) in meddles {
            let (_dir, tree) = tree();
            meddle(&tree);
            assert!(!is_untouched(&tree, &tree.join(".git"), &nothing), "{what}");
        }
    }

    #[test]
    fn a_file_as_new_as_the_index_is_left_to_git() {
        let (_dir, tree) = tree();
        let index = File::options().write(true).open(tree.join(".git/index"));
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        index.unwrap().set_modified(long_ago).unwrap();
        assert!(!is_untouched(&tree, &tree.join(".git"), &nothing));
    }

    #[test]
    fn what_belongs_there_is_left_alone() {
        let (_dir, tree) = tree();
        std::fs::create_dir_all(tree.join("kept/deep")).unwrap();
        std::fs::write(tree.join("kept/deep/file"), "").unwrap();
        assert_eq!(has_only_indexed(&tree, &tree.join(".git")), Some(false));
        assert!(is_untouched(&tree, &tree.join(".git"), &|path| path == b"kept"));
        std::fs::remove_file(tree.join(".git/index")).unwrap();
        assert_eq!(has_only_indexed(&tree, &tree.join(".git")), None);
    }
}
