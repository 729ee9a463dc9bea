//! Every path of ccb's in a repository, named once.

use std::path::{Path, PathBuf};

use store::atomic::{self, Durability};
use store::home::create_durable_dir;

use crate::error::TreeError;
use crate::slug::Slug;

/// The prefix of the names of check worktrees; a number follows.
pub(crate) const CHECK_PREFIX: &str = "ccb-check-";

/// True if a directory of this name among the worktrees is one for checks.
pub(crate) fn is_check_name(name: &str) -> bool {
    let number = name.strip_prefix(CHECK_PREFIX);
    number.is_some_and(|number| number.parse::<usize>().is_ok())
}

/// The places of ccb's files: worktrees in the main worktree, everything else in the shared git
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

    /// Creates missing directories.
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

    /// Creates the directory of all worktrees, unless a link or a file is in its place.
    pub(crate) fn create_trees_dir(&self) -> Result<(), TreeError> {
        for path in [self.main.join(".claude"), self.trees()] {
            match std::fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => {
                    let why = "it must be a directory, and no link to one".into();
                    return Err(TreeError::PathTaken { path, why });
                }
                Err(_) => store::home::create_dir(&path)?,
            }
        }
        Ok(())
    }

    /// The directory of all worktrees.
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

    /// The records of check worktrees.
    pub(crate) fn checks(&self) -> PathBuf {
        self.ours.join("checks")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.ours.join("logs")
    }

    /// libgit2's settings besides the repository's own.
    pub(crate) fn libgit2_settings(&self) -> PathBuf {
        self.ours.join("libgit2.config")
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.ours.join("tmp")
    }

    /// Held while the registry or git's own list of worktrees changes.
    pub(crate) fn repository_lock(&self) -> PathBuf {
        self.locks().join("repository")
    }

    /// Held while a worktree's commits are put onto another branch: one at a time.
    pub(crate) fn landing_lock(&self) -> PathBuf {
        self.locks().join("landing")
    }

    /// Held while a line is appended to the events.
    pub(crate) fn events_lock(&self) -> PathBuf {
        self.locks().join("events")
    }

    /// Held while one worktree is made, removed or restored.
    pub(crate) fn tree_lock(&self, slug: &Slug) -> PathBuf {
        // Lower case, because names that differ only in case are one name.
        let name = slug.flat().to_ascii_lowercase();
        self.locks().join(format!("{name}.tree"))
    }

    /// Held by every process that works in the worktree; its mtime is the time of the last use.
    pub(crate) fn lease(&self, slug: &Slug) -> PathBuf {
        let name = slug.flat().to_ascii_lowercase();
        self.locks().join(format!("{name}.lease"))
    }

    /// git's directory of linked worktrees.
    pub(crate) fn admin_dirs(&self) -> PathBuf {
        self.common.join("worktrees")
    }

    /// Replaces one of git's small files, which survives a power cut only if git synced it too.
    pub(crate) fn write_git_file(&self, path: &Path, text: &str) -> Result<(), TreeError> {
        let (tmp, bytes) = (self.tmp(), text.as_bytes());
        Ok(atomic::replace_keeping_mode(
            &tmp,
            path,
            bytes,
            Durability::Relaxed,
        )?)
    }
}

/// The entries of a directory, sorted; none if it cannot be read.
pub(crate) fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The last part of a path.
pub(crate) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
