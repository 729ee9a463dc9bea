//! The records of a private repository. While it exists, the record names git's own directory for
//! the worktree.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::StoreError;
use store::atomic::{self, Durability};
use store::home::create_private_dir;

use crate::error::TreeError;
use crate::git::{admin, files};
use crate::layout::{Layout, name_of};

/// The version that ccb writes.
const VERSION: u64 = 1;

/// The record that a worktree's `.git` is private.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Stay {
    v: u64,
    /// The name of git's own directory for the worktree.
    admin: String,
    /// The commit of the agent's HEAD that was given to it or taken over last.
    pub(crate) tip: String,
    /// The reason why the last commits were not taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// The HEAD that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused_tip: Option<String>,
}

/// The leftovers of a stay that are neither a commit of the branch nor a file. Only the directory
/// that was moved away has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Left {
    pub(crate) v: u64,
    /// The commit of the branch.
    pub(crate) tip: String,
    /// Commits that the repository does not have: stashes, other branches, amended ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) commits: Vec<String>,
    /// The number of them that are stashes.
    pub(crate) stashes: usize,
    /// Submodules that were initialised in it.
    pub(crate) nested: usize,
    /// The path of each submodule, and of its repository in the private one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) modules: Vec<(String, String)>,
    /// A submodule at another commit than the worktree names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moved_module: Option<String>,
    /// Files with conflicts.
    pub(crate) unmerged: usize,
    /// The unfinished operation in it, in git's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_progress: Option<String>,
    /// True if it has branches or tags that the repository does not have.
    pub(crate) refs: bool,
    /// The reason why its history was not taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
}

impl Layout {
    /// ccb's directories for private repositories.
    pub(crate) fn private_dirs(&self) -> PathBuf {
        self.common.join("ccb/private")
    }

    /// The one for the worktree at `tree`.
    pub(crate) fn private_of(&self, tree: &Path) -> PathBuf {
        // Lower case, because names that differ only in case are one name.
        self.private_dirs().join(name_of(tree).to_ascii_lowercase())
    }

    fn stay_file(&self, tree: &Path) -> PathBuf {
        self.private_of(tree).join("stay.json")
    }

    fn left_file(&self, tree: &Path) -> PathBuf {
        self.private_of(tree).join("left.json")
    }
}

/// True if the `.git` of the worktree at `tree` is private, or may be half way to or from that.
pub(crate) fn is_stay(layout: &Layout, tree: &Path) -> bool {
    std::fs::symlink_metadata(layout.stay_file(tree)).is_ok()
}

/// git's own directory for the worktree at `tree` while its `.git` is private; `None` if it is not.
/// Reads no file in the worktree.
pub(crate) fn admin_of(layout: &Layout, tree: &Path) -> Option<Result<PathBuf, String>> {
    let stay = match Stay::read(layout, tree) {
        Ok(Some(stay)) => stay,
        Ok(None) => return None,
        Err(error) => return Some(Err(error.to_string())),
    };
    Some(stay.admin_dir(layout, tree))
}

impl Stay {
    pub(crate) fn new(admin: &Path, tip: &str) -> Self {
        Self {
            v: VERSION,
            admin: name_of(admin),
            tip: tip.to_owned(),
            ..Self::default()
        }
    }

    /// The stay in the worktree at `tree`, if there is one.
    pub(crate) fn read(layout: &Layout, tree: &Path) -> Result<Option<Self>, TreeError> {
        let path = layout.stay_file(tree);
        let Some(bytes) = atomic::read(&path)? else {
            return Ok(None);
        };
        // A power cut may have emptied it; git's records still say everything in it.
        let stay: Self = serde_json::from_slice(&bytes).unwrap_or_default();
        StoreError::check_version(&path, stay.v, VERSION)?;
        Ok(Some(stay))
    }

    pub(crate) fn write(&self, layout: &Layout, tree: &Path) -> Result<(), TreeError> {
        write(layout, &layout.stay_file(tree), self)
    }

    /// Ends the stay: from here on the worktree is an ordinary one.
    pub(crate) fn end(layout: &Layout, tree: &Path) -> Result<(), TreeError> {
        atomic::remove(&layout.stay_file(tree))?;
        Ok(())
    }

    /// git's own directory for the worktree, which must name it.
    fn admin_dir(&self, layout: &Layout, tree: &Path) -> Result<PathBuf, String> {
        let name = Path::new(&self.admin);
        let plain = matches!(
            name.components().collect::<Vec<_>>()[..],
            [Component::Normal(_)]
        );
        let noted = plain.then(|| layout.admin_dirs().join(name));
        let is_its_own = |admin: &PathBuf| {
            let at = files::tree_of(admin);
            at.is_some_and(|at| at == tree || at.canonicalize().ok() == tree.canonicalize().ok())
        };
        let found = noted
            .filter(is_its_own)
            .or_else(|| admin::find(layout, tree));
        found.ok_or_else(|| "git has no record of it any more".into())
    }
}

impl Left {
    /// The leftovers of the last stay in the worktree at `tree`. An unreadable record counts as
    /// leftovers.
    pub(crate) fn read(layout: &Layout, tree: &Path) -> Result<Option<Self>, TreeError> {
        let path = layout.left_file(tree);
        let Some(bytes) = atomic::read(&path)? else {
            return Ok(None);
        };
        let left: Self = serde_json::from_slice(&bytes).map_err(|error| TreeError::Registry {
            path: path.clone(),
            why: error.to_string(),
        })?;
        StoreError::check_version(&path, left.v, VERSION)?;
        Ok(Some(left))
    }

    /// Saves the leftovers, or deletes the record if there are none.
    pub(crate) fn save(&mut self, layout: &Layout, tree: &Path) -> Result<(), TreeError> {
        let path = layout.left_file(tree);
        if self.is_nothing() {
            atomic::remove(&path)?;
            return Ok(());
        }
        self.v = VERSION;
        write(layout, &path, self)
    }

    /// The unfinished operation, in git's own words.
    pub(crate) fn unfinished(&self) -> Option<&'static str> {
        let noted = self.in_progress.as_deref()?;
        let known = files::OPERATIONS.iter().find(|(_, what)| *what == noted);
        known.map(|(_, what)| *what)
    }

    /// True if there is nothing to report, and nothing to keep.
    pub(crate) fn is_nothing(&self) -> bool {
        let count = self.commits.len() + self.stashes + self.nested + self.unmerged;
        count == 0 && !self.refs && self.in_progress.is_none() && self.refused.is_none()
    }
}

fn write(layout: &Layout, path: &Path, value: &impl Serialize) -> Result<(), TreeError> {
    if let Some(dir) = path.parent() {
        create_private_dir(dir)?;
    }
    let bytes = serde_json::to_vec(value).map_err(|error| TreeError::Registry {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    Ok(atomic::replace(
        &layout.tmp(),
        path,
        &bytes,
        Durability::Relaxed,
    )?)
}
