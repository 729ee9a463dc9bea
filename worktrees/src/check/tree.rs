//! Worktrees in which checks run: exactly one commit, in a place where no agent works.
//!
//! A check worktree is a worktree with a repository of its own (`repository`) beside the other
//! worktrees. One check at a time uses it, under its lock. Before a check its files are those of
//! the commit again; files that earlier checks left there and git ignores, such as the output of a
//! build, are kept. It never holds an agent's or a user's work: a damaged one, or one whose check
//! was cut short by a crash, is deleted and made anew.
//!
//! The steps of a take: 1. The record says that the worktree is busy. 2. The repository's own files
//! are written. 3. The commit is checked out. 4. Foreign files are deleted. 5. The set-up places
//! its files. When the check is over, the record says so.

use std::path::{Path, PathBuf};

use store::fault::reached;
use store::lock::FileLock;

use crate::changes::hidden;
use crate::check::record::{CheckState, FileTime, modified, touched};
use crate::check::repository::{CHECK_CONFIG, CheckRepo, Traits};
use crate::create::{SetUp, setup};
use crate::error::TreeError;
use crate::fault;
use crate::git::{Git, index_times, path_from, untouched, zero_split};
use crate::layout::{CHECK_PREFIX, Layout, entries, is_check_name, name_of};
use crate::slug::Slug;
use crate::trees::Trees;

/// A worktree that is held for one check.
#[derive(Debug)]
#[must_use = "a worktree that is not released is deleted by the next check"]
pub struct CheckTree {
    pub(super) layout: Layout,
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) state: CheckState,
    /// True if it was made for this check.
    pub(super) new: bool,
    /// The end of the last check in it.
    pub(super) last: Option<FileTime>,
    pub(super) lock: FileLock,
}

/// The fate of a check worktree after its check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCheck {
    /// Keep it for the next check, unless there are more than can be busy at once.
    Keep,
    /// Delete it if it was made for this check.
    Leave,
}

impl Trees {
    /// A worktree with exactly the files of `commit` and those of the set-up. The caller runs the
    /// set-up's command.
    pub fn check_tree(&self, commit: &str, set_up: &SetUp) -> Result<CheckTree, TreeError> {
        set_up.check()?;
        self.layout.create_dirs()?;
        let mut tree = self.take_check_tree(commit)?;
        let mut prepared = tree.prepare(commit, set_up, self);
        if let (Err(error), false) = (&prepared, tree.new) {
            // Damaged in a way that git cannot repair.
            tracing::info!(tree = tree.name, %error, "the check worktree is made anew");
            tree.make_anew(commit)?;
            prepared = tree.prepare(commit, set_up, self);
        }
        if prepared.is_err() {
            tree.delete();
        }
        prepared.map(|()| tree)
    }

    /// Deletes the free check worktrees: all of them, or those that a crash left.
    pub fn drop_check_trees(&self, all: bool) -> Result<usize, TreeError> {
        let mut dropped = 0;
        for name in self.check_trees() {
            let slug = Slug::new(&name)?;
            let Some(lock) = FileLock::try_exclusive(&self.layout.tree_lock(&slug))? else {
                continue;
            };
            let state = CheckState::load(&self.layout, &name);
            if all || state.is_none_or(|state| state.busy) {
                store::tree::delete(&self.layout.trees().join(&name))?;
                store::atomic::remove(&CheckState::path(&self.layout, &name))?;
                dropped += 1;
            }
            drop(lock);
        }
        Ok(dropped)
    }

    /// The names of all check worktrees.
    pub fn check_trees(&self) -> Vec<String> {
        let names = |dir: PathBuf| entries(&dir).into_iter().map(|path| name_of(&path));
        let trees = names(self.layout.trees());
        let states = names(self.layout.checks());
        let states = states.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()));
        let mut all: Vec<String> = trees.chain(states).collect();
        all.retain(|name| is_check_name(name) && CheckState::is_ours(&self.layout, name));
        all.sort();
        all.dedup();
        all
    }

    /// True if this directory is a check worktree.
    pub(crate) fn is_check_tree(&self, dir: &Path) -> bool {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        is_check_name(&name) && CheckState::is_ours(&self.layout, &name)
    }
}

impl CheckTree {
    /// The directory of the worktree.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The main worktree of the repository it belongs to.
    pub fn main_tree(&self) -> &Path {
        &self.layout.main
    }

    /// Describes the files that make the agent's worktree `of` differ from the commit unseen by
    /// git: a check may pass only there.
    pub fn hidden_in(&self, of: &Path) -> Option<String> {
        hidden::describe(of, &self.path)
    }

    /// A handle on the lock, for a program that runs there.
    pub(crate) fn lock(&self) -> Result<std::fs::File, TreeError> {
        Ok(self.lock.handle()?)
    }

    /// Ends the use of the worktree; the check and everything it started must have ended.
    pub fn release(mut self, after: AfterCheck) {
        reached(fault::CHECK_OVER);
        let number = self
            .name
            .strip_prefix(CHECK_PREFIX)
            .and_then(|n| n.parse().ok());
        let of_use = number.is_some_and(|number: usize| number <= kept_between_checks());
        if (after == AfterCheck::Leave && self.new) || !of_use {
            self.delete();
            return;
        }
        self.state.busy = false;
        if let Err(error) = self.state.save(&self.layout, &self.name) {
            tracing::warn!(%error, "the check worktree is made anew for the next check");
        }
    }

