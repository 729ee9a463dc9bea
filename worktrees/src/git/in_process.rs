//! Writing commits and refs with libgit2, which starts no process.
//!
//! Everything here says `None` where libgit2 cannot do it, or might do it in another way than git:
//! then git is asked, and what is wrong comes from git. What a ref says is on the disk before it
//! has its name, as with git; objects are synced by whoever says that they count.

use std::path::Path;

use git2::{Config, Index, Oid, Signature, Time};

use crate::git::opened;
use crate::layout::Layout;

/// The files of the index of a tree, whose directory among git's is `admin`, as a tree object.
pub(crate) fn write_tree(layout: &Layout, admin: &Path) -> Option<String> {
    let repo = opened::main(layout)?;
    let mut index = Index::open(&admin.join("index")).ok()?;
    Some(index.write_tree_to(&repo).ok()?.to_string())
}

/// A commit object by the one who git says commits here. No ref names it.
pub(crate) fn commit(layout: &Layout, tree: &str, parent: &str, message: &str) -> Option<String> {
    let repo = opened::main(layout)?;
    let who = identity(&repo.config().ok()?.snapshot().ok()?)?;
    let tree = repo.find_tree(Oid::from_str(tree).ok()?).ok()?;
    let parent = repo.find_commit(Oid::from_str(parent).ok()?).ok()?;
    let made = repo.commit(None, &who, &who, message, &tree, &[&parent]);
    Some(made.ok()?.to_string())
}

/// Who commits, if nothing but the plain two settings says so.
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
    // It does not know these, so it has not read what they include.
    let mut included = config.entries(Some("^includeif\\.hasconfig")).ok()?;
    if included.next().is_some() {
        return None;
    }
    let name = config.get_string("user.name").ok()?;
    let email = config.get_string("user.email").ok()?;
    Signature::now(&name, &email).ok()
}

/// A commit without files that has all of these among its ancestors. The same ones give the same
/// commit.
pub(crate) fn gather(layout: &Layout, commits: &[String]) -> Option<String> {
    /// So many parents does a commit have at most: some tools look at all pairs.
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

/// What was done from `base` to `commit`, as one commit on `onto`. The same ones give the same commit.
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

/// Moves the ref from `old` to `new`, with a line in its log and in that of HEAD if that is on it.
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

/// Makes the ref stand there, wherever it stood.
pub(crate) fn set_ref(layout: &Layout, name: &str, new: &str) -> Option<()> {
    let repo = opened::synced_main(layout)?;
    let new = Oid::from_str(new).ok()?;
    // git refuses to name what is not there.
    repo.find_commit(new).ok()?;
    repo.reference(name, new, true, "ccb").ok()?;
    Some(())
}

/// Makes a ref that is not there, with a log.
pub(crate) fn create_ref(layout: &Layout, name: &str, new: &str) -> Option<()> {
    let repo = opened::synced_main(layout)?;
    let new = Oid::from_str(new).ok()?;
    repo.find_commit(new).ok()?;
    repo.reference_ensure_log(name).ok()?;
    repo.reference(name, new, false, "ccb").ok()?;
    Some(())
}

/// Deletes the ref if it stands at `expected`.
pub(crate) fn delete_ref(layout: &Layout, name: &str, expected: &str) -> Option<()> {
    let repo = opened::synced_main(layout)?;
    let mut found = repo.find_reference(name).ok()?;
    if found.target()? != Oid::from_str(expected).ok()? {
        return None;
    }
    // Refused if it has moved since it was looked at.
    found.delete().ok()
}
