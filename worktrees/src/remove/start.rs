//! Removes a worktree so that it can be restored.
//!
//! Nothing is deleted. The directory is renamed into the trash, and so is git's own directory for
//! it, with index, reflogs and any unfinished merge or rebase; refs hold the objects these name.
//! The rename of the files is the decisive step: before it, a crash leaves the worktree unchanged;
//! after it, the next command finishes the removal.

use std::path::{Path, PathBuf};

use store::atomic;
use store::fault::reached;
use store::tree::device;

use crate::change_report::{ChangeState, Changes};
use crate::changes;
use crate::error::TreeError;
use crate::fault;
use crate::git::{admin, files};
use crate::lease::Lease;
use crate::registry::{Entry, Event, Op, Section, TreeStatus};
use crate::remove::{Rescue, rescue};
use crate::slug::Slug;
use crate::trees::Trees;

/// Removes a worktree that a hook made.
pub type RemoveHook<'a> = &'a dyn Fn(&Entry) -> Result<(), String>;

/// The request to remove a worktree.
#[derive(Clone, Default)]
pub struct RemoveRequest<'a> {
    /// True to remove it in spite of its changes.
    pub discard: bool,
    /// True to keep ignored files, too, when the trash is emptied.
    pub rescue_ignored: bool,
    /// A commit that the caller keeps. If all work in the worktree is part of it, nothing goes to
    /// the trash: the files are deleted at once.
    pub kept: Option<&'a str>,
    /// Removes worktrees a hook made.
    pub hook: Option<RemoveHook<'a>>,
}

impl std::fmt::Debug for RemoveRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoveRequest")
            .field("discard", &self.discard)
            .field("rescue_ignored", &self.rescue_ignored)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

/// A worktree that was removed.
#[derive(Debug)]
pub struct Removed {
    /// Its entry in the registry.
    pub entry: Entry,
    /// The changes it had.
    pub changes: Changes,
    /// The reason why the branch is kept; `None` if it was deleted.
    pub branch_kept: Option<String>,
    /// True if it can be restored.
    pub undoable: bool,
}

/// A worktree that is about to be removed, as it was found.
#[derive(Debug)]
pub(crate) struct InspectedTree {
    /// git's directory for it.
    admin: Option<PathBuf>,
    /// See [`rescue::seen`].
    seen: u64,
    changes: Changes,
}

/// The reason of the lock that keeps git from pruning the record while the directory is moved.
pub(crate) const MOVING: &str = "ccb is moving it";

impl Trees {
    /// Removes the worktree if it has no changes, or if `request` discards them.
    pub fn remove(&self, slug: &Slug, request: &RemoveRequest<'_>) -> Result<Removed, TreeError> {
        self.layout.create_dirs()?;
        self.recover_others(slug);
        let _lock = self.tree_lock(slug)?;
        self.recover(slug)?;
        let entry = self.get(slug)?;
        let remove = || self.remove_locked(slug, &entry, request);
        self.with_events("worktree.remove", &entry, remove, removed_event)
    }

    /// Moves the worktree to the trash with everything in it. Its lock is held, and it is not in
    /// use.
    pub(crate) fn remove_as_found(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &RemoveRequest<'_>,
    ) -> Result<Removed, TreeError> {
        let remove = || {
            self.end_stay(entry)?;
            let found = self.inspect(entry, self.own_admin(entry)?);
            self.move_to_trash(slug, entry, found, request)
        };
        self.with_events("worktree.remove", entry, remove, removed_event)
    }

    /// Fails if [`Self::remove`] would refuse; else returns the changes in the worktree. Changes
    /// nothing.
    pub fn check_remove(&self, slug: &Slug, discard: bool) -> Result<Changes, TreeError> {
        let entry = self.get(slug)?;
        if self.layout.lease(slug).exists() {
            drop(Lease::exclude_holders(&self.layout, slug)?);
        }
        if !entry.hook_based {
            self.own_admin(&entry)?;
        }
        let changes = changes::of(&self.layout, &entry);
        self.refuse_changes(&entry, &changes, discard)?;
        Ok(changes)
    }

