//! The claims of an agent's private repository about itself, read as plain files.
//!
//! ccb trusts none of them: they only say where to look. Everything read here is short, is a
//! regular file, and lies below the directory, whatever links an agent has put there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use store::beneath::Root;

use crate::git::files::{self, is_oid, is_zero};
use crate::private::claimed_index;

/// Maximum size of a file that is read, in bytes, except for the index and the packed refs.
const MOST: u64 = 1 << 20;
/// Maximum size of the packed refs, which have those of the repository, in bytes.
const MOST_PACKED: u64 = 32 << 20;
/// Maximum of refs that are read.
const MOST_REFS: usize = 100_000;
/// Maximum of commits of its reflogs that are read, the last ones.
const MOST_LOGGED: usize = 2_000;
/// Maximum depth of names of refs.
const MAX_DEPTH: usize = 16;
/// Maximum length of a ref's name.
const MAX_NAME: usize = 1_000;

/// The claims of a private repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// The commit HEAD is at.
    pub(crate) head: Option<String>,
    /// True if HEAD is on no branch.
    pub(crate) detached: bool,
    /// Its refs, by their full names.
    pub(crate) refs: BTreeMap<String, String>,
    /// The commits in the reflogs of HEAD and of the stash.
    pub(crate) logged: BTreeSet<String>,
    /// Number of stashes.
    pub(crate) stashes: usize,
    /// The unfinished operation, in git's words.
    pub(crate) in_progress: Option<&'static str>,
    /// Files with conflicts.
    pub(crate) unmerged: usize,
    /// Submodules that were initialised in it.
    pub(crate) nested: usize,
    /// Files that are missing because git was told to leave them out.
    pub(crate) skipped: Vec<Vec<u8>>,
}

impl Claims {
    /// Reads the claims of the directory at `git_dir`; none if it is no directory.
    pub(crate) fn read(git_dir: &Path) -> Self {
        let Some(root) = open(git_dir) else {
            return Self::default();
        };
        let mut claims = Self::default();
        claims.read_refs(&root, git_dir);
        claims.read_head(&root);
        claims.read_logs(&root);
        claims.in_progress = files::in_progress(git_dir);
        let modules = std::fs::read_dir(git_dir.join("modules"));
        claims.nested = modules.map_or(0, Iterator::count);
        let index = claimed_index::read(&root);
        claims.unmerged = index.unmerged;
        claims.skipped = index.skipped;
        claims
    }

    /// Reads only the commit of HEAD, which is asked for often.
    pub(crate) fn head_of(git_dir: &Path) -> Option<String> {
        let root = open(git_dir)?;
        let text = text(&root, "HEAD")?;
        let Some(name) = text.trim().strip_prefix("ref: ") else {
            return is_commit(text.trim()).then(|| text.trim().to_owned());
        };
        if !is_ref_name(name) {
            return None;
        }
        match self::text(&root, name) {
            Some(oid) => is_commit(oid.trim()).then(|| oid.trim().to_owned()),
            None => packed(&root).remove(name),
        }
    }

    fn read_refs(&mut self, root: &Root, git_dir: &Path) {
        self.refs = packed(root);
        let mut open = vec![("refs".to_owned(), 0)];
        while let Some((dir, depth)) = open.pop() {
            let entries = std::fs::read_dir(git_dir.join(&dir));
            for entry in entries.into_iter().flatten().flatten().take(MOST_REFS) {
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let path = format!("{dir}/{name}");
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() && depth < MAX_DEPTH {
                    open.push((path, depth + 1));
                } else if kind.is_file() && is_ref_name(&path) && self.refs.len() < MOST_REFS {
                    let oid = text(root, &path).unwrap_or_default();
                    if is_commit(oid.trim()) {
                        self.refs.insert(path, oid.trim().to_owned());
                    }
                }
            }
        }
    }

    fn read_head(&mut self, root: &Root) {
        let Some(text) = text(root, "HEAD") else {
            return;
        };
        match text.trim().strip_prefix("ref: ") {
            Some(name) => self.head = self.refs.get(name).cloned(),
            None => {
                self.detached = true;
                self.head = is_commit(text.trim()).then(|| text.trim().to_owned());
            }
        }
    }

    fn read_logs(&mut self, root: &Root) {
        for log in ["logs/HEAD", "logs/refs/stash"] {
            let Some(text) = text(root, log) else {
                continue;
            };
            if log.ends_with("stash") {
                self.stashes = text.lines().count();
            }
            for line in text.lines().rev().take(MOST_LOGGED) {
                let names = line.split(' ').take(2);
                self.logged
                    .extend(names.filter(|oid| is_commit(oid)).map(str::to_owned));
            }
        }
        // A stash without a log.
        if self.stashes == 0 && self.refs.contains_key("refs/stash") {
            self.stashes = 1;
        }
    }
}

