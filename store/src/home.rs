//! Every path under the home directory, named once.

use std::path::{Path, PathBuf};

use crate::atomic::{self, Durability};
use crate::error::{IoContext, Result, StoreError};
use crate::name::Name;

/// The directory that holds all shared state (`~/.claude` by default).
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    /// A home at `path`, which need not exist yet but must be valid UTF-8.
    pub fn new(path: PathBuf) -> Result<Self> {
        if path.to_str().is_none() {
            return Err(StoreError::Io {
                verb: "use as home",
                path,
                source: std::io::Error::new(
                    std::io::ErrorKind::InvalidInput,
                    "the path is not valid UTF-8",
                ),
            });
        }
        Ok(Self(path))
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where all task lists are.
    pub fn lists(&self) -> PathBuf {
        self.0.join("tasks")
    }

    /// One task list.
    pub fn list(&self, list: &Name) -> PathBuf {
        self.lists().join(list.as_str())
    }

    /// Where all teams are.
    pub fn teams(&self) -> PathBuf {
        self.0.join("teams")
    }

    /// One team: its roster, inboxes, requests, runs and session.
    pub fn team(&self, team: &Name) -> PathBuf {
        self.teams().join(team.as_str())
    }

    /// The user's own agent definitions.
    pub fn agents(&self) -> PathBuf {
        self.0.join("agents")
    }

    /// Files of ccb that belong to no list and no team.
    pub fn ours(&self) -> PathBuf {
        self.0.join("ccb")
    }

    /// The user's own settings.
    pub fn settings(&self) -> PathBuf {
        self.0.join("ccb.json")
    }
}

/// Creates `dir` and its missing parents, readable by this user alone.
pub fn create_private_dir(dir: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .context("create", dir)
}

/// [`create_private_dir`], and the names of all new directories survive a power cut: a file below
/// can only be found if they do. Costs nothing if `dir` exists.
pub fn create_durable_dir(dir: &Path, durability: Durability) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.is_dir()).collect();
    create_private_dir(dir)?;
    if durability == Durability::Full {
        // From the top: a name counts only if those above it do.
        for made in missing.iter().rev() {
            atomic::sync_parent(made, durability)?;
        }
    }
    Ok(())
}

/// Creates `dir` and its missing parents with the user's default mode.
///
/// For directories that are not ccb's alone.
pub fn create_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).context("create", dir)
}