    fn remove_locked(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &RemoveRequest<'_>,
    ) -> Result<Removed, TreeError> {
        let _nobody_inside = Lease::exclude_holders(&self.layout, slug)?;
        if entry.hook_based {
            return self.remove_by_hook(slug, entry, request);
        }
        self.end_stay(entry)?;
        // Counted now, when no agent of ccb can work in it any more.
        let found = self.inspect(entry, self.own_admin(entry)?);
        self.refuse_changes(entry, &found.changes, request.discard)?;
        let removed = self.move_to_trash(slug, entry, found, request)?;
        match removed.entry.trash.as_ref().filter(|trash| trash.emptied) {
            Some(trash) => {
                self.delete_emptied(trash)?;
                Ok(Removed {
                    undoable: false,
                    ..removed
                })
            }
            None => Ok(removed),
        }
    }

    /// Inspects a worktree that is about to be removed.
    pub(crate) fn inspect(&self, entry: &Entry, admin: Option<PathBuf>) -> InspectedTree {
        // The stamps first: later changes are noticed.
        let stamps = |admin: &PathBuf| rescue::seen(&self.layout, entry, admin);
        let seen = admin.as_ref().map_or(0, stamps);
        let mut changes = changes::of(&self.layout, entry);
        // A git at work does not disturb the inspection, but its next step is unknown.
        if admin
            .as_ref()
            .is_some_and(|dir| dir.join("index.lock").exists())
        {
            changes = changes.unknown("git is at work in it, or was killed there (index.lock)");
        }
        InspectedTree {
            seen,
            changes,
            admin,
        }
    }

    fn refuse_changes(
        &self,
        entry: &Entry,
        changes: &Changes,
        discard: bool,
    ) -> Result<(), TreeError> {
        // Landed work is not lost with the worktree.
        let nothing = changes.state == ChangeState::Clean || discard;
        if nothing || self.landed_in(entry, changes).is_some() {
            return Ok(());
        }
        Err(TreeError::HasChanges {
            name: entry.name.clone(),
            changes: Box::new(changes.clone()),
        })
    }

    /// git's directory for the worktree, if all its files are sound; `None` if both are gone.
    pub(crate) fn own_admin(&self, entry: &Entry) -> Result<Option<PathBuf>, TreeError> {
        let path = entry.path();
        let admin = if std::fs::symlink_metadata(path).is_err() {
            admin::find(&self.layout, path)
        } else {
            let admin = self.layout.admin_of(path)?;
            self.check_place(path)?;
            Some(admin)
        };
        if let Some(reason) = admin.as_deref().and_then(files::locked) {
            return Err(TreeError::Locked {
                name: entry.name.clone(),
                reason,
            });
        }
        Ok(admin)
    }

    /// Checks that the worktree is at its place, reached through no link, and no mount point.
    fn check_place(&self, path: &Path) -> Result<(), TreeError> {
        let trees = self.layout.trees();
        let real = trees.canonicalize().ok();
        if path.parent() != Some(&trees) || real.as_deref() != Some(&trees) {
            return Err(TreeError::NotOurs {
                path: path.to_owned(),
                why: format!("it is not directly in {}", trees.display()),
            });
        }
        let here = device(path)?;
        if here != device(&trees)? || here != device(&self.layout.trash())? {
            return Err(TreeError::OtherFileSystem {
                path: path.to_owned(),
            });
        }
        Ok(())
    }

