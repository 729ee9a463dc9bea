//! Refs that hold what git could forget when a worktree is removed: its HEAD, index and reflogs.
//!
//! The files need none: their directory is kept in the trash. But once git no longer knows the
//! worktree, nothing protects the objects that only its index and reflogs name, so refs under
//! `refs/ccb/rescue/<id>/` do, from before the worktree is touched.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use store::atomic::{self, Stamp};

use crate::change_report::{ChangeState, Changes};
use crate::changes::reflog_commits;
use crate::error::TreeError;
use crate::git::files::{is_oid, is_zero};
use crate::git::{Git, admin, line, zero_split};
use crate::layout::{Layout, entries, name_of};
use crate::registry::Entry;

/// The prefix of all rescue refs of a removed worktree.
pub(crate) fn prefix(id: &str) -> String {
    format!("refs/ccb/rescue/{id}")
}

/// A fingerprint of the parts of a worktree that a rescue depends on: HEAD, reflogs, index.
///
/// A process that works in a worktree without holding it may commit in the moment between the
/// rescue and the move.
pub(crate) fn seen(layout: &Layout, entry: &Entry, admin: &Path) -> u64 {
    let stamp = |path: PathBuf| {
        // git replaces the index whole, so its inode changes even if the clock is too coarse.
        let stamp = std::fs::metadata(path).map(|meta| (Stamp::of(&meta), meta.ino()));
        format!("{:?} ", stamp.unwrap_or_default())
    };
    let branch = entry.branch.as_deref().unwrap_or_default();
    let text = ["HEAD", "index", "logs/HEAD"].map(|file| stamp(admin.join(file)));
    let log = stamp(layout.common.join("logs/refs/heads").join(branch));
    store::fingerprint((text.concat() + &log).as_bytes())
}

/// The worktree to rescue.
#[derive(Debug)]
pub(crate) struct Rescue<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) entry: &'a Entry,
    /// Commits that an agent had in a `.git` of its own.
    pub(crate) private: &'a [String],
    /// git's directory for the worktree, wherever it is.
    pub(crate) admin: Option<&'a Path>,
    pub(crate) changes: &'a Changes,
    pub(crate) branch_tip: Option<&'a str>,
    pub(crate) id: &'a str,
    /// The text before the last part of the refs' names.
    pub(crate) label: &'a str,
    pub(crate) now_ms: i64,
}

