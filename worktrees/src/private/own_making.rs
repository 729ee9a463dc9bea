//! Branches and worktrees that an agent made in its own `.git`: only that has their commits.

use std::path::{Path, PathBuf};

use store::beneath::Root;

use crate::error::TreeError;
use crate::layout::{Layout, entries, name_of};
use crate::private::claims::{self, Claims};
use crate::trees::Trees;

/// The prefix of the branches of ccb's own worktrees.
const OURS: &str = "worktree/";
/// Maximum length of the path of a worktree.
const MOST_PATH: u64 = 8 * 1024;

/// A branch that only an agent's own `.git` has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnBranch {
    /// Without `refs/heads/`.
    pub(crate) name: String,
    /// The path of its checkout, if that was in a worktree the agent made.
    pub(crate) path: Option<PathBuf>,
    pub(crate) tip: String,
}

/// The branches with commits that the repository does not have, in the leftovers of the last stay
/// in the worktree at `tree`.
pub(crate) fn own_branches(layout: &Layout, tree: &Path) -> Result<Vec<OwnBranch>, TreeError> {
    let git_dir = layout.private_of(tree).join("git");
    let history = layout.history();
    let checked_out = checked_out(&git_dir);
    let mut found = Vec::new();
    for (reference, tip) in Claims::read(&git_dir).refs {
        let Some(name) = reference.strip_prefix("refs/heads/") else {
            continue;
        };
        if name.starts_with(OURS) || history.has(&tip)? {
            continue;
        }
        let path = checked_out.iter().find(|(branch, _)| *branch == reference);
        found.push(OwnBranch {
            name: name.to_owned(),
            path: path.map(|(_, path)| path.clone()),
            tip,
        });
    }
    Ok(found)
}

/// The worktrees that the agent made, by the branches they are on.
fn checked_out(git_dir: &Path) -> Vec<(String, PathBuf)> {
    let records = git_dir.join("worktrees");
    let is_dir = std::fs::symlink_metadata(&records).is_ok_and(|meta| meta.is_dir());
    let Some(root) = is_dir.then(|| Root::open(&records).ok()).flatten() else {
        return Vec::new();
    };
    let record = |dir: PathBuf| {
        let text = |file: &str| {
            let bytes = claims::bytes(&root, &format!("{}/{file}", name_of(&dir)), MOST_PATH)?;
            String::from_utf8(bytes).ok()
        };
        let head = text("HEAD")?;
        let branch = head.strip_prefix("ref: ")?.trim().to_owned();
        let at = PathBuf::from(text("gitdir")?.trim());
        Some((branch, at.parent()?.to_owned()))
    };
    entries(&records).into_iter().filter_map(record).collect()
}

impl Trees {
    /// The number of commits of `tip`, which only the private repository of `tree` has, beyond
    /// `known`.
    pub(crate) fn count_private(&self, tree: &Path, tip: &str, known: &[&str]) -> usize {
        let objects = self.layout.private_of(tree).join("git/objects");
        let count = self
            .reader("rev-list", &objects)
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                self.layout.common.join("objects"),
            )
            .args(["--count", tip, "--not"])
            .args(known)
            .line();
        let count = count.ok().and_then(|count| count.parse().ok());
        // There is at least the one that the repository does not have.
        count.unwrap_or(1)
    }
}
