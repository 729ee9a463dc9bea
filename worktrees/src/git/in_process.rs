//! Writes commits and refs with libgit2, which starts no process.
//!
//! Every function returns `None` where libgit2 cannot do it, or might do it in another way than
//! git: then the caller asks git, and errors come from git. The value of a ref is on the disk
//! before the ref has its name, as with git; the caller that relies on objects syncs them.

use std::path::Path;

use git2::{Config, Index, ObjectType, Oid, Signature, Time};

use crate::git::opened;
use crate::layout::Layout;

/// The result of `ask` in the repository, if libgit2 can open it.
pub(crate) fn with_main<T>(
    layout: &Layout,
    ask: impl FnOnce(&git2::Repository) -> Option<T>,
) -> Option<T> {
    ask(&*opened::main(layout)?)
}

/// Writes the files in the index of a worktree, whose directory of git's is `admin`, as a tree
/// object.
pub(crate) fn write_tree(layout: &Layout, admin: &Path) -> Option<String> {
    let repo = opened::main(layout)?;
    let mut index = Index::open(&admin.join("index")).ok()?;
    Some(index.write_tree_to(&repo).ok()?.to_string())
}

/// Makes a commit object by git's configured committer. No ref names it.
pub(crate) fn commit(layout: &Layout, tree: &str, parent: &str, message: &str) -> Option<String> {
    let repo = opened::main(layout)?;
    let who = identity(&repo.config().ok()?.snapshot().ok()?)?;
    let tree = repo.find_tree(Oid::from_str(tree).ok()?).ok()?;
    let parent = repo.find_commit(Oid::from_str(parent).ok()?).ok()?;
    let made = repo.commit(None, &who, &who, message, &tree, &[&parent]);
    Some(made.ok()?.to_string())
}

/// Writes a commit object as given; returns its name. git validates objects, so it gets the odd
/// ones.
pub(crate) fn write_commit(layout: &Layout, bytes: &[u8]) -> Option<String> {
    if bytes.contains(&0) {
        return None;
    }
    let repo = opened::main(layout)?;
    let written = repo.odb().ok()?.write(ObjectType::Commit, bytes);
    Some(written.ok()?.to_string())
}

/// The message of a commit.
pub(crate) fn message(layout: &Layout, commit: &str) -> Option<String> {
    let repo = opened::main(layout)?;
    let commit = repo.find_commit(Oid::from_str(commit).ok()?).ok()?;
    match commit.message_encoding() {
        Ok(None) => Some(commit.message().ok()?.to_owned()),
        _ => None,
    }
}

/// The committer and the time, in the form of a commit object.
pub(crate) fn committer(layout: &Layout) -> Option<String> {
    let repo = opened::main(layout)?;
    let who = identity(&repo.config().ok()?.snapshot().ok()?)?;
    let (name, email, when) = (who.name().ok()?, who.email().ok()?, who.when());
    let minutes = when.offset_minutes().abs();
    Some(format!(
        "{name} <{email}> {} {}{:02}{:02}",
        when.seconds(),
        when.sign(),
        minutes / 60,
        minutes % 60
    ))
}

/// The committer, if only the two plain settings name one.
fn identity(config: &Config) -> Option<Signature<'static>> {
    let others = [
        "author.name",
        "author.email",
        "committer.name",
        "committer.email",
        "i18n.commitencoding",
        // A worktree can have settings of its own.
        "extensions.worktreeconfig",
    ];
    if others.iter().any(|key| config.get_entry(key).is_ok()) {
        return None;
    }
    // libgit2 does not know these, so it has not read the files they include.
    let mut included = config.entries(Some("^includeif\\.hasconfig")).ok()?;
    if included.next().is_some() {
        return None;
    }
    let name = config.get_string("user.name").ok()?;
    let email = config.get_string("user.email").ok()?;
    Signature::now(&name, &email).ok()
}

/// A commit without files that has all of these among its ancestors. The same input gives the same
/// commit.
pub(crate) fn gather(layout: &Layout, commits: &[String]) -> Option<String> {
    /// Maximum of parents of a commit: some tools compare all pairs.
    const MOST: usize = 64;
    let repo = opened::main(layout)?;
    let who = Signature::new("ccb", "ccb@localhost", &Time::new(0, 0)).ok()?;
    let files = repo.treebuilder(None).ok()?.write().ok()?;
    let files = repo.find_tree(files).ok()?;
    let oids = commits.iter().map(|commit| Oid::from_str(commit).ok());
    let mut oids: Vec<Oid> = oids.collect::<Option<_>>()?;
    oids.sort_unstable();
    oids.dedup();
    loop {
        let mut above = Vec::new();
        for some in oids.chunks(MOST) {
            let parents = some.iter().map(|oid| repo.find_commit(*oid).ok());
            let parents: Vec<_> = parents.collect::<Option<_>>()?;
            let parents: Vec<_> = parents.iter().collect();
            let words = "Results that are kept\n";
            above.push(
                repo.commit(None, &who, &who, words, &files, &parents)
                    .ok()?,
            );
        }
        match above.as_slice() {
            [] => return None,
            [one] => return Some(one.to_string()),
            _ => oids = above,
        }
    }
}