impl Rescue<'_> {
    /// Makes the refs that do not exist yet.
    pub(crate) fn keep(&self) -> Result<(), TreeError> {
        let name = |what: &str| format!("{}/{}{what}", prefix(self.id), self.label);
        let mut refs: Vec<(String, String)> = Vec::new();
        let head = self.changes.head.as_deref();
        if let Some(head) = head {
            refs.push((name("head"), head.to_owned()));
        }
        if let Some(tip) = self.branch_tip.filter(|tip| Some(*tip) != head) {
            refs.push((name("branch"), tip.to_owned()));
        }
        if let Some(admin) = self.admin {
            if let Some(index) = self.index(admin)? {
                refs.push((name("index"), index));
            }
            if let Some(logged) = self.logged(admin)? {
                refs.push((name("reflog"), logged));
            }
        }
        if !self.label.is_empty() {
            let there = refs_of(self.layout, self.id)?;
            refs.retain(|(name, _)| !there.iter().any(|(found, _)| found == name));
        }
        admin::create_refs(self.layout, &refs)
    }

    /// A commit with the staged content; `None` if that is the same as HEAD.
    fn index(&self, admin: &Path) -> Result<Option<String>, TreeError> {
        let changes = self.changes;
        let unknown = changes.state == ChangeState::Unknown;
        if changes.staged + changes.unmerged == 0 && !unknown {
            return Ok(None);
        }
        let tree = match self.index_tree(admin) {
            Ok(tree) => tree,
            // Damaged or missing. The file itself is moved to the trash with everything else.
            Err(error) if unknown => {
                tracing::warn!(%error, "the index cannot be read, so it has no ref");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(tree) = tree else { return Ok(None) };
        let parents: Vec<&str> = changes.head.as_deref().into_iter().collect();
        let message = format!("Index of worktree {}", self.entry.name);
        commit(self.layout, &tree, &parents, &message, self.now_ms).map(Some)
    }

    fn index_tree(&self, admin: &Path) -> Result<Option<String>, TreeError> {
        let Some(bytes) = atomic::read(&admin.join("index"))? else {
            return Ok(None);
        };
        // In a copy, because git would write to it. Any of its directories will do; the worktree
        // itself may be gone already.
        let copy = scratch_index(self.layout);
        let relaxed = atomic::Durability::Relaxed;
        atomic::replace(&self.layout.tmp(), &copy, &bytes, relaxed)?;
        let plain = self.layout.git("write-tree");
        let plain = plain.env("GIT_INDEX_FILE", &copy).line();
        let tree = plain.or_else(|_| self.tree_of_stages(&copy));
        atomic::remove(&copy)?;
        tree.map(Some)
    }

    /// The tree object of an index with conflicts, which has no tree of its own: each side gets a
    /// directory.
    fn tree_of_stages(&self, index: &Path) -> Result<String, TreeError> {
        let listed = self
            .layout
            .git("ls-files")
            .args(["--stage", "-z", "--full-name"])
            .env("GIT_INDEX_FILE", index)
            .run()?;
        let mut input = Vec::new();
        for record in zero_split(&listed) {
            // "<mode> <oid> <stage>\t<path>"
            let text = record.iter().position(|byte| *byte == b'\t');
            let Some((fields, path)) = text.map(|at| (&record[..at], &record[at + 1..])) else {
                continue;
            };
            let fields = String::from_utf8_lossy(fields);
            let parts: Vec<&str> = fields.split(' ').collect();
            let [mode, oid, stage] = parts[..] else {
                continue;
            };
            input.extend_from_slice(format!("{mode} {oid} 0\tstage-{stage}/").as_bytes());
            input.extend_from_slice(path);
            input.push(0);
        }
        tree_of_index_info(self.layout, input)
    }

    /// A commit that has all objects as parents that only the worktree's reflogs, or the files of
    /// an unfinished merge or rebase, name; `None` if there are none.
    fn logged(&self, admin: &Path) -> Result<Option<String>, TreeError> {
        let mut oids = reflog_commits(self.layout, self.entry, admin)?.unwrap_or_default();
        named_in(admin, &mut oids);
        oids.extend_from_slice(self.private);
        let known = [self.changes.head.as_deref(), self.entry.base.as_deref()];
        oids.retain(|oid| !known.contains(&Some(oid)));
        oids.sort_unstable();
        oids.dedup();
        if oids.is_empty() {
            return Ok(None);
        }
        let listed = self
            .layout
            .git("cat-file")
            .arg("--batch-check=%(objectname) %(objecttype)")
            .input((oids.join("\n") + "\n").into_bytes())
            .run()?;
        let text = String::from_utf8_lossy(&listed);
        let of_kind = |kind: &'static str| {
            text.lines()
                .filter_map(move |line| line.split_once(' ').filter(|(_, k)| *k == kind))
                .map(|(oid, _)| oid)
        };
        let commits: Vec<&str> = of_kind("commit").collect();
        let trees = of_kind("tree").map(|oid| format!("040000 tree {oid}\t{oid}\0"));
        let blobs = of_kind("blob").map(|oid| format!("100644 blob {oid}\t{oid}\0"));
        let entries: String = trees.chain(blobs).collect();
        if commits.is_empty() && entries.is_empty() {
            return Ok(None);
        }
        let tree = self
            .layout
            .git("mktree")
            .arg("-z")
            .input(entries.into_bytes())
            .run()?;
        let message = format!("Reflogs of worktree {}", self.entry.name);
        commit(self.layout, &line(&tree), &commits, &message, self.now_ms).map(Some)
    }
}