    pub(crate) fn move_to_trash(
        &self,
        slug: &Slug,
        entry: &Entry,
        found: InspectedTree,
        request: &RemoveRequest<'_>,
    ) -> Result<Removed, TreeError> {
        let InspectedTree {
            admin,
            seen,
            changes,
        } = found;
        let mut section = self.section()?;
        let id = next_id(self, &mut section, slug)?;
        let branch_tip = entry
            .branch
            .as_deref()
            .map(|branch| self.layout.tip_of(branch));
        let branch_tip = branch_tip.transpose()?.flatten();
        let kept_elsewhere = request.kept.is_some_and(|commit| {
            let on_branch = branch_tip.as_deref().is_none_or(|tip| tip == commit);
            on_branch && changes.only_commits_until(commit)
        });
        let retiring = section.entry(slug)?.op == Some(Op::Retiring);
        section.entry(slug)?.op = Some(Op::Removing {
            retiring,
            id: id.clone(),
            admin: admin.clone().unwrap_or_default(),
            seen,
            branch_tip: branch_tip.clone(),
            clean: changes.state == ChangeState::Clean,
            rescue_ignored: request.rescue_ignored,
            kept_elsewhere,
        });
        section.save()?;
        drop(section);
        reached(fault::REMOVE_RECORDED);
        let private = match kept_elsewhere {
            true => Vec::new(),
            false => self.rescue_private(entry)?,
        };
        let rescue = Rescue {
            layout: &self.layout,
            entry,
            private: &private,
            admin: admin.as_deref(),
            changes: &changes,
            branch_tip: branch_tip.as_deref(),
            id: &id,
            label: "",
            now_ms: self.now_ms(),
        };
        let rescued = match kept_elsewhere {
            true => Ok(()),
            false => rescue.keep(),
        };
        let moved = rescued.and_then(|()| {
            reached(fault::REMOVE_RESCUED);
            let mut section = self.section()?;
            self.move_directory(entry.path(), admin.as_deref(), &id)?;
            self.finish_removal(&mut section, slug)
        });
        match moved {
            Ok((entry, branch_kept)) => Ok(Removed {
                entry,
                changes,
                branch_kept,
                undoable: true,
            }),
            Err(error) => {
                // Either it has not begun, and is undone, or it is finished after all. It is not
                // tried again: it would fail again.
                let settled = match retiring {
                    true => self.stop_retiring(slug).and_then(|()| self.recover(slug)),
                    false => self.recover(slug),
                };
                if let Err(again) = settled {
                    tracing::warn!(error = %again, "the removal is left to the next command");
                }
                Err(error)
            }
        }
    }

    fn stop_retiring(&self, slug: &Slug) -> Result<(), TreeError> {
        let mut section = self.section()?;
        if let Some(Op::Removing { retiring, .. }) = &mut section.entry(slug)?.op {
            *retiring = false;
        }
        section.save()
    }

    /// The decisive step. Under the repository's lock.
    fn move_directory(&self, path: &Path, admin: Option<&Path>, id: &str) -> Result<(), TreeError> {
        let trash = self.layout.trash().join(id);
        store::home::create_private_dir(&trash)?;
        if let Some(admin) = admin {
            // Without this a `git worktree prune` would delete index and reflogs as soon as the
            // directory they belong to is not found.
            self.layout.write_git_file(&admin.join("locked"), MOVING)?;
            reached(fault::REMOVE_LOCKED);
        }
        if std::fs::symlink_metadata(path).is_ok() {
            atomic::rename(path, &trash.join("tree"))?;
            reached(fault::REMOVE_TREE_MOVED);
        } else if let Some(admin) = admin {
            atomic::rename(admin, &trash.join("admin"))?;
        }
        Ok(())
    }

    fn remove_by_hook(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &RemoveRequest<'_>,
    ) -> Result<Removed, TreeError> {
        let refused = |why| TreeError::HookBased {
            name: entry.name.clone(),
            why,
        };
        if !request.discard {
            return Err(refused(
                "its changes are unknown and it cannot be restored; --discard removes it",
            ));
        }
        let hook = request
            .hook
            .ok_or_else(|| refused("there is no WorktreeRemove hook"))?;
        hook(entry).map_err(|why| TreeError::Hook {
            hook: "WorktreeRemove",
            why,
        })?;
        let mut section = self.section()?;
        let entry = section.edit(slug, |entry| entry.status = TreeStatus::Removed)?;
        Ok(Removed {
            entry,
            changes: Changes::default(),
            branch_kept: None,
            undoable: false,
        })
    }
}

fn removed_event(removed: &Removed) -> Event {
    Event::of("worktree.remove.after", &removed.entry)
}

/// A name that was never used in the trash or among the rescue refs.
pub(crate) fn next_id(
    trees: &Trees,
    section: &mut Section<'_>,
    slug: &Slug,
) -> Result<String, TreeError> {
    if section.registry.last == 0 {
        // The registry is new; the one before may have left trash and refs.
        section.registry.last = rescue::highest_number(&trees.layout)?;
    }
    loop {
        section.registry.last += 1;
        let id = format!("{}-{}", slug.flat(), section.registry.last);
        if !trees.layout.trash().join(&id).exists() {
            return Ok(id);
        }
    }
}
