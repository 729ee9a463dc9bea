//! Gives a worktree a private `.git` while an agent works in it, and takes over its commits
//! meanwhile.

use std::path::Path;
use std::time::Duration;

use store::atomic;
use store::fault::reached;
use store::lock::FileLock;
use store::tree::device;

use crate::error::TreeError;
use crate::fault;
use crate::git::stay::{Left, Stay, is_stay};
use crate::git::{files, head_commit};
use crate::layout::{Layout, name_of};
use crate::lease::Lease;
use crate::private::make::Wanted;
use crate::private::modules;
use crate::registry::Entry;
use crate::slug::Slug;
use crate::trees::Trees;

/// Time limit for another process that takes over commits at the same time.
const PATIENCE: Duration = Duration::from_secs(60);

impl Layout {
    /// Held, together with others, while an agent is inside.
    fn stay_lock(&self, tree: &Path) -> std::path::PathBuf {
        let name = name_of(tree).to_ascii_lowercase();
        self.locks().join(format!("{name}.stay"))
    }

    /// Held while the `.git` of a worktree is exchanged, or commits are taken over.
    fn private_lock(&self, tree: &Path) -> std::path::PathBuf {
        let name = name_of(tree).to_ascii_lowercase();
        self.locks().join(format!("{name}.private"))
    }
}

impl Trees {
    /// Gives the worktree a `.git` of its own for an agent that is about to work in it, until
    /// [`Self::leave`], or until no process holds `lease` any more. Returns the reason if it cannot
    /// have one: it is on another file system, or a hook made it.
    pub fn enter(&self, slug: &Slug, lease: &mut Lease) -> Result<Option<String>, TreeError> {
        let entry = self.get(slug)?;
        if let Some(why) = self.why_no_private(&entry)? {
            return Ok(Some(why));
        }
        let _gate = self.private_gate(&entry)?;
        let inside = self.layout.stay_lock(entry.path());
        if is_stay(&self.layout, entry.path()) {
            match FileLock::try_exclusive(&inside)? {
                // The agent inside has died without leaving.
                Some(_nobody) => drop(self.finish_stay(&entry)?),
                None => {
                    lease.stay = FileLock::try_shared(&inside)?;
                    return Ok(None);
                }
            }
        }
        self.exchange_in(&entry)?;
        lease.stay = FileLock::try_shared(&inside)?;
        Ok(None)
    }

    /// Ends the use of the worktree's private `.git`: the commits in it are taken over, and the
    /// ordinary `.git` is restored, unless another agent is still inside. Returns the reason if
    /// commits were not taken over.
    pub fn leave(
        &self,
        slug: &Slug,
        lease: Option<&mut Lease>,
    ) -> Result<Option<String>, TreeError> {
        let entry = match self.get(slug) {
            Ok(entry) => entry,
            Err(TreeError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(lease) = lease {
            lease.stay = None;
        }
        self.end_stay(&entry)
    }

    /// Takes over the commits in the worktree's private `.git` so far, or ends the stay of an agent
    /// that died.
    pub fn catch_up(&self, entry: &Entry) -> Result<(), TreeError> {
        self.end_stay(entry).map(drop)
    }

    /// The same for display only: errors are left to other callers.
    pub(crate) fn try_to_catch_up(&self, entry: &Entry) {
        if let Err(error) = self.catch_up(entry) {
            let name = &entry.name;
            tracing::warn!(worktree = name, %error, "its last commits are not taken over yet");
        }
    }

    /// Ends the stay in the worktree if no agent is inside, else takes over the commits so far.
    pub(crate) fn end_stay(&self, entry: &Entry) -> Result<Option<String>, TreeError> {
        if entry.hook_based || !is_stay(&self.layout, entry.path()) {
            return Ok(None);
        }
        let _gate = self.private_gate(entry)?;
        // Another process may have done it.
        let Some(mut stay) = Stay::read(&self.layout, entry.path())? else {
            return Ok(None);
        };
        let inside = self.layout.stay_lock(entry.path());
        if FileLock::try_exclusive(&inside)?.is_some() {
            return self.finish_stay(entry);
        }
        let admin = self.layout.admin_of(entry.path())?;
        self.know_tip(entry, &admin, &mut stay);
        let git_dir = entry.path().join(".git");
        self.take_over(entry, &admin, &git_dir, &mut stay)?;
        Ok(stay.refused)
    }

    fn private_gate(&self, entry: &Entry) -> Result<FileLock, TreeError> {
        self.layout.create_dirs()?;
        let what = format!("the .git of worktree {:?}", entry.name);
        let path = self.layout.private_lock(entry.path());
        Ok(FileLock::exclusive(&path, &what, PATIENCE)?)
    }

    fn why_no_private(&self, entry: &Entry) -> Result<Option<String>, TreeError> {
        let no = |why: &str| Ok(Some(why.to_owned()));
        if entry.hook_based || entry.branch.is_none() {
            return no("it was made by a hook");
        }
        if self.layout.common.to_string_lossy().contains('\n') {
            return no("the path of the repository has a line break");
        }
        match device(entry.path())? == device(&self.layout.common)? {
            true => Ok(None),
            false => no("it is on another file system than the repository"),
        }
    }

    /// Makes the private repository and puts it in its place.
    fn exchange_in(&self, entry: &Entry) -> Result<(), TreeError> {
        let tree = entry.path();
        let admin = self.layout.admin_of(tree)?;
        let tip = head_commit(&self.layout, tree, &admin).ok_or(TreeError::NoCommit)?;
        Stay::new(&admin, &tip).write(&self.layout, tree)?;
        reached(fault::ENTER_RECORDED);
        let private = self.layout.private_of(tree);
        let (new, kept) = (private.join("new"), private.join("git"));
        store::tree::delete(&new)?;
        if std::fs::symlink_metadata(&kept).is_ok() {
            atomic::rename(&kept, &new)?;
        }
        let left = Left::read(&self.layout, tree)?.unwrap_or_default();
        let branch = entry.branch.as_deref().unwrap_or_default();
        Wanted {
            layout: &self.layout,
            admin: &admin,
            branch: &format!("refs/heads/{branch}"),
            tip: &tip,
            goes_on: left.in_progress.is_some() && left.tip == tip,
        }
        .make(&new)?;
        reached(fault::ENTER_MADE);
        atomic::exchange(&new, &tree.join(".git"))?;
        reached(fault::ENTER_EXCHANGED);
        modules::take_up(tree, &left);
        Ok(store::tree::delete(&new)?)
    }

    /// Sets the start of the agent's commits, if a power cut has lost it, to the commit of the
    /// branch.
    pub(super) fn know_tip(&self, entry: &Entry, admin: &Path, stay: &mut Stay) {
        if files::is_oid(&stay.tip) {
            return;
        }
        let tip = head_commit(&self.layout, entry.path(), admin);
        stay.tip = tip.or_else(|| entry.base.clone()).unwrap_or_default();
    }
}
