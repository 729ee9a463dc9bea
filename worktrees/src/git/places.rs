//! git in the places of a repository.

use std::path::{Path, PathBuf};

use crate::error::TreeError;
use crate::git::{Git, Head, History, files};
use crate::layout::Layout;

impl Layout {
    /// git's directory for the worktree at `tree`; an error if it is not one of this repository.
    pub(crate) fn admin_of(&self, tree: &Path) -> Result<PathBuf, TreeError> {
        files::admin_of(self, tree).map_err(|why| TreeError::NotOurs {
            path: tree.to_owned(),
            why,
        })
    }

    /// `git <verb>` in the main worktree.
    pub(crate) fn git(&self, verb: &str) -> Git {
        Git::at(&self.main, verb)
    }

    /// The history as seen from the main worktree.
    pub(crate) fn history(&self) -> History {
        History::of(self)
    }

    /// The commit of a branch (without `refs/heads/`), `None` if there is no such branch. A remote
    /// branch is at its last fetched commit.
    pub(crate) fn tip_of(&self, branch: &str) -> Result<Option<String>, TreeError> {
        self.history().tip(&reference_of(branch))
    }
}

/// The commit HEAD of the worktree is at, without a process where that is possible.
pub(crate) fn head_commit(layout: &Layout, tree: &Path, admin: &Path) -> Option<String> {
    match files::head(layout, admin) {
        Head::Elsewhere => History::open(tree).resolve("HEAD").ok(),
        head => head.commit(),
    }
}

/// The prefix of the branches of a remote.
pub(crate) const REMOTES: &str = "refs/remotes/";

/// The full name of a branch's ref; the name of a remote branch is full already.
pub(crate) fn reference_of(branch: &str) -> String {
    match branch.starts_with(REMOTES) {
        true => branch.to_owned(),
        false => format!("refs/heads/{branch}"),
    }
}