/// The private directory; `None` if it is a link or a file.
fn open(git_dir: &Path) -> Option<Root> {
    let is_dir = std::fs::symlink_metadata(git_dir).is_ok_and(|meta| meta.is_dir());
    is_dir.then(|| Root::open(git_dir).ok()).flatten()
}

/// A short file as text.
fn text(root: &Root, name: &str) -> Option<String> {
    let bytes = bytes(root, name, MOST)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file of at most `most` bytes; a longer one is not read at all.
pub(super) fn bytes(root: &Root, name: &str, most: u64) -> Option<Vec<u8>> {
    let file = root.read(Path::new(name)).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > most {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn packed(root: &Root) -> BTreeMap<String, String> {
    let bytes = bytes(root, "packed-refs", MOST_PACKED).unwrap_or_default();
    parse_packed(&String::from_utf8_lossy(&bytes))
}

/// The refs in a file of packed refs.
fn parse_packed(text: &str) -> BTreeMap<String, String> {
    let refs = text.lines().filter_map(|line| {
        let (oid, name) = line.split_once(' ')?;
        (is_commit(oid) && is_ref_name(name)).then(|| (name.to_owned(), oid.to_owned()))
    });
    refs.take(MOST_REFS).collect()
}

fn is_commit(text: &str) -> bool {
    is_oid(text) && !is_zero(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// True if git could have made a ref of this name, as far as that matters to ccb.
fn is_ref_name(name: &str) -> bool {
    let fine = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    let odd = |byte: u8| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte);
    name.len() <= MAX_NAME
        && name.starts_with("refs/")
        && !name.bytes().any(odd)
        && name.split('/').all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use store::atomic::{self, Durability};

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn git_dir(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let scratch = dir.path();
            atomic::replace(scratch, &path, text.as_bytes(), Durability::Relaxed).unwrap();
        }
        dir
    }

    #[test]
    fn what_git_writes_is_read() {
        let log = format!("{} {ONE} A <a@a> 1 +0000\tcommit\n", "0".repeat(40));
        let dir = git_dir(&[
            ("HEAD", "ref: refs/heads/worktree/x\n"),
            ("refs/heads/worktree/x", &format!("{ONE}\n")),
            (
                "packed-refs",
                &format!("# pack-refs\n{TWO} refs/tags/v1\n{TWO} refs/heads/worktree/x\n^{ONE}\n"),
            ),
            ("logs/HEAD", &log),
            ("logs/refs/stash", &log),
            ("MERGE_HEAD", TWO),
        ]);
        let claims = Claims::read(dir.path());
        assert_eq!(claims.head.as_deref(), Some(ONE));
        assert_eq!(Claims::head_of(dir.path()).as_deref(), Some(ONE));
        assert_eq!(claims.refs["refs/tags/v1"], TWO);
        assert_eq!(claims.logged.len(), 1);
        assert_eq!((claims.stashes, claims.in_progress), (1, Some("merge")));
    }

    #[test]
    fn what_is_no_plain_file_below_says_nothing() {
        let outside = git_dir(&[("oid", ONE)]);
        let dir = git_dir(&[("refs/heads/b", TWO)]);
        symlink(outside.path().join("oid"), dir.path().join("HEAD")).unwrap();
        assert_eq!(
            Claims::read(dir.path()),
            Claims {
                refs: [("refs/heads/b".to_owned(), TWO.to_owned())].into(),
                ..Claims::default()
            }
        );
        // The directory itself may be anything.
        let link = outside.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert_eq!(Claims::read(&link), Claims::default());
        assert_eq!(Claims::read(&outside.path().join("oid")), Claims::default());
        assert_eq!(
            Claims::read(&outside.path().join("none")),
            Claims::default()
        );
    }

    #[test]
    fn a_fifo_and_a_long_file_say_nothing() {
        let dir = git_dir(&[("packed-refs", &"x".repeat(33 << 20))]);
        let fifo = rustix::fs::CWD;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(
            fifo,
            dir.path().join("HEAD"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        assert_eq!(Claims::read(dir.path()), Claims::default());
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for name in [
            "refs/heads/../../x",
            "refs/heads/.lock",
            "refs/a b",
            "refs//a",
            "HEAD",
            "refs/a.lock",
        ] {
            assert!(!is_ref_name(name), "{name}");
        }
        assert!(is_ref_name("refs/heads/worktree/x") && is_ref_name("refs/stash"));
    }
}
