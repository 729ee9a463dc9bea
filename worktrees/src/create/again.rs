//! The two rarer ways to a worktree: a new checkout of a deleted one, and a hook.

use std::path::Path;

use store::atomic;
use store::fault::reached;

use crate::create::{CreateHook, CreateRequest, Created, created_event};
use crate::error::TreeError;
use crate::fault;
use crate::git::{Git, admin, files};
use crate::registry::{Entry, Op, not_found};
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// Checks out the files of a registered worktree whose directory was deleted; what git still
    /// has of it (index, reflog, branch) is kept.
    pub(crate) fn check_out_again(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &CreateRequest<'_>,
    ) -> Result<Created, TreeError> {
        self.prepare_place(entry)?;
        self.set_op(slug, Some(Op::CheckingOut))?;
        // If this fails, the next command tries again.
        self.fill_again(slug, entry)?;
        self.set_op(slug, None)?;
        self.resume(slug, request)?.ok_or_else(|| not_found(slug))
    }

    /// The steps of that; each is done only if it has not been done.
    pub(crate) fn fill_again(&self, slug: &Slug, entry: &Entry) -> Result<(), TreeError> {
        if files::admin_of(&self.layout, entry.path()).is_err() {
            self.register_again(slug, entry).inspect_err(|_| {
                // Only if it is empty.
                std::fs::remove_dir(entry.path()).ok();
            })?;
        }
        reached(fault::REFILL_REGISTERED);
        let admin = self.layout.admin_of(entry.path())?;
        let git = if admin.join("index").exists() {
            Git::at(entry.path(), "checkout-index").args(["--all", "--quiet"])
        } else {
            Git::at(entry.path(), "reset").args(["--hard", "--quiet"])
        };
        git.timeout(self.options.checkout_timeout).run()?;
        reached(fault::REFILL_FILLED);
        Ok(())
    }

    /// Registers the worktree with git at its old place, with as much as there still is of it.
    fn register_again(&self, slug: &Slug, entry: &Entry) -> Result<(), TreeError> {
        if !files::is_bare(entry.path()) {
            return Err(TreeError::PathTaken {
                path: entry.path().to_owned(),
                why: "it is not the worktree that was there".into(),
            });
        }
        let section = self.section()?;
        if let Some(admin) = admin::find(&self.layout, entry.path()) {
            store::home::create_dir(entry.path())?;
            let text = format!("gitdir: {}\n", admin.display());
            atomic::replace_keeping_mode(
                &self.layout.tmp(),
                &entry.path().join(".git"),
                text.as_bytes(),
                atomic::Durability::Full,
            )?;
            return Ok(());
        }
        let branch = slug.branch();
        let new_branch = ["--no-track", "-b", &branch];
        let git = match self.layout.tip_of(&branch)? {
            Some(_) => self.add_worktree(&section, &[], entry, Some(&branch)),
            None => self.add_worktree(&section, &new_branch, entry, entry.base.as_deref()),
        };
        git?.once().run().map(drop)
    }

    /// Records the operation on the worktree.
    pub(crate) fn set_op(&self, slug: &Slug, op: Option<Op>) -> Result<(), TreeError> {
        let mut section = self.section()?;
        section.entry(slug)?.op = op;
        section.save()
    }

    /// Makes the worktree by `hook`.
    pub(crate) fn create_by_hook(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &CreateRequest<'_>,
        hook: CreateHook<'_>,
    ) -> Result<Created, TreeError> {
        let failed = |why: String| TreeError::Hook {
            hook: "WorktreeCreate",
            why,
        };
        let make = || {
            let printed = hook(slug).map_err(&failed)?;
            let path = Path::new(printed.trim());
            if !path.is_absolute() {
                return Err(failed(format!(
                    "it printed {path:?}, which is not an absolute path"
                )));
            }
            if !path.is_dir() {
                return Err(failed(format!(
                    "it printed {path:?}, which is not a directory"
                )));
            }
            let mut made = entry.clone();
            made.path = printed.trim().to_owned();
            let mut section = self.section()?;
            section.registry.forget(slug);
            section.registry.worktrees.push(made.clone());
            section.save()?;
            Ok(Created {
                entry: made,
                created: true,
                head: None,
                lease: None,
                notes: Vec::new(),
                duration_ms: 0,
            })
        };
        let mut created = self.with_events("worktree.create", entry, make, created_event)?;
        created.lease = self.lease_for(slug, request)?;
        Ok(created)
    }
}
