//! Trees of our own that live as long as a check runs.
//!
//! Nobody works in one, so it is deleted and not kept: by us, or after a crash by the next
//! command that changes trees.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use store::atomic::open_private;
use store::fault::reached;
use store::lock::FileLock;

use crate::error::TreeError;
use crate::fault;
use crate::git::Git;
use crate::gitfiles;
use crate::process;
use crate::registry::{Entry, Op, Registry, Section, Status};
use crate::setup::SetUp;
use crate::slug::Slug;
use crate::trees::Trees;

/// A command that has to succeed in a tree with the merged result.
#[derive(Debug)]
pub struct Check<'a> {
    /// For the shell.
    pub command: String,
    /// It is killed, with everything it started, when this is over.
    pub timeout: Duration,
    /// What the tree gets besides its files.
    pub set_up: SetUp,
    /// Ends it when set.
    pub stop: &'a AtomicBool,
}

impl Trees {
    /// Runs the check on `commit`, which is to land for `tree`; returns where its output is.
    pub(crate) fn check_commit(
        &self,
        tree: &Slug,
        commit: &str,
        check: &Check<'_>,
    ) -> Result<PathBuf, TreeError> {
        check.set_up.check()?;
        let (slug, lock) = self.free_internal("ccb-merge")?;
        let result = self
            .add_detached(&slug, commit, Op::Scratch)
            .and_then(|entry| {
                reached(fault::MERGE_SCRATCH);
                self.run_check(tree, entry.path(), check, &lock)
            });
        let erased = self.section().and_then(|mut section| {
            if section.registry.find(&slug).is_some() {
                self.erase(&mut section, &slug)?;
            }
            Ok(())
        });
        if let Err(error) = erased {
            tracing::warn!(%error, "the scratch tree is left to the next command");
        }
        result
    }

    /// A name for a tree of our own that nothing has, and its lock.
    ///
    /// Numbered, so that the lock files, which stay, are few.
    pub(crate) fn free_internal(&self, prefix: &str) -> Result<(Slug, FileLock), TreeError> {
        let mut number = 0;
        loop {
            number += 1;
            let slug = Slug::new(&format!("{prefix}-{number}"))?;
            let path = self.layout.tree_lock(&slug);
            let Some(lock) = FileLock::try_exclusive(&path)? else {
                continue;
            };
            let registry = Registry::load(&self.layout)?;
            let place = self.layout.tree(&slug);
            let free = std::fs::symlink_metadata(&place).is_err() && !registry.knows(&slug);
            if free {
                return Ok((slug, lock));
            }
        }
    }

    /// Registers an empty tree on no branch, in the middle of `op`. Its lock is held.
    pub(crate) fn add_detached(
        &self,
        slug: &Slug,
        commit: &str,
        op: Op,
    ) -> Result<Entry, TreeError> {
        let path = self.layout.tree(slug);
        let entry = Entry {
            name: slug.to_string(),
            path: path.to_string_lossy().into_owned(),
            branch: None,
            base: Some(commit.to_owned()),
            task_id: None,
            task_list: None,
            agent: None,
            status: Status::Active,
            created_at: self.now(),
            last_used_at: self.now(),
            hook_based: false,
            sparse: false,
            trash: None,
            merged: None,
            placed: Vec::new(),
            op: Some(op),
            extra: serde_json::Map::new(),
        };
        self.prepare_place(&entry)?;
        crate::setup::exclude(&self.layout, &["/.claude/worktrees/".into()])?;
        let mut section: Section<'_> = self.section()?;
        section.registry.worktrees.push(entry.clone());
        section.save()?;
        Git::with_config(
            &self.layout.main,
            "worktree",
            &["core.logAllRefUpdates=true"],
        )
        .args(["add", "--quiet", "--no-checkout", "--detach", "--"])
        .args([entry.path.as_str(), commit])
        .holding(&section.lock)?
        .run()?;
        Ok(entry)
    }

    fn run_check(
        &self,
        of: &Slug,
        tree: &Path,
        check: &Check<'_>,
        lock: &FileLock,
    ) -> Result<PathBuf, TreeError> {
        let admin = gitfiles::admin_of(&self.layout, tree).map_err(|why| TreeError::NotOurs {
            path: tree.to_owned(),
            why,
        })?;
        self.check_out_files(tree, &admin, &check.set_up, lock)?;
        let stem = format!("merge-{}-{}", of.flat(), self.now_ms());
        let set_up_log = self.layout.logs().join(format!("{stem}-setup.log"));
        let done = check.set_up.run(&self.layout, tree, &set_up_log);
        done.map_err(|failure| TreeError::SetUp {
            name: of.to_string(),
            why: failure.why,
            log: failure.log,
        })?;
        let log = self.layout.logs().join(format!("{stem}.log"));
        let how = self.run_shell(tree, &log, check)?;
        match how {
            None => Ok(log),
            Some(how) => Err(TreeError::CheckFailed {
                command: check.command.clone(),
                how,
                log,
            }),
        }
    }

    /// How it failed, if it did.
    fn run_shell(
        &self,
        tree: &Path,
        log: &Path,
        check: &Check<'_>,
    ) -> Result<Option<String>, TreeError> {
        let output = open_private(log)?;
        let not_run = |source| TreeError::NotRun {
            program: check.command.clone(),
            source,
        };
        let errors = output.try_clone().map_err(not_run)?;
        let mut shell = Command::new("sh");
        // Whoever calls us from a hook has variables that point git elsewhere.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                shell.env_remove(name);
            }
        }
        shell
            .args(["-c", &check.command])
            .current_dir(tree)
            .env("CCB_WORKTREE", tree)
            .env("CCB_MAIN_TREE", &self.layout.main)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let ran = process::run_until(shell, None, check.timeout, check.stop).map_err(not_run)?;
        Ok(match (ran.timed_out, ran.status.success()) {
            (true, _) => Some(format!(
                "it was stopped after {} s",
                check.timeout.as_secs()
            )),
            (false, true) => None,
            (false, false) => Some(ran.status.to_string()),
        })
    }
}
