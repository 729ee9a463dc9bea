//! The end of a stay: the ordinary `.git` is restored, whatever the agent did to its own.

use std::collections::BTreeSet;
use std::path::Path;

use store::atomic;
use store::fault::reached;

use crate::error::TreeError;
use crate::fault;
use crate::git::files;
use crate::git::stay::{Left, Stay};
use crate::layout::Layout;
use crate::private::{Claims, lfs, modules};
use crate::registry::Entry;
use crate::trees::Trees;

impl Trees {
    /// Ends the stay in the worktree, which is not in use; its lock is held. Can be repeated from
    /// any point. Returns the reason if its history was not taken over.
    pub(super) fn finish_stay(&self, entry: &Entry) -> Result<Option<String>, TreeError> {
        let tree = entry.path();
        let Some(mut stay) = Stay::read(&self.layout, tree)? else {
            return Ok(None);
        };
        if std::fs::symlink_metadata(tree).is_err() {
            // The whole worktree was deleted; other code decides about that.
            Stay::end(&self.layout, tree)?;
            return Ok(None);
        }
        let admin = self.layout.admin_of(tree)?;
        self.know_tip(entry, &admin, &mut stay);
        self.move_away(tree, &admin)?;
        let git_dir = self.layout.private_of(tree).join("git");
        self.take_over(entry, &admin, &git_dir, &mut stay)?;
        lfs::take_over(&self.layout, &git_dir)?;
        let mut left = examine(&self.layout, &git_dir, &stay)?;
        if left.nested > 0 {
            modules::let_go(tree, &git_dir, &mut left)?;
        }
        left.save(&self.layout, tree)?;
        reached(fault::LEAVE_SAVED);
        if left.is_nothing() {
            store::tree::delete(&git_dir)?;
        }
        Stay::end(&self.layout, tree)?;
        Ok(stay.refused)
    }

    /// Takes over the commits that are only in the leftovers of a stay, so that refs can hold them;
    /// returns them.
    pub(crate) fn rescue_private(&self, entry: &Entry) -> Result<Vec<String>, TreeError> {
        let left = Left::read(&self.layout, entry.path())?.unwrap_or_default();
        let known = files::is_oid(&left.tip).then_some(left.tip.as_str());
        let git_dir = self.layout.private_of(entry.path()).join("git");
        let known: Vec<&str> = known.into_iter().collect();
        let take = |tips: &[&str]| self.take_in_objects(&git_dir, tips, &known);
        let all: Vec<&str> = left.commits.iter().map(String::as_str).collect();
        if all.is_empty() {
            return Ok(Vec::new());
        }
        if take(&all)?.is_err() {
            // One that git refuses must not keep it from the others.
            for one in all {
                if let Err(why) = take(&[one])? {
                    let name = &entry.name;
                    tracing::warn!(
                        worktree = name,
                        commit = one,
                        why,
                        "it is only in the trash"
                    );
                }
            }
        }
        let history = self.layout.history();
        let mut taken = Vec::new();
        for commit in left.commits {
            if history.has(&commit)? {
                taken.push(commit);
            }
        }
        Ok(taken)
    }

    /// Restores the ordinary `.git`, and moves the private one to `git` among ccb's own files.
    fn move_away(&self, tree: &Path, admin: &Path) -> Result<(), TreeError> {
        let private = self.layout.private_of(tree);
        let (new, out, git) = (
            private.join("new"),
            private.join("out"),
            private.join("git"),
        );
        let there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
        let dot_git = tree.join(".git");
        if files::linked(&self.layout, tree).ok().as_deref() != Some(admin) {
            let text = format!("gitdir: {}\n", admin.display());
            store::tree::delete(&out)?;
            self.layout.write_git_file(&out, &text)?;
            reached(fault::LEAVE_PREPARED);
            match there(&dot_git) {
                true => atomic::exchange(&out, &dot_git)?,
                false => atomic::rename(&out, &dot_git)?,
            }
            reached(fault::LEAVE_EXCHANGED);
        }
        if there(&out) {
            store::tree::delete(&git)?;
            atomic::rename(&out, &git)?;
        }
        // Its maker died while making it: the repository it was made from is not lost.
        let is_dir = std::fs::symlink_metadata(&new).is_ok_and(|meta| meta.is_dir());
        if is_dir && !there(&git) {
            atomic::rename(&new, &git)?;
        }
        store::tree::delete(&new)?;
        reached(fault::LEAVE_MOVED);
        Ok(())
    }
}

/// The work that is only in the worktree's private repository, now or since the last stay.
pub(crate) fn what_is_left(layout: &Layout, tree: &Path) -> Result<Left, TreeError> {
    match Stay::read(layout, tree)? {
        Some(stay) => examine(layout, &tree.join(".git"), &stay),
        None => Ok(Left::read(layout, tree)?.unwrap_or_default()),
    }
}

fn examine(layout: &Layout, git_dir: &Path, stay: &Stay) -> Result<Left, TreeError> {
    let claims = Claims::read(git_dir);
    let history = layout.history();
    let own: BTreeSet<&String> = claims.refs.values().chain(&claims.logged).collect();
    let mut commits = Vec::new();
    for oid in own.into_iter().chain(&claims.head) {
        if !commits.contains(oid) && !history.has(oid)? {
            commits.push(oid.clone());
        }
    }
    let known = history.branches_and_tags()?;
    let is_new = |name: &String| !known.contains_key(name) && !name.starts_with("refs/remotes/");
    Ok(Left {
        tip: stay.tip.clone(),
        commits,
        stashes: claims.stashes,
        nested: claims.nested,
        unmerged: claims.unmerged,
        in_progress: claims.in_progress.map(str::to_owned),
        refs: claims.refs.keys().any(is_new),
        refused: stay.refused.clone(),
        ..Left::default()
    })
}

impl Layout {
    /// Deletes the leftovers of a stay in the worktree at `tree`.
    pub(crate) fn forget_private(&self, tree: &Path) -> Result<(), TreeError> {
        Ok(store::tree::delete(&self.private_of(tree))?)
    }
}