/// Adds the object names in the small files git keeps for a worktree.
fn named_in(admin: &Path, oids: &mut Vec<String>) {
    let mut found = |path: &Path| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let small = std::fs::metadata(path).is_ok_and(|meta| meta.len() < 1 << 20);
        if name == "index" || !small {
            return;
        }
        let bytes = atomic::read(path).ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let words = text.split(|c: char| !c.is_ascii_hexdigit());
        oids.extend(
            words
                .filter(|w| is_oid(w) && !is_zero(w))
                .map(str::to_owned),
        );
    };
    let walked = store::tree::walk(admin, &mut |path, meta| {
        if meta.is_file() {
            found(path);
        }
        // Submodules have repositories of their own; the reflogs were read before.
        Ok(!(path.ends_with("modules") || path.ends_with("logs")))
    });
    if let Err(error) = walked {
        tracing::warn!(%error, "not everything git keeps for the worktree could be read");
    }
}

fn scratch_index(layout: &Layout) -> PathBuf {
    let name = uuid::Uuid::new_v4().simple();
    layout.tmp().join(format!("{name}.index"))
}

/// The tree object of the input of `git update-index --index-info`.
pub(crate) fn tree_of_index_info(layout: &Layout, input: Vec<u8>) -> Result<String, TreeError> {
    let index = scratch_index(layout);
    let filled = layout
        .git("update-index")
        .args(["-z", "--index-info"])
        .env("GIT_INDEX_FILE", &index)
        .input(input)
        .run();
    let tree = filled.and_then(|_| {
        layout
            .git("write-tree")
            .env("GIT_INDEX_FILE", &index)
            .line()
    });
    atomic::remove(&index)?;
    tree
}

/// Writes a commit by ccb; needs no identity and runs no hook.
pub(crate) fn commit(
    layout: &Layout,
    tree: &str,
    parents: &[&str],
    message: &str,
    now_ms: i64,
) -> Result<String, TreeError> {
    let parents: String = parents
        .iter()
        .map(|oid| format!("parent {oid}\n"))
        .collect();
    let who = format!("ccb <ccb@localhost> {} +0000", now_ms / 1000);
    let text = format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\n{message}\n");
    admin::write_commit(layout, text.into_bytes())
}

/// The rescue refs of one removed worktree, with their commits.
pub(crate) fn refs_of(layout: &Layout, id: &str) -> Result<Vec<(String, String)>, TreeError> {
    let lines = layout
        .git("for-each-ref")
        .args(["--format=%(refname) %(objectname)", &prefix(id)])
        .lines()?;
    let pairs = lines.iter().filter_map(|line| line.split_once(' '));
    Ok(pairs
        .map(|(name, oid)| (name.to_owned(), oid.to_owned()))
        .collect())
}

/// The highest number in the names of rescue refs and trash directories.
pub(crate) fn highest_number(layout: &Layout) -> Result<u64, TreeError> {
    let refs = layout
        .git("for-each-ref")
        .args(["--format=%(refname:lstrip=3)", "refs/ccb/rescue/"])
        .lines()?;
    let in_refs = refs.iter().filter_map(|name| name.split('/').next());
    let in_trash = entries(&layout.trash());
    let in_trash: Vec<String> = in_trash.iter().map(|dir| name_of(dir)).collect();
    let number = |name: &str| name.rsplit_once('-').and_then(|(_, n)| n.parse().ok());
    let all = in_refs.chain(in_trash.iter().map(String::as_str));
    Ok(all.filter_map(number).max().unwrap_or(0))
}

/// Blobs of the files below `root`, byte for byte, without git's conversions.
pub(crate) fn write_blobs(
    layout: &Layout,
    root: &Path,
    paths: &[PathBuf],
) -> Result<Vec<String>, TreeError> {
    use std::os::unix::ffi::OsStrExt;
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path.as_os_str().as_bytes());
        input.push(b'\n');
    }
    Git::at(root, "hash-object")
        .args(["-w", "--no-filters", "--stdin-paths"])
        // The `.git` there leads nowhere any more.
        .env("GIT_DIR", &layout.common)
        .input(input)
        .lines()
}
