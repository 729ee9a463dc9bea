//! Trees in which checks run: exactly one commit, in a place no agent works in.
//!
//! A check tree is a working tree with a repository of its own (`repository`) beside the other
//! trees. It is taken by one check at a time, under its lock. Before a check its files are those
//! of the commit again; what earlier checks left there and git ignores, such as the output of a
//! build, stays. It holds nobody's work: one that is damaged, or whose check was cut short by a
//! crash, is deleted and made anew.
//!
//! At a take: 1. the state says that the tree is busy. 2. The repository's own files are
//! written. 3. The commit is checked out. 4. What does not belong there is deleted. 5. The
//! set-up puts its things there. When the check is over the state says so.

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

/// A tree that is ours for one check.
#[derive(Debug)]
#[must_use = "a tree that is not released is deleted by the next check"]
pub struct CheckTree {
    pub(super) layout: Layout,
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) state: CheckState,
    /// It was not there before.
    pub(super) new: bool,
    /// When the last check in it was over.
    pub(super) last: Option<FileTime>,
    pub(super) lock: FileLock,
}

/// What becomes of a check tree after its check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCheck {
    /// It stays for the next check, unless there are more than can be of use.
    Keep,
    /// It goes if it was made for this check.
    Leave,
}

impl Trees {
    /// A tree with exactly the files of `commit` and what the set-up adds, its command
    /// excepted: that is the caller's to run.
    pub fn check_tree(&self, commit: &str, set_up: &SetUp) -> Result<CheckTree, TreeError> {
        set_up.check()?;
        self.layout.create_dirs()?;
        let mut tree = self.take_check_tree(commit)?;
        let mut prepared = tree.prepare(commit, set_up, self);
        if let (Err(error), false) = (&prepared, tree.new) {
            // Damaged in a way that git cannot repair.
            tracing::info!(tree = tree.name, %error, "the check tree is made anew");
            tree.make_anew(commit)?;
            prepared = tree.prepare(commit, set_up, self);
        }
        if prepared.is_err() {
            tree.delete();
        }
        prepared.map(|()| tree)
    }

    /// Deletes the check trees nobody uses: all of them, or those that a crash left.
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

    /// The names of the check trees there are.
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

    /// True if what is in this directory is a check tree.
    pub(crate) fn is_check_tree(&self, dir: &Path) -> bool {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        is_check_name(&name) && CheckState::is_ours(&self.layout, &name)
    }
}

impl CheckTree {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The main working tree of the repository it belongs to.
    pub fn main_tree(&self) -> &Path {
        &self.layout.main
    }

    /// What makes the agent's tree `of` differ from the commit without git showing it, in words:
    /// a check may have passed there and nowhere else.
    pub fn hidden_in(&self, of: &Path) -> Option<String> {
        hidden::describe(of, &self.path)
    }

    /// A handle on the lock, for a program that runs there.
    pub(crate) fn lock(&self) -> Result<std::fs::File, TreeError> {
        Ok(self.lock.handle()?)
    }

    /// The check is over, and so is everything it started.
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
            tracing::warn!(%error, "the check tree is made anew for the next check");
        }
    }

    /// Takes away everything. What cannot be deleted now is left to the next check.
    pub(super) fn delete(&self) {
        let deleted = store::tree::delete(&self.path).and_then(|()| {
            store::atomic::remove(&CheckState::path(&self.layout, &self.name)).map(drop)
        });
        if let Err(error) = deleted {
            tracing::warn!(%error, tree = self.name, "the check tree is left to the next check");
        }
    }

    /// An empty tree, whatever was there.
    pub(super) fn make_anew(&mut self, commit: &str) -> Result<(), TreeError> {
        self.new = true;
        self.state = CheckState::new(Traits::find(&self.layout, commit)?);
        // First of all: from here on it is known whose the directory is.
        self.state.save(&self.layout, &self.name)?;
        reached(fault::CHECK_CLAIMED);
        store::tree::delete(&self.path)?;
        self.layout.create_trees_dir()?;
        store::home::create_dir(&self.path)?;
        Ok(())
    }

    /// Makes the tree what it has to be for a check of `commit`.
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
                tracing::debug!(%error, "git will read the files of the new tree more than once");
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

    /// True if there is anything besides the files of the commit.
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

    /// Deletes ignored files that came after the last check was over: somebody has been here.
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

    /// The set-up, but for its command.
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

/// How many trees stay between checks: more than that can hardly be busy at once.
pub(super) fn kept_between_checks() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}
