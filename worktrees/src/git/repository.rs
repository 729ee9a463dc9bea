//! Finds a repository.
//!
//! It reads a few small files and starts no process, because every `ccb` command does it.

use std::path::{Path, PathBuf};

use crate::git::pin;
use crate::git::stay::is_stay;
use crate::layout::Layout;

/// Leads from a check worktree to the repository it belongs to.
pub(crate) const MARKER: &str = "ccb-check";

/// The directories of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The directory shared by all worktrees (`.git` of the main one).
    pub common_dir: PathBuf,
    /// The main worktree; `None` for a bare repository.
    pub main_tree: Option<PathBuf>,
}

impl Repository {
    /// The repository that `start` is in, from inside any of its worktrees.
    pub fn discover(start: &Path) -> Option<Self> {
        let start = start.canonicalize().ok()?;
        let (tree, dot_git) = start
            .ancestors()
            .map(|dir| (dir, dir.join(".git")))
            .find(|(_, dot_git)| dot_git.exists())?;
        if let Some(common_dir) = checked_for(tree, &dot_git) {
            return Some(Self {
                main_tree: common_dir.parent().map(Path::to_owned),
                common_dir,
            });
        }
        if let Some(main) = Self::around_private(tree) {
            return Some(main);
        }
        if dot_git.is_dir() {
            return looks_like_git_dir(&dot_git).then(|| Self {
                common_dir: dot_git,
                main_tree: Some(tree.to_owned()),
            });
        }
        // A linked worktree or a submodule: `.git` is a file that names the directory.
        let text = std::fs::read_to_string(&dot_git).ok()?;
        let git_dir = tree
            .join(text.strip_prefix("gitdir:")?.trim())
            .canonicalize()
            .ok()?;
        let common_dir = match std::fs::read_to_string(git_dir.join("commondir")) {
            Ok(common) => git_dir.join(common.trim()).canonicalize().ok()?,
            Err(_) => git_dir,
        };
        let is_dot_git = common_dir.file_name().is_some_and(|name| name == ".git");
        let main_tree = is_dot_git
            .then(|| common_dir.parent().map(Path::to_owned))
            .flatten();
        looks_like_git_dir(&common_dir).then_some(Self {
            common_dir,
            main_tree,
        })
    }

    /// The repository of a worktree in which an agent has a `.git` of its own, which is not read.
    fn around_private(tree: &Path) -> Option<Self> {
        let (main, common) = pin::repository_of(tree)?;
        let layout = Layout::new(&common, &main);
        is_stay(&layout, tree).then_some(Self {
            common_dir: common,
            main_tree: Some(main),
        })
    }

    /// True if it still exists.
    pub fn is_there(&self) -> bool {
        looks_like_git_dir(&self.common_dir)
    }

    /// The bare repository that `start` is in, if it is in one.
    pub(crate) fn bare_at(start: &Path) -> Option<PathBuf> {
        let start = start.canonicalize().ok()?;
        let found = start.ancestors().find(|dir| looks_like_git_dir(dir))?;
        Some(found.to_owned())
    }
}

/// The repository whose commits are checked in the worktree, if it is a check worktree: commands
/// that run there belong to that repository.
fn checked_for(tree: &Path, dot_git: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(dot_git.join(MARKER)).ok()?;
    let common = Path::new(text.trim()).canonicalize().ok()?;
    let trees = common.parent()?.join(".claude/worktrees");
    let ours = common.file_name()? == ".git" && tree.parent() == Some(&trees);
    (ours && looks_like_git_dir(&common)).then_some(common)
}

fn looks_like_git_dir(dir: &Path) -> bool {
    dir.join("HEAD").exists() && dir.join("objects").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(dir: &Path, args: &[&str]) {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn every_tree_leads_to_the_same_repository() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().canonicalize().unwrap().join("main");
        std::fs::create_dir_all(main.join("src/deep")).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "start"]);
        git(&main, &["worktree", "add", "-q", "../linked"]);
        let expected = Some(Repository {
            common_dir: main.join(".git"),
            main_tree: Some(main.clone()),
        });
        assert_eq!(Repository::discover(&main.join("src/deep")), expected);
        assert_eq!(Repository::discover(&dir.path().join("linked")), expected);
        assert_eq!(Repository::discover(dir.path()), None);
    }
}