/// The changes from `base` to `commit`, as one commit on `onto`. The same input gives the same
/// commit.
pub(crate) fn transplant(layout: &Layout, base: &str, commit: &str, onto: &str) -> Option<String> {
    let repo = opened::main(layout)?;
    let find = |oid: &str| repo.find_commit(Oid::from_str(oid).ok()?).ok();
    let (base, commit, onto) = (find(base)?, find(commit)?, find(onto)?);
    let (before, ours, theirs) = (base.tree().ok()?, onto.tree().ok()?, commit.tree().ok()?);
    let mut merged = repo.merge_trees(&before, &ours, &theirs, None).ok()?;
    if merged.has_conflicts() {
        return None;
    }
    let files = repo.find_tree(merged.write_tree_to(&repo).ok()?).ok()?;
    let words = commit.message().ok()?;
    let (author, committer) = (commit.author(), commit.committer());
    let made = repo.commit(None, &author, &committer, words, &files, &[&onto]);
    Some(made.ok()?.to_string())
}

/// The conflicts of merging `theirs` into `ours`: the files, and the lines of `ours`. A file that
/// one side deleted, or that is binary, has no lines.
pub(crate) fn conflicts(layout: &Layout, ours: &str, theirs: &str) -> Option<Vec<ConflictPlace>> {
    let repo = opened::main(layout)?;
    let find = |oid: &str| repo.find_commit(Oid::from_str(oid).ok()?).ok();
    let (ours, theirs) = (find(ours)?, find(theirs)?);
    let base = repo.merge_base(ours.id(), theirs.id()).ok()?;
    let base = repo.find_commit(base).ok()?.tree().ok()?;
    let (ours, theirs) = (ours.tree().ok()?, theirs.tree().ok()?);
    let merged = repo.merge_trees(&base, &ours, &theirs, None).ok()?;
    let mut places = Vec::new();
    for conflict in merged.conflicts().ok()? {
        let conflict = conflict.ok()?;
        let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
        let path = sides.into_iter().flatten().next()?.path.clone();
        let lines = match (&conflict.ancestor, &conflict.our, &conflict.their) {
            (Some(base), Some(ours), Some(theirs)) => {
                let merged = repo.merge_file_from_index(base, ours, theirs, None);
                merged.map_or_else(|_| Vec::new(), |merged| marked_lines(merged.content()))
            }
            _ => Vec::new(),
        };
        places.push(ConflictPlace {
            path: String::from_utf8_lossy(&path).into_owned(),
            lines,
        });
    }
    Some(places)
}

/// A file that two commits change in the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictPlace {
    /// The path from the top of the repository.
    pub path: String,
    /// The first and the last line of each place in it, counted from 1, in the first of the two
    /// commits.
    pub lines: Vec<(usize, usize)>,
}

/// The lines of our side between the marks of conflicts.
pub(crate) fn marked_lines(merged: &[u8]) -> Vec<(usize, usize)> {
    let (mut found, mut line, mut start) = (Vec::new(), 0, 0);
    let mut theirs = false;
    for text in merged.split(|byte| *byte == b'\n') {
        if text.starts_with(b"<<<<<<< ") {
            start = line + 1;
        } else if start > 0 && text.starts_with(b"=======") {
            // If our side has no lines, the line before counts.
            found.push((start.min(line.max(1)), line.max(1)));
            (theirs, start) = (true, 0);
        } else if theirs {
            theirs = !text.starts_with(b">>>>>>> ");
        } else {
            line += 1;
        }
    }
    found
}

/// Moves the ref from `old` to `new`, with a line in its log and in that of HEAD if HEAD is on it.
pub(crate) fn move_ref(
    layout: &Layout,
    dir: &Path,
    name: &str,
    old: &str,
    new: &str,
    why: &str,
) -> Option<()> {
    let repo = opened::open_synced(layout, dir)?;
    let (old, new) = (Oid::from_str(old).ok()?, Oid::from_str(new).ok()?);
    repo.reference_matching(name, new, true, old, why).ok()?;
    Some(())
}

/// Sets the ref to this commit, whatever it was.
pub(crate) fn set_ref(layout: &Layout, name: &str, new: &str) -> Option<()> {
    let repo = opened::synced_main(layout)?;
    let new = Oid::from_str(new).ok()?;
    // git refuses to make a ref to a missing commit.
    repo.find_commit(new).ok()?;
    repo.reference(name, new, true, "ccb").ok()?;
    Some(())
}

/// Makes a new ref, with a log.
pub(crate) fn create_ref(layout: &Layout, name: &str, new: &str) -> Option<()> {
    let repo = opened::synced_main(layout)?;
    let new = Oid::from_str(new).ok()?;
    repo.find_commit(new).ok()?;
    repo.reference_ensure_log(name).ok()?;
    repo.reference(name, new, false, "ccb").ok()?;
    Some(())
}

/// Deletes the ref if it is at `expected`.
pub(crate) fn delete_ref(layout: &Layout, name: &str, expected: &str) -> Option<()> {
    let repo = opened::synced_main(layout)?;
    let mut found = repo.find_reference(name).ok()?;
    if found.target()? != Oid::from_str(expected).ok()? {
        return None;
    }
    // Refused if it has moved since it was read.
    found.delete().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_conflicts_are_counted_in_our_side() {
        let merged = b"one\n<<<<<<< ours\ntwo\nthree\n=======\nzwei\n>>>>>>> theirs\nfour\n\
            <<<<<<< ours\n=======\nfuenf\nsechs\n>>>>>>> theirs\nend\n";
        assert_eq!(marked_lines(merged), [(2, 3), (4, 4)]);
        assert_eq!(marked_lines(b"=======\nplain\n"), []);
    }
}
