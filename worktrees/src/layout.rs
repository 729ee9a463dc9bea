//! Every path of ours in a repository, named once.

use std::path::{Path, PathBuf};

use store::atomic::Durability;
use store::home::create_durable_dir;

use crate::error::TreeError;
use crate::slug::Slug;

/// Where our things are: working trees in the main tree, everything else in the shared git
/// directory, out of reach of `git clean`.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) common: PathBuf,
    pub(crate) main: PathBuf,
    ours: PathBuf,
}

impl Layout {
    pub(crate) fn new(common: &Path, main: &Path) -> Self {
        Self {
            common: common.to_owned(),
            main: main.to_owned(),
            ours: common.join("ccb"),
        }
    }

    /// Creates the directories that are not there.
    pub(crate) fn create_dirs(&self) -> Result<(), TreeError> {
        for dir in [
            self.locks(),
            self.trash(),
            self.logs(),
            self.tmp(),
            self.checks(),
        ] {
            create_durable_dir(&dir, Durability::Full)?;
        }
        Ok(())
    }

    /// The directory of all working trees.
    pub(crate) fn trees(&self) -> PathBuf {
        self.main.join(".claude/worktrees")
    }

    pub(crate) fn tree(&self, slug: &Slug) -> PathBuf {
        self.trees().join(slug.flat())
    }

    pub(crate) fn registry(&self) -> PathBuf {
        self.ours.join("index.json")
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.ours.join("events.jsonl")
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.ours.join("locks")
    }

    pub(crate) fn trash(&self) -> PathBuf {
        self.ours.join("trash")
    }

    /// What is known of check trees.
    pub(crate) fn checks(&self) -> PathBuf {
        self.ours.join("checks")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.ours.join("logs")
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.ours.join("tmp")
    }

    /// Held while the registry or git's own list of trees changes.
    pub(crate) fn repository_lock(&self) -> PathBuf {
        self.locks().join("repository")
    }

    /// Held while a tree's commits are put onto another branch: one at a time.
    pub(crate) fn landing_lock(&self) -> PathBuf {
        self.locks().join("landing")
    }

    /// Held while a line is appended to the events.
    pub(crate) fn events_lock(&self) -> PathBuf {
        self.locks().join("events")
    }

    /// Held while one tree is made, removed or brought back.
    pub(crate) fn tree_lock(&self, slug: &Slug) -> PathBuf {
        // Lower case, because names that differ only in case are one name.
        let name = slug.flat().to_ascii_lowercase();
        self.locks().join(format!("{name}.tree"))
    }

    /// Held by whoever works in the tree; its mtime is when that was last so.
    pub(crate) fn lease(&self, slug: &Slug) -> PathBuf {
        let name = slug.flat().to_ascii_lowercase();
        self.locks().join(format!("{name}.lease"))
    }

    /// git's directory of linked trees.
    pub(crate) fn admin_dirs(&self) -> PathBuf {
        self.common.join("worktrees")
    }
}