    /// Deletes the worktree. The next check deletes files that cannot be deleted now.
    pub(super) fn delete(&self) {
        let deleted = store::tree::delete(&self.path).and_then(|()| {
            store::atomic::remove(&CheckState::path(&self.layout, &self.name)).map(drop)
        });
        if let Err(error) = deleted {
            tracing::warn!(%error, tree = self.name, "the check worktree is left to the next check");
        }
    }

    /// Makes an empty worktree, whatever was there.
    pub(super) fn make_anew(&mut self, commit: &str) -> Result<(), TreeError> {
        self.new = true;
        self.state = CheckState::new(Traits::find(&self.layout, commit)?);
        // First of all: from here on the record says whose directory it is.
        self.state.save(&self.layout, &self.name)?;
        reached(fault::CHECK_CLAIMED);
        store::tree::delete(&self.path)?;
        self.layout.create_trees_dir()?;
        store::home::create_dir(&self.path)?;
        Ok(())
    }

    /// Prepares the worktree for a check of `commit`.
    fn prepare(&mut self, commit: &str, set_up: &SetUp, trees: &Trees) -> Result<(), TreeError> {
        let timeout = trees.options.checkout_timeout;
        let repo = CheckRepo {
            layout: &self.layout,
            tree: &self.path,
            traits: &self.state.traits,
            sparse: set_up.sparse_patterns(),
            hidden: set_up.linked(),
        };
        let index = repo.git_dir().join("index");
        repo.write(commit)?;
        if !self.new && !repo.index_is_sound() {
            store::tree::delete(&index)?;
        }
        reached(fault::CHECK_MADE);
        self.drop_stale()?;
        self.git("checkout")
            .args(["--quiet", "--force", "--detach", "--no-recurse-submodules"])
            .arg(commit)
            .timeout(timeout)
            .holding(&self.lock)?
            .run()?;
        if self.new {
            let git_dir = self.path.join(".git");
            if let Err(error) = index_times::backdate_files(&self.path, &git_dir, &git_dir) {
                tracing::debug!(%error, "git will read the files of the new worktree more than once");
            }
        } else {
            if !self.has_more_files()? {
                return self.finish_prepare(set_up);
            }
            self.git("clean")
                .args(["-ffdq"])
                .timeout(timeout)
                .holding(&self.lock)?
                .run()?;
            self.drop_foreign()?;
        }
        self.finish_prepare(set_up)
    }

    fn finish_prepare(&mut self, set_up: &SetUp) -> Result<(), TreeError> {
        self.place(set_up)?;
        reached(fault::CHECK_READY);
        Ok(())
    }

    /// True if there are files besides those of the commit.
    fn has_more_files(&self) -> Result<bool, TreeError> {
        if let Some(only) = untouched::has_only_indexed(&self.path, &self.path.join(".git")) {
            return Ok(!only);
        }
        let others = self
            .git("ls-files")
            .args(["-z", "--others", "--directory"])
            .run()?;
        Ok(!others.is_empty())
    }

    fn git(&self, verb: &str) -> Git {
        Git::with_config(&self.path, verb, CHECK_CONFIG)
    }

    /// Deletes copies whose originals have changed since.
    fn drop_stale(&mut self) -> Result<(), TreeError> {
        let (layout, path) = (&self.layout, &self.path);
        let stale =
            |name: &str, stamp: &FileTime| modified(&layout.main.join(name)) != Some(*stamp);
        let mut old: Vec<String> = Vec::new();
        for (name, stamp) in &self.state.copied {
            if setup::stays_inside(name) && stale(name, stamp) {
                store::tree::delete(&path.join(name))?;
                old.push(name.clone());
            }
        }
        for name in old {
            self.state.copied.remove(&name);
        }
        Ok(())
    }

    /// Deletes ignored files made after the end of the last check: another program was here.
    fn drop_foreign(&self) -> Result<(), TreeError> {
        let Some(last) = self.last else {
            return Ok(());
        };
        let ignored = self
            .git("ls-files")
            .args(["-z", "--others", "--ignored", "--directory"])
            .arg("--exclude-standard")
            .run()?;
        for name in zero_split(&ignored) {
            let path = self
                .path
                .join(path_from(name.strip_suffix(b"/").unwrap_or(name)));
            if touched(&path).is_some_and(|at| at > last) {
                tracing::info!(path = %path.display(), "not left by a check: deleted");
                store::tree::delete(&path)?;
            }
        }
        Ok(())
    }

    /// Places the files of the set-up, without running its command.
    fn place(&mut self, set_up: &SetUp) -> Result<(), TreeError> {
        let done = set_up.place_all(&self.layout, &self.path)?;
        for copied in done.copied {
            if let Some(stamp) = modified(&self.layout.main.join(&copied)) {
                self.state.copied.insert(copied, stamp);
            }
        }
        Ok(())
    }
}

/// The number of worktrees kept between checks: more can hardly be busy at once.
pub(super) fn kept_between_checks() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}
