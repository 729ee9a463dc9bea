//! Reads git's own small files without starting git.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use store::atomic;

use crate::git::stay;
use crate::layout::Layout;

/// The HEAD of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Head {
    /// On a branch (`refs/heads/…`) that stands at this commit, or at none yet.
    Branch(String, Option<String>),
    /// At a commit, on no branch.
    Detached(String),
    /// These files do not say; git must be asked.
    Elsewhere,
}

impl Head {
    /// The commit, as far as these files say.
    pub(crate) fn commit(self) -> Option<String> {
        match self {
            Self::Branch(_, tip) => tip,
            Self::Detached(oid) => Some(oid),
            Self::Elsewhere => None,
        }
    }
}

/// git's directory for the worktree at `tree`, if each points to the other and both to this
/// repository; else the reason why not.
pub(crate) fn admin_of(layout: &Layout, tree: &Path) -> Result<PathBuf, String> {
    // While an agent has a `.git` of its own there, it is not read.
    linked(layout, tree).or_else(|why| {
        let there = std::fs::symlink_metadata(tree).is_ok_and(|meta| meta.is_dir());
        let private = there.then(|| stay::admin_of(layout, tree)).flatten();
        private.unwrap_or(Err(why))
    })
}

/// The same by the worktree's ordinary `.git`.
pub(crate) fn linked(layout: &Layout, tree: &Path) -> Result<PathBuf, String> {
    let meta = std::fs::symlink_metadata(tree).map_err(|error| format!("{error}"))?;
    if !meta.is_dir() {
        return Err("it is not a directory".into());
    }
    let dot_git = tree.join(".git");
    let text = text_file(&dot_git).ok_or("its .git is not a file of git's")?;
    let target = text
        .strip_prefix("gitdir:")
        .ok_or("its .git does not name a directory")?
        .trim();
    let admin = real(tree.join(target), &layout.admin_dirs())
        .ok_or_else(|| format!("its .git points to {target}, which is not there"))?;
    if admin.parent() != Some(&layout.admin_dirs()) {
        return Err(format!(
            "its .git points to {target}, which is not in this repository"
        ));
    }
    let common = text_file(&admin.join("commondir")).ok_or("git's commondir cannot be read")?;
    // git's own entries lead there, because the directory is where it says it is.
    let is_common = |named: &str| {
        named == "../.." || admin.join(named).canonicalize().ok().as_ref() == Some(&layout.common)
    };
    if !is_common(common.trim()) {
        return Err("git's commondir is not this repository".into());
    }
    let back = text_file(&admin.join("gitdir")).ok_or("git's gitdir cannot be read")?;
    let back = admin.join(back.trim());
    if back != dot_git && back.canonicalize().ok() != dot_git.canonicalize().ok() {
        return Err(format!("git has this worktree at {}", back.display()));
    }
    Ok(admin)
}

/// The directory at `path` without any links on the way. One that is directly in `parent`, which has none,
/// is known without asking for every part of the path; this is called often.
fn real(path: PathBuf, parent: &Path) -> Option<PathBuf> {
    let is_dir = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let plain = path.parent() == Some(parent)
        && matches!(path.components().next_back(), Some(Component::Normal(_)));
    match plain && is_dir(parent) && is_dir(&path) {
        true => Some(path),
        false => path.canonicalize().ok(),
    }
}

/// The present or former path of the worktree that this directory of git's belongs to.
pub(crate) fn tree_of(admin: &Path) -> Option<PathBuf> {
    let text = text_file(&admin.join("gitdir"))?;
    let dot_git = admin.join(text.trim());
    dot_git.parent().map(Path::to_owned)
}

/// The HEAD of the worktree with this directory of git's.
pub(crate) fn head(layout: &Layout, admin: &Path) -> Head {
    let Some(text) = text_file(&admin.join("HEAD")) else {
        return Head::Elsewhere;
    };
    if layout.common.join("reftable").exists() {
        // The HEAD file is a stub there.
        return Head::Elsewhere;
    }
    match parse_head(&text) {
        Head::Branch(name, _) => {
            let tip = loose_ref(&layout.common, &name);
            Head::Branch(name, tip)
        }
        head => head,
    }
}

/// The HEAD in a HEAD file with this text; a branch's commit is in another file.
pub(crate) fn parse_head(text: &str) -> Head {
    let text = text.trim();
    match text.strip_prefix("ref: ") {
        Some(name) if is_branch(name) => Head::Branch(name.to_owned(), None),
        Some(_) => Head::Elsewhere,
        None if is_oid(text) => Head::Detached(text.to_owned()),
        None => Head::Elsewhere,
    }
}

/// True if it is a branch's full name. An agent can write anything there, and the name becomes a
/// path: with `..` in it another file would be read.
fn is_branch(name: &str) -> bool {
    name.starts_with("refs/heads/") && git2::Reference::is_valid_name(name)
}

/// The commit of a ref in the shared directory, by the plain and packed refs.
fn loose_ref(common: &Path, name: &str) -> Option<String> {
    if let Some(text) = text_file(&common.join(name)) {
        let text = text.trim();
        return is_oid(text).then(|| text.to_owned());
    }
    packed_ref(&text_file(&common.join("packed-refs"))?, name)
}

