//! The two rarer ways to a tree: checking out again what somebody deleted, and a hook.

use std::path::Path;

use store::atomic;

use crate::admin;
use crate::error::TreeError;
use crate::events::Event;
use crate::git::Git;
use crate::gitfiles;
use crate::lease::Lease;
use crate::registry::{Entry, Status};
use crate::request::{CreateHook, CreateRequest, Created};
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
        let section = self.section()?;
        self.prepare_place(entry)?;
        let branch = slug.branch();
        match admin::find(&self.layout, entry.path()) {
            Some(admin) => {
                store::home::create_dir(entry.path())?;
                let text = format!("gitdir: {}\n", admin.display());
                atomic::replace_keeping_mode(
                    &self.layout.tmp(),
                    &entry.path().join(".git"),
                    text.as_bytes(),
                    atomic::Durability::Full,
                )?;
            }
            None => {
                Git::with_config(
                    &self.layout.main,
                    "worktree",
                    &["core.logAllRefUpdates=true"],
                )
                .args([
                    "add",
                    "--quiet",
                    "--no-checkout",
                    "--",
                    &entry.path,
                    &branch,
                ])
                .run()?;
            }
        }
        drop(section);
        let admin = gitfiles::admin_of(&self.layout, entry.path());
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
        self.resume(slug, request)?
            .ok_or_else(|| TreeError::NotFound {
                name: slug.to_string(),
            })
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
