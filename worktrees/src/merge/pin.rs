//! Commits that are kept although no worktree has them any more: pinned, checked, put on a branch.
//!
//! A caller that accepts the result of a worktree for good pins its commit under `refs/ccb/`; then
//! the worktree can be removed. Such commits are merged ([`Trees::compose`]), checked in a worktree
//! of their own, and put on a branch, which moves in one step of git's.

use std::path::{Path, PathBuf};

use store::atomic;
use store::lock::FileLock;

use crate::check::Check;
use crate::error::TreeError;
use crate::git::{in_process, links};
use crate::merge::{Target, TargetMove};
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// Keeps `commit` under `refs/ccb/<name>`, even if the worktree it was made in is removed. Call
    /// [`Self::make_durable`] before you remove anything else that keeps it.
    pub fn pin(&self, name: &str, commit: &str) -> Result<(), TreeError> {
        let reference = pin_name(name)?;
        links::refuse(&self.layout, None, &reference)?;
        if in_process::set_ref(&self.layout, &reference, commit).is_some() {
            return Ok(());
        }
        self.layout
            .git("update-ref")
            .args(["--end-of-options", &reference, commit])
            .run()?;
        Ok(())
    }

    /// Keeps all of `commits` under one name, replacing the commits kept there, and removes the
    /// single names `instead_of`. `false` if only those can keep them.
    pub fn keep_together(
        &self,
        name: &str,
        commits: &[String],
        instead_of: &[String],
    ) -> Result<bool, TreeError> {
        let Some(all) = in_process::gather(&self.layout, commits) else {
            return Ok(false);
        };
        self.pin(name, &all)?;
        self.make_durable()?;
        self.unpin(instead_of)?;
        Ok(true)
    }

    /// Removes these names, if they exist.
    pub fn unpin(&self, names: &[String]) -> Result<(), TreeError> {
        let mut input = String::new();
        let history = self.layout.history();
        for name in names {
            let reference = pin_name(name)?;
            if let Some(tip) = history.tip(&reference)? {
                input.push_str(&format!("delete {reference} {tip}\n"));
            }
        }
        if !input.is_empty() {
            let git = self.layout.git("update-ref").arg("--stdin");
            git.input(input.into_bytes()).run()?;
        }
        Ok(())
    }

    /// The names of kept commits under `prefix`, which ends with a slash.
    pub fn pins_below(&self, prefix: &str) -> Result<Vec<String>, TreeError> {
        let lines = self
            .layout
            .git("for-each-ref")
            .args(["--format=%(refname)", &format!("refs/ccb/{prefix}")])
            .lines()?;
        let names = lines
            .iter()
            .filter_map(|line| line.strip_prefix("refs/ccb/"));
        Ok(names.map(str::to_owned).collect())
    }

    /// A commit on `onto` with the changes from `base` to `commit` and the message and author of
    /// the latter; `None` if they conflict, or if only git itself could do it.
    pub fn transplant(&self, base: &str, commit: &str, onto: &str) -> Option<String> {
        in_process::transplant(&self.layout, base, commit, onto)
    }

    /// The commit kept under `refs/ccb/<name>`, if it is there.
    pub fn pinned(&self, name: &str) -> Result<Option<String>, TreeError> {
        self.layout.history().tip(&pin_name(name)?)
    }

    /// Writes the commits kept under these names into one file, without the commits of `not`: for a
    /// copy of the repository that does not have them.
    pub fn save_pins(&self, names: &[String], not: &str, path: &Path) -> Result<(), TreeError> {
        let mut input = String::new();
        for name in names {
            input.push_str(&pin_name(name)?);
            input.push('\n');
        }
        input.push_str(&format!("^{not}\n"));
        let new = path.with_extension("new");
        self.layout
            .git("bundle")
            .args(["create", "--quiet"])
            .arg(&new)
            .arg("--stdin")
            .input(input.into_bytes())
            .timeout(self.options.checkout_timeout)
            .run()?;
        Ok(atomic::publish(&new, path, self.options.durability)?)
    }

    /// Takes over the commits in such a file, for good. Existing names are not changed.
    pub fn load_pins(&self, path: &Path) -> Result<(), TreeError> {
        self.layout
            .git("fetch")
            .args(["--quiet", "--no-tags", "--no-write-fetch-head"])
            .arg(path)
            .arg("refs/ccb/fanout/*:refs/ccb/fanout/*")
            .timeout(self.options.checkout_timeout)
            .run()?;
        self.make_durable()
    }

    /// True if the commit is in the repository.
    pub fn has_commit(&self, commit: &str) -> bool {
        let spec = format!("{commit}^{{commit}}");
        let full = self.layout.history().resolve(&spec);
        full.is_ok_and(|found| found == commit)
    }

    /// The commit of a branch; `None` if there is no branch of this name.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<String>, TreeError> {
        self.layout.history().tip(&branch_name(branch)?)
    }

    /// Runs the check on `commit` in a worktree of its own; returns the path of its output. `label`
    /// is part of that file's name.
    pub fn check_result(
        &self,
        label: &Slug,
        commit: &str,
        check: &Check<'_>,
    ) -> Result<PathBuf, TreeError> {
        self.layout.create_dirs()?;
        self.check_commit(label, commit, check)
    }

    /// Sets `branch` to `commit`. An existing one only moves forward, with the worktree that has it
    /// checked out; unless it is at `own`, a commit that only the caller has put there: that branch
    /// may be built anew. Not on the disk before [`Self::make_durable`].
    pub fn put_branch(
        &self,
        branch: &str,
        commit: &str,
        own: Option<&str>,
    ) -> Result<(), TreeError> {
        self.layout.create_dirs()?;
        let reference = branch_name(branch)?;
        let timeout = self.options.checkout_timeout;
        let turn = FileLock::exclusive(&self.layout.landing_lock(), "landing commits", timeout)?;
        // The objects first: a branch must not name a commit that is not on the disk.
        self.make_durable()?;
        let history = self.layout.history();
        let update = |old: &str| {
            self.layout
                .git("update-ref")
                .args(["-m", "ccb: results landed", &reference, commit, old])
                .holding(&turn)?
                .run()
        };
        let moved = || TreeError::TargetMoved {
            branch: branch.to_owned(),
        };
        let Some(tip) = history.tip(&reference)? else {
            // git's name for "nowhere".
            let zero = "0".repeat(commit.len());
            update(&zero).map_err(|_| moved())?;
            return Ok(());
        };
        if tip == commit {
            return Ok(());
        }
        let target = Target::find(&self.layout, Some(branch))?;
        if history.is_ancestor(&tip, commit)? {
            return match target.advance(&self.layout, commit, &turn, timeout)? {
                TargetMove::Moved => Ok(()),
                TargetMove::MovedByOthers => Err(moved()),
            };
        }
        if own == Some(tip.as_str()) && target.checkout.is_none() {
            update(&tip).map_err(|_| moved())?;
            return Ok(());
        }
        Err(moved())
    }
}

fn pin_name(name: &str) -> Result<String, TreeError> {
    valid(format!("refs/ccb/{name}"))
}

fn branch_name(branch: &str) -> Result<String, TreeError> {
    let name = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    valid(format!("refs/heads/{name}"))
}

fn valid(reference: String) -> Result<String, TreeError> {
    match git2::Reference::is_valid_name(&reference) {
        true => Ok(reference),
        false => Err(TreeError::Invalid {
            what: format!("{reference:?}"),
            why: "git does not accept it as the name of a branch".into(),
        }),
    }
}
