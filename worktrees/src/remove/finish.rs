//! The rest of a removal, once the files are in the trash. Can be repeated after a crash.

use std::path::Path;

use store::atomic;
use store::fault::reached;

use crate::change_report::Changes;
use crate::error::TreeError;
use crate::fault;
use crate::git::{admin, files};
use crate::layout::name_of;
use crate::registry::{Entry, Op, Section, Trashed};
use crate::remove::{Rescue, rescue};
use crate::slug::Slug;
use crate::trees::Trees;

/// The state of a removed worktree's branch.
#[derive(Debug)]
enum RemovedBranch {
    /// It is deleted; its commit was this.
    Gone(Option<String>),
    /// It is kept, for this reason.
    Stays(String),
}

impl Trees {
    /// The rest of a removal whose files are in the trash; can be repeated.
    pub(crate) fn finish_removal(
        &self,
        section: &mut Section<'_>,
        slug: &Slug,
    ) -> Result<(Entry, Option<String>), TreeError> {
        let entry = section.entry(slug)?.clone();
        let Some(Op::Removing {
            id,
            admin,
            seen,
            branch_tip,
            clean,
            rescue_ignored,
            kept_elsewhere,
            retiring: _,
        }) = entry.op.clone()
        else {
            return Ok((entry, None));
        };
        let trash = self.layout.trash().join(&id);
        let is_admin = admin.parent() == Some(&self.layout.admin_dirs());
        if is_admin && admin.is_dir() && !trash.join("admin").exists() {
            atomic::rename(&admin, &trash.join("admin"))?;
        }
        let private = self.layout.private_of(entry.path());
        if private.is_dir() && trash.is_dir() && !trash.join("private").exists() {
            atomic::rename(&private, &trash.join("private"))?;
        }
        reached(fault::REMOVE_ADMIN_MOVED);
        let late = self.rescue_late(&entry, &trash.join("admin"), &id, seen)?;
        // Before the branch is deleted, the refs that keep its commits must be on the disk. For a
        // worktree without work the names are enough.
        if clean && !late {
            atomic::sync_dir(&trash, self.options.durability)?;
        } else {
            self.make_durable()?;
        }
        let branch = self.delete_branch(&entry, branch_tip, &trash.join("admin"))?;
        reached(fault::REMOVE_BRANCH_GONE);
        let (branch_tip, branch_kept) = match branch {
            RemovedBranch::Gone(tip) => (tip, None),
            RemovedBranch::Stays(why) => (None, Some(why)),
        };
        let at = self.now();
        let removed = section.entry(slug)?;
        removed.set_removed(Trashed {
            id,
            at,
            admin: name_of(&admin),
            branch_tip,
            clean: clean && !late,
            rescue_ignored,
            // Marked before they are deleted: a half deleted worktree must not be restored.
            emptied: kept_elsewhere && !late && branch_kept.is_none(),
        });
        let removed = removed.clone();
        section.save()?;
        Ok((removed, branch_kept))
    }

    /// Gives commits and staged files made while the worktree was being moved refs of their own;
    /// true if there were any.
    fn rescue_late(
        &self,
        entry: &Entry,
        admin: &Path,
        id: &str,
        before: u64,
    ) -> Result<bool, TreeError> {
        if !admin.is_dir() || rescue::seen(&self.layout, entry, admin) == before {
            return Ok(false);
        }
        let changes = Changes {
            head: files::head(&self.layout, admin).commit(),
            ..Changes::default()
        };
        let rescue = Rescue {
            layout: &self.layout,
            entry,
            private: &[],
            admin: Some(admin),
            changes: &changes,
            branch_tip: None,
            id,
            label: "late-",
            now_ms: self.now_ms(),
        };
        rescue.keep()?;
        Ok(true)
    }

    /// Deletes the worktree's branch if it is at its recorded commit, or at a commit made in the
    /// worktree meanwhile; else returns the reason why it is kept.
    fn delete_branch(
        &self,
        entry: &Entry,
        tip: Option<String>,
        admin: &Path,
    ) -> Result<RemovedBranch, TreeError> {
        let (Some(branch), Some(tip)) = (&entry.branch, tip) else {
            return Ok(RemovedBranch::Gone(None));
        };
        let reference = format!("refs/heads/{branch}");
        let Some(now) = self.layout.history().tip(&reference)? else {
            return Ok(RemovedBranch::Gone(Some(tip)));
        };
        let made_here = || files::reflog(admin, "HEAD").is_some_and(|log| log.contains(&now));
        if now != tip && !made_here() {
            return Ok(RemovedBranch::Stays(format!(
                "branch {branch} has moved meanwhile"
            )));
        }
        if admin::is_checked_out(&self.layout, branch)? {
            return Ok(RemovedBranch::Stays(format!(
                "branch {branch} is checked out elsewhere"
            )));
        }
        admin::delete_ref(&self.layout, &reference, &now)?;
        Ok(RemovedBranch::Gone(Some(now)))
    }
}
