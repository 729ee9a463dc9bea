//! The next command finishes or undoes what a crash interrupted.
//!
//! If the lock of a worktree with an `op` is free, the process that made it is dead.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use store::lock::FileLock;

use crate::error::TreeError;
use crate::git::stay::is_stay;
use crate::git::{admin, files, locks};
use crate::registry::{Entry, Event, Op, Registry, Section};
use crate::remove::{MOVING, RemoveRequest};
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// Recovers every worktree but `except`; failures are left to the next user of that worktree.
    pub(crate) fn recover_others(&self, except: &Slug) {
        self.clear_own_locks_once();
        if let Err(error) = self.drop_check_trees(false) {
            tracing::warn!(%error, "a check worktree is left to the next check");
        }
        let Ok(registry) = Registry::load(&self.layout) else {
            return;
        };
        for entry in registry.worktrees.iter().filter(|it| it.is_live()) {
            if is_stay(&self.layout, entry.path())
                && entry
                    .slug()
                    .is_ok_and(|slug| self.is_held(&slug).is_ok_and(|held| !held))
            {
                self.try_to_catch_up(entry);
            }
        }
        for entry in registry.worktrees.iter().filter(|e| e.op.is_some()) {
            let Ok(slug) = entry.slug() else { continue };
            if slug == *except {
                continue;
            }
            let free = FileLock::try_exclusive(&self.layout.tree_lock(&slug));
            if let Ok(Some(_lock)) = free
                && let Err(error) = self.recover(&slug)
            {
                tracing::warn!(worktree = %slug, %error, "cannot be recovered yet");
            }
        }
    }

    /// Removes locks of ccb's refs that a killed git left. The walk over all refs takes time, so
    /// each process does it once per repository.
    fn clear_own_locks_once(&self) {
        static CLEARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let mut cleared = CLEARED.lock().unwrap_or_else(PoisonError::into_inner);
        if cleared.insert(self.layout.common.clone()) {
            locks::clear_own(&self.layout);
        }
    }

    /// Finishes or undoes an operation on the worktree whose process died.
    pub fn settle(&self, slug: &Slug) -> Result<(), TreeError> {
        if !self.layout.locks().is_dir() {
            // No worktree was ever made here.
            return Ok(());
        }
        let _lock = self.tree_lock(slug)?;
        self.recover(slug)
    }

    /// Finishes or undoes a half-done operation on the worktree. Its lock is held.
    pub(crate) fn recover(&self, slug: &Slug) -> Result<(), TreeError> {
        let registry = Registry::load(&self.layout)?;
        let half_done = |entry: &&Entry| entry.name == slug.as_str() && entry.op.is_some();
        let Some(entry) = registry.worktrees.iter().find(half_done).cloned() else {
            return Ok(());
        };
        tracing::info!(worktree = %slug, op = ?entry.op, "finishing what was interrupted");
        match &entry.op {
            Some(Op::Creating | Op::Filling) => self.abandon(slug, &entry),
            Some(Op::Taking { from, admin }) => self.settle_taking(slug, &entry, from, admin),
            Some(Op::GivingBack { to, admin }) => {
                self.finish_giving_back(&mut self.section()?, slug, to, admin)
            }
            Some(Op::Removing {
                id,
                admin,
                retiring,
                ..
            }) => {
                self.settle_removal(slug, id, admin)?;
                match self.get(slug) {
                    Ok(entry) if *retiring => self.finish_retiring(slug, &entry),
                    _ => Ok(()),
                }
            }
            Some(Op::Retiring) => self.finish_retiring(slug, &entry),
            Some(Op::Restoring) => self.finish_undo(&entry).map(drop),
            Some(Op::Scratch) => self.erase(&mut self.section()?, slug),
            Some(Op::CheckingOut) => {
                if let Err(error) = self.fill_again(slug, &entry) {
                    tracing::warn!(worktree = %slug, %error, "not all of it could be checked out");
                }
                self.set_op(slug, None)
            }
            None => Ok(()),
        }
    }

    /// Removes a worktree whose creation was interrupted, but not files that a user may have put
    /// into it.
    pub(crate) fn abandon(&self, slug: &Slug, entry: &Entry) -> Result<(), TreeError> {
        self.emit(&Event::of("worktree.create.failed", entry).interrupted());
        if files::is_bare(entry.path()) {
            let mut section = self.section()?;
            return self.erase(&mut section, slug);
        }
        let admin = files::admin_of(&self.layout, entry.path());
        match admin {
            Ok(admin) => {
                admin::unlock(&admin, "initializing")?;
                let found = self.inspect(entry, Some(admin));
                self.move_to_trash(slug, entry, found, &RemoveRequest::default())?;
            }
            Err(_) if self.is_torn(entry) => {
                self.set_torn_aside(slug)?;
            }
            Err(why) => {
                // ccb did not make it: leave it in place and forget its entry.
                tracing::warn!(worktree = %slug, why, "left alone");
                let mut section = self.section()?;
                self.erase(&mut section, slug)?;
            }
        }
        Ok(())
    }

    fn settle_removal(&self, slug: &Slug, id: &str, admin: &Path) -> Result<(), TreeError> {
        let mut section = self.section()?;
        let trash = self.layout.trash().join(id);
        if trash.join("tree").exists() || trash.join("admin").exists() {
            let (entry, _) = self.finish_removal(&mut section, slug)?;
            self.emit(&Event::of("worktree.remove.after", &entry));
            return Ok(());
        }
        if admin.parent() == Some(&self.layout.admin_dirs()) {
            admin::unlock(admin, MOVING)?;
        }
        if trash.is_dir()
            && let Err(error) = std::fs::remove_dir(&trash)
        {
            tracing::debug!(%error, dir = %trash.display(), "not removed");
        }
        let entry = section.edit(slug, |entry| entry.op = None)?;
        self.emit(&Event::of("worktree.remove.failed", &entry).interrupted());
        Ok(())
    }

    /// Undoes what this process began to make and could not finish.
    pub(crate) fn undo_creation(&self, slug: &Slug) {
        let erased = Registry::load(&self.layout).and_then(|registry| {
            let entry = registry.find(slug).cloned();
            match entry
                .as_ref()
                .and_then(|entry| Some((entry, entry.op.as_ref()?)))
            {
                Some((entry, Op::Taking { from, admin })) => {
                    self.settle_taking(slug, entry, from, admin)
                }
                Some((_, Op::Creating | Op::Filling)) => self.erase(&mut self.section()?, slug),
                _ => Ok(()),
            }
        });
        if let Err(error) = erased {
            tracing::warn!(worktree = %slug, %error, "left to the next command");
        }
    }

    /// Removes all traces of a worktree that was never returned to a caller.
    pub(crate) fn erase(&self, section: &mut Section<'_>, slug: &Slug) -> Result<(), TreeError> {
        let entry = section.entry(slug)?.clone();
        let path = entry.path();
        let ours = files::admin_of(&self.layout, path).is_ok() || files::is_bare(path);
        // Out of the way in one step: half a worktree could not be told from other files.
        let doomed = self.layout.tmp().join(format!("erased-{}", slug.flat()));
        store::tree::delete(&doomed)?;
        let there = std::fs::symlink_metadata(path).is_ok();
        if ours
            && there
            && path.parent() == Some(&self.layout.trees())
            && store::atomic::rename(path, &doomed).is_err()
        {
            store::tree::delete(path)?;
        }
        let mut left = admin::unfinished(&self.layout, &slug.flat());
        left.extend(admin::find(&self.layout, path));
        if std::fs::symlink_metadata(path).is_err() {
            for dir in left {
                store::tree::delete(&dir)?;
            }
        }
        if let (Some(branch), Some(base)) = (&entry.branch, &entry.base) {
            let reference = format!("refs/heads/{branch}");
            let tip = self.layout.history().tip(&reference)?;
            // There was no such branch before; one that has moved has work on it.
            if tip.as_ref() == Some(base) && !admin::is_checked_out(&self.layout, branch)? {
                admin::delete_ref(&self.layout, &reference, base)?;
            }
        }
        if let Some(branch) = &entry.branch {
            self.clear_branch_lock(branch);
        }
        self.layout.forget_private(path)?;
        section.registry.forget(slug);
        section.save()?;
        Ok(store::tree::delete(&doomed)?)
    }
}