/// The commit of a ref in a file of packed refs.
pub(crate) fn packed_ref(packed: &str, name: &str) -> Option<String> {
    packed.lines().find_map(|line| {
        let (oid, found) = line.split_once(' ')?;
        (found == name && is_oid(oid)).then(|| oid.to_owned())
    })
}

/// True if `text` is a full object name.
pub(crate) fn is_oid(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// True if it is the all-zero name, which stands for no object.
pub(crate) fn is_zero(oid: &str) -> bool {
    oid.bytes().all(|byte| byte == b'0')
}

fn text_file(path: &Path) -> Option<String> {
    let bytes = atomic::read(path).ok()??;
    String::from_utf8(bytes).ok()
}

/// The files of git's unfinished operations, with their names.
pub(crate) const OPERATIONS: &[(&str, &str)] = &[
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
    ("sequencer", "cherry-pick"),
];

/// The unfinished operation in the worktree, in git's words.
pub(crate) fn in_progress(admin: &Path) -> Option<&'static str> {
    OPERATIONS
        .iter()
        .find(|(file, _)| admin.join(file).exists())
        .map(|(_, what)| *what)
}

/// The reason given with `git worktree lock`, if the worktree is locked.
pub(crate) fn locked(admin: &Path) -> Option<String> {
    let path = admin.join("locked");
    path.exists()
        .then(|| text_file(&path).unwrap_or_default().trim().to_owned())
}

/// The names of all commits in the reflog `name` of the files in `dir`; `None` if there is no
/// such file.
pub(crate) fn reflog(dir: &Path, name: &str) -> Option<Vec<String>> {
    let bytes = atomic::read(&dir.join("logs").join(name)).ok()??;
    Some(logged_commits(&bytes))
}

/// The names of all commits in a reflog with this content, each once.
pub(crate) fn logged_commits(bytes: &[u8]) -> Vec<String> {
    let (mut oids, mut seen) = (Vec::new(), HashSet::new());
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let names = line.split(' ').take(2);
        for oid in names.filter(|oid| is_oid(oid) && !is_zero(oid)) {
            // Agents write reflogs, of any length.
            if seen.insert(oid.to_owned()) {
                oids.push(oid.to_owned());
            }
        }
    }
    oids
}

/// The number of stashes in the shared list that were made on `branch`.
pub(crate) fn stashes_on(common: &Path, branch: &str) -> usize {
    let Ok(Some(bytes)) = atomic::read(&common.join("logs/refs/stash")) else {
        return 0;
    };
    stashes_in(&bytes, branch)
}

/// The same in a list with this content.
pub(crate) fn stashes_in(bytes: &[u8], branch: &str) -> usize {
    let text = String::from_utf8_lossy(bytes);
    // "WIP on <branch>: …", or "On <branch>: <message>".
    let marks = [format!("WIP on {branch}:"), format!("On {branch}:")];
    let message = |line: &str| line.split_once('\t').map(|(_, message)| message.to_owned());
    text.lines()
        .filter_map(message)
        .filter(|message| marks.iter().any(|mark| message.starts_with(mark)))
        .count()
}

/// True if nothing is there but what git puts into an empty worktree.
pub(crate) fn is_bare(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Err(_) => true,
        Ok(meta) if !meta.is_dir() => false,
        Ok(_) => {
            std::fs::read_dir(path)
                .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == ".git"))
                && !path.join(".git").is_dir()
        }
    }
}

/// True if the file is there and has lost its content: empty, or nothing but zeros.
pub(crate) fn has_no_text(path: &Path) -> bool {
    match atomic::read(path) {
        Ok(Some(bytes)) => bytes.is_empty() || bytes.contains(&0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reflog_takes_no_more_time_for_each_line_than_a_short_one() {
        let before = std::time::Instant::now();
        let lines = (1..300_000).map(|n| format!("{n:040x} {:040x} A <a> 1 +0000\tx\n", n + 1));
        let logged = logged_commits(lines.collect::<String>().as_bytes());
        assert_eq!(logged.len(), 300_000);
        assert_eq!(logged[1], format!("{:040x}", 2));
        // Comparing each with all before it takes minutes.
        assert!(before.elapsed() < std::time::Duration::from_secs(20));
    }

    #[test]
    fn a_head_names_a_branch_and_no_other_file() {
        let branch = |name: &str| Head::Branch(name.to_owned(), None);
        let plain = "refs/heads/feature/x";
        assert_eq!(parse_head(&format!("ref: {plain}\n")), branch(plain));
        for name in [
            "refs/heads/../../../../etc/passwd",
            "refs/heads/..",
            "refs/heads/a\nrefs/heads/b",
            "refs/heads/a\u{1b}[2J",
            "refs/heads//a",
            "refs/heads/",
            "refs/heads/a.lock",
        ] {
            assert_eq!(
                parse_head(&format!("ref: {name}\n")),
                Head::Elsewhere,
                "{name:?}"
            );
        }
    }
}
