//! The two rarer ways to a tree: checking out again what somebody deleted, and a hook.

use std::path::Path;

use store::atomic;
use store::fault::reached;

use crate::create::request::{CreateHook, CreateRequest, Created};
use crate::doctor::recover::is_bare;
use crate::error::TreeError;
use crate::fault;
use crate::git::Git;
use crate::git::admin;
use crate::git::files;
use crate::git::history::History;
use crate::lease::Lease;
use crate::registry::events::Event;
use crate::registry::{Entry, Op, Status};
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// A registered tree whose directory somebody deleted: its files are checked out again,
    /// and what git still has of it (index, reflog, branch) stays as it is.
    pub(crate) fn check_out_again(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &CreateRequest<'_>,
    ) -> Result<Created, TreeError> {
        self.prepare_place(entry)?;
        self.set_op(slug, Some(Op::CheckingOut))?;
        // If this fails, the next command tries once more.
        self.fill_again(slug, entry)?;
        self.set_op(slug, None)?;
        self.resume(slug, request)?
            .ok_or_else(|| TreeError::NotFound {
                name: slug.to_string(),
            })
    }

    /// The steps of that; each is done only if it has not been done.
    pub(crate) fn fill_again(&self, slug: &Slug, entry: &Entry) -> Result<(), TreeError> {
        if files::admin_of(&self.layout, entry.path()).is_err() {
            self.register_again(slug, entry).inspect_err(|_| {
                // Only if nothing is in it.
                std::fs::remove_dir(entry.path()).ok();
            })?;
        }
        reached(fault::REFILL_REGISTERED);
        let admin = files::admin_of(&self.layout, entry.path());
        let admin = admin.map_err(|why| TreeError::NotOurs {
            path: entry.path().to_owned(),
            why,
        })?;
        let git = if admin.join("index").exists() {
            Git::at(entry.path(), "checkout-index").args(["--all", "--quiet"])
        } else {
            Git::at(entry.path(), "reset").args(["--hard", "--quiet"])
        };
        git.timeout(self.options.checkout_timeout).run()?;
        reached(fault::REFILL_FILLED);
        Ok(())
    }

    /// Lets git know the tree at its old place, with as much as there still is of it.
    fn register_again(&self, slug: &Slug, entry: &Entry) -> Result<(), TreeError> {
        if !is_bare(entry.path()) {
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
        let reference = format!("refs/heads/{branch}");
        let there = History::open(&self.layout.main).tip(&reference)?.is_some();
        let mut git = Git::with_config(
            &self.layout.main,
            "worktree",
            &["core.logAllRefUpdates=true"],
        )
        .args(["add", "--quiet", "--no-checkout"]);
        if !there {
            git = git.args(["--no-track", "-b", &branch]);
        }
        let from = if there {
            Some(&branch)
        } else {
            entry.base.as_ref()
        };
        git.arg("--")
            .arg(&entry.path)
            .args(from)
            .holding(&section.lock)?
            .once()
            .run()?;
        Ok(())
    }

    /// Writes down what is being done to the tree.
    pub(crate) fn set_op(&self, slug: &Slug, op: Option<Op>) -> Result<(), TreeError> {
        let mut section = self.section()?;
        section.entry(slug)?.op = op;
        section.save()
    }

    /// Lets `hook` make the tree, by whatever means.
    pub(crate) fn create_by_hook(
        &self,
        slug: &Slug,
        mut entry: Entry,
        request: &CreateRequest<'_>,
        hook: CreateHook<'_>,
    ) -> Result<Created, TreeError> {
        let failed = |why: String| TreeError::Hook {
            hook: "WorktreeCreate",
            why,
        };
        self.emit(&Event::of("worktree.create.before", &entry));
        let made = hook(slug).map_err(&failed).and_then(|printed| {
            let path = printed.trim();
            let place = Path::new(path);
            if !place.is_absolute() {
                return Err(failed(format!(
                    "it printed {path:?}, which is not an absolute path"
                )));
            }
            if !place.is_dir() {
                return Err(failed(format!(
                    "it printed {path:?}, which is not a directory"
                )));
            }
            Ok(path.to_owned())
        });
        match made {
            Ok(path) => entry.path = path,
            Err(error) => {
                self.emit(&Event::of("worktree.create.failed", &entry).with_error(&error));
                return Err(error);
            }
        }
        let mut section = self.section()?;
        section
            .registry
            .worktrees
            .retain(|e| e.status == Status::Removed || e.name != slug.as_str());
        section.registry.worktrees.push(entry.clone());
        section.save()?;
        drop(section);
        self.emit(&Event::of("worktree.create.after", &entry));
        let lease = if request.hold {
            Some(Lease::take(&self.layout, slug)?)
        } else {
            None
        };
        Ok(Created {
            entry,
            created: true,
            head: None,
            lease,
            notes: Vec::new(),
            duration_ms: 0,
        })
    }
}
