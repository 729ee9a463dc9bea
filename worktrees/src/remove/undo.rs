//! Restores a removed worktree.

use std::path::Path;

use store::atomic::{self, Durability};
use store::fault::reached;

use crate::error::TreeError;
use crate::fault;
use crate::git::admin;
use crate::registry::{Entry, Event, Op, Registry, Section, Trashed, TreeStatus};
use crate::remove::MOVING;
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// Restores the last removed worktree of this name: its files, branch and index, and any
    /// unfinished merge or rebase.
    pub fn undo(&self, slug: &Slug) -> Result<Entry, TreeError> {
        self.layout.create_dirs()?;
        self.recover_others(slug);
        let _lock = self.tree_lock(slug)?;
        self.recover(slug)?;
        let registry = Registry::load(&self.layout)?;
        if registry.find(slug).is_some() {
            return Err(TreeError::Exists {
                name: slug.to_string(),
            });
        }
        registry.check_clash(slug)?;
        let nothing = || TreeError::NothingToUndo {
            name: slug.to_string(),
        };
        let entry = registry.last_removed(slug).ok_or_else(nothing)?.clone();
        let trash = entry.trash.as_ref().filter(|trash| !trash.emptied);
        let trash = trash.ok_or_else(nothing)?;
        if !self.layout.trash().join(&trash.id).join("tree").is_dir() {
            return Err(nothing());
        }
        if std::fs::symlink_metadata(entry.path()).is_ok() {
            return Err(TreeError::PathTaken {
                path: entry.path().to_owned(),
                why: "the worktree would be restored there".into(),
            });
        }
        self.check_branch_free(&entry, trash)?;
        let mut section = self.section()?;
        if let Some(entry) = section.registry.trashed_mut(&trash.id) {
            entry.op = Some(Op::Restoring);
        }
        section.save()?;
        drop(section);
        reached(fault::UNDO_RECORDED);
        let entry = self.finish_undo(&entry)?;
        self.emit(&Event::of("worktree.undo", &entry));
        Ok(entry)
    }

    /// The branch must be gone, or at its recorded commit and checked out nowhere.
    fn check_branch_free(&self, entry: &Entry, trash: &Trashed) -> Result<(), TreeError> {
        let (Some(branch), Some(tip)) = (&entry.branch, &trash.branch_tip) else {
            return Ok(());
        };
        let now = self.layout.tip_of(branch)?;
        let free = match now {
            None => true,
            Some(now) => now == *tip && !admin::is_checked_out(&self.layout, branch)?,
        };
        if free {
            return Ok(());
        }
        Err(TreeError::BranchExists {
            branch: branch.clone(),
        })
    }

    /// The steps of an undo; each is done only if it has not been done.
    pub(crate) fn finish_undo(&self, entry: &Entry) -> Result<Entry, TreeError> {
        let mut section = self.section()?;
        let Some(trash) = entry.trash.clone() else {
            return Ok(entry.clone());
        };
        let dir = self.layout.trash().join(&trash.id);
        let mut branch_made = None;
        let restored = self.restore(entry, &trash, &dir, &mut branch_made);
        if let Err(error) = restored {
            // Still whole in the trash: it can be tried again.
            if dir.join("tree").exists() {
                self.put_admin_back(&trash, &dir);
                if let (Some(made), Some(tip)) = (branch_made, &trash.branch_tip) {
                    admin::delete_ref(&self.layout, &made, tip)?;
                }
                edit_trashed(&mut section, &trash.id, |entry| entry.op = None)?;
            }
            return Err(error);
        }
        // Empty by now; other files in it must not be deleted.
        if let Err(error) = std::fs::remove_dir(&dir) {
            tracing::debug!(%error, dir = %dir.display(), "not removed");
        }
        let now = self.now();
        let entry = edit_trashed(&mut section, &trash.id, |entry| {
            entry.op = None;
            entry.status = TreeStatus::Active;
            entry.trash = None;
            // The user wants it now, whatever it was made for.
            entry.made_for = None;
            entry.last_used_at = now;
        })?;
        entry.ok_or(TreeError::NothingToUndo { name: trash.id })
    }

    fn restore(
        &self,
        entry: &Entry,
        trash: &Trashed,
        dir: &Path,
        branch_made: &mut Option<String>,
    ) -> Result<(), TreeError> {
        if let (Some(branch), Some(tip)) = (&entry.branch, &trash.branch_tip) {
            let reference = format!("refs/heads/{branch}");
            if self.layout.history().tip(&reference)?.is_none() {
                admin::create_refs(&self.layout, &[(reference.clone(), tip.clone())])?;
                *branch_made = Some(reference);
            }
        }
        reached(fault::UNDO_BRANCH);
        // git's directory first: a worktree whose `.git` leads nowhere is no repository to `git
        // clean`, which would delete it.
        let from = dir.join("admin");
        let admin = self.admin_home(trash);
        if from.is_dir() {
            store::home::create_dir(&self.layout.admin_dirs())?;
            let commondir = from.join("commondir");
            self.write(&commondir, "../..\n")?;
            self.write(&from.join("gitdir"), &format!("{}/.git\n", entry.path))?;
            atomic::rename(&from, &admin)?;
        }
        reached(fault::UNDO_ADMIN);
        let tree = dir.join("tree");
        if tree.is_dir() {
            if admin.is_dir() {
                self.write(
                    &tree.join(".git"),
                    &format!("gitdir: {}\n", admin.display()),
                )?;
            }
            store::home::create_dir(&self.layout.trees())?;
            atomic::rename(&tree, entry.path())?;
        }
        let (private, place) = (dir.join("private"), self.layout.private_of(entry.path()));
        if private.is_dir() && !place.exists() {
            store::home::create_private_dir(&self.layout.private_dirs())?;
            atomic::rename(&private, &place)?;
        }
        reached(fault::UNDO_TREE);
        admin::unlock(&admin, MOVING)?;
        self.make_durable()
    }

    /// The old path of git's directory of the worktree, or a free name beside it.
    fn admin_home(&self, trash: &Trashed) -> std::path::PathBuf {
        let home = self.layout.admin_dirs();
        let was = home.join(&trash.admin);
        let ours = |path: &Path| crate::git::files::locked(path).as_deref() == Some(MOVING);
        if !was.exists() || ours(&was) {
            return was;
        }
        home.join(&trash.id)
    }

    fn put_admin_back(&self, trash: &Trashed, dir: &Path) {
        let admin = self.admin_home(trash);
        let ours = crate::git::files::locked(&admin).as_deref() == Some(MOVING);
        if ours && !dir.join("admin").exists() {
            let moved = atomic::rename(&admin, &dir.join("admin"));
            if let Err(error) = moved {
                tracing::warn!(%error, "git's directory of the worktree is not moved");
            }
        }
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), TreeError> {
        let tmp = self.layout.tmp();
        atomic::replace_keeping_mode(&tmp, path, text.as_bytes(), Durability::Full)?;
        Ok(())
    }
}

fn edit_trashed(
    section: &mut Section<'_>,
    id: &str,
    change: impl FnOnce(&mut Entry),
) -> Result<Option<Entry>, TreeError> {
    let Some(entry) = section.registry.trashed_mut(id) else {
        return Ok(None);
    };
    change(entry);
    let entry = entry.clone();
    section.save()?;
    Ok(Some(entry))
}
