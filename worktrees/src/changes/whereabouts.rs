//! The branch and commit that a directory of the repository has checked out.

use std::path::Path;

use crate::error::TreeError;
use crate::git::{Git, History, line};
use crate::trees::Trees;

/// The HEAD of a worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// The branch, without `refs/heads/`; `None` if HEAD is on none.
    pub branch: Option<String>,
    /// The commit; `None` if there is none yet.
    pub commit: Option<String>,
}

impl Trees {
    /// The branch and commit of the worktree that `dir` is in.
    pub fn whereabouts(&self, dir: &Path) -> Result<Whereabouts, TreeError> {
        let (on_branch, bytes) = Git::at(dir, "symbolic-ref")
            .args(["--quiet", "--short", "HEAD"])
            .ask()?;
        Ok(Whereabouts {
            branch: on_branch.then(|| line(&bytes)),
            commit: History::open(dir).resolve("HEAD").ok(),
        })
    }
}
