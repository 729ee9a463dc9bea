//! git in the places of a repository.

use std::path::{Path, PathBuf};

use crate::error::TreeError;
use crate::git::{Git, History, files};
use crate::layout::Layout;

impl Layout {
    /// git's directory for the worktree at `tree`; an error if it is not one of this repository.
    pub(crate) fn admin_of(&self, tree: &Path) -> Result<PathBuf, TreeError> {
        files::admin_of(self, tree).map_err(|why| TreeError::NotOurs {
            path: tree.to_owned(),
            why,
        })
    }

    /// `git <verb>` in the main working tree.
    pub(crate) fn git(&self, verb: &str) -> Git {
        Git::at(&self.main, verb)
    }

    /// The history as seen from the main working tree.
    pub(crate) fn history(&self) -> History {
        History::of(self)
    }

    /// The commit a branch (without `refs/heads/`) stands at, `None` if there is no such branch.
    pub(crate) fn tip_of(&self, branch: &str) -> Result<Option<String>, TreeError> {
        self.history().tip(&format!("refs/heads/{branch}"))
    }
}
