//! The files of a worktree, in a form that git can compare.

use std::path::Path;
use std::process::Command;

use store::atomic;

use crate::changes;
use crate::error::TreeError;
use crate::git::{FileStat, Git, zero_split};
use crate::merge::patch;
use crate::process::forget_git;
use crate::registry::{Entry, Registry, TreeStatus, removed};
use crate::slug::Slug;
use crate::trees::Trees;

/// A worktree's files at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesNow {
    /// The commit, or the git tree that also has uncommitted changes.
    pub id: String,
    /// True if not all of it is committed.
    pub uncommitted: bool,
}

impl Trees {
    /// The present files of a worktree, with uncommitted ones and without ignored ones. Does not
    /// change the worktree and its index.
    pub fn files_now(&self, entry: &Entry) -> Result<FilesNow, TreeError> {
        self.try_to_catch_up(entry);
        let found = changes::of(&self.layout, entry);
        let Some(head) = found.head.clone() else {
            return Err(TreeError::NotOurs {
                path: entry.path().to_owned(),
                why: found.reason.unwrap_or_else(|| "it has no commit".into()),
            });
        };
        if found.paths.is_empty() {
            return Ok(FilesNow {
                id: head,
                uncommitted: false,
            });
        }
        self.layout.create_dirs()?;
        let index = self
            .layout
            .tmp()
            .join(format!("index-{}", uuid::Uuid::new_v4()));
        let written = self.write_files(entry.path(), &head, &found.paths, &index);
        atomic::remove(&index)?;
        Ok(FilesNow {
            id: written?,
            uncommitted: true,
        })
    }

    fn write_files(
        &self,
        dir: &Path,
        head: &str,
        paths: &[Vec<u8>],
        index: &Path,
    ) -> Result<String, TreeError> {
        let git = |verb: &str| Git::at(dir, verb).env("GIT_INDEX_FILE", index);
        git("read-tree").arg(head).run()?;
        git("update-index")
            .args(["--add", "--remove", "--replace", "-z", "--stdin"])
            .input(paths.join(&0))
            .timeout(self.options.checkout_timeout)
            .run()?;
        git("write-tree").line()
    }

    /// `git diff` between two commits or trees, with the user's own settings for pager, colours and
    /// diff tool.
    pub fn diff_command(&self, from: &str, to: &str) -> Command {
        let mut command = Command::new("git");
        forget_git(&mut command);
        // The user's settings for output are kept.
        for name in [
            "GIT_PAGER",
            "GIT_EXTERNAL_DIFF",
            "GIT_CONFIG_GLOBAL",
            "GIT_CONFIG_SYSTEM",
        ] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .current_dir(&self.layout.main)
            .arg("diff")
            .args([from, to]);
        command
    }

    /// The files that differ between two commits, in order.
    pub fn stat(&self, base: &str, commit: &str) -> Result<Vec<FileStat>, TreeError> {
        patch::stat_in(&self.layout.history(), &self.layout.main, base, commit)
    }

    /// The first `most` bytes of the plain diff between two commits or trees; true if there is
    /// more. Unlike [`Self::diff_command`], it ignores the user's settings for diffs.
    pub fn diff_text(
        &self,
        from: &str,
        to: &str,
        most: usize,
    ) -> Result<(Vec<u8>, bool), TreeError> {
        if let Some(found) = self.layout.history().diff_text(from, to, most) {
            return Ok(found);
        }
        let mut text = Git::at(&self.layout.main, "diff-tree")
            .args(["-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv"])
            .args(["--end-of-options", from, to])
            .run()?;
        let more = text.len() > most;
        text.truncate(most);
        Ok((text, more))
    }

    /// The paths of the submodules in the main worktree's commit. In a new worktree their
    /// directories are empty.
    pub fn submodules(&self) -> Result<Vec<String>, TreeError> {
        let history = self.layout.history();
        let Ok(head) = history.resolve("HEAD") else {
            return Ok(Vec::new());
        };
        if !history.has_path(&head, ".gitmodules")? {
            return Ok(Vec::new());
        }
        let bytes = self
            .layout
            .git("ls-tree")
            .args(["-r", "-z", "--full-tree", &head])
            .run()?;
        let path = |line: &[u8]| {
            let text = String::from_utf8_lossy(line).into_owned();
            let (about, path) = text.split_once('\t')?;
            about.starts_with("160000 ").then(|| path.to_owned())
        };
        Ok(zero_split(&bytes).filter_map(path).collect())
    }

    /// The last worktree of this name, existing or removed.
    pub fn last_of(&self, slug: &Slug) -> Result<Option<Entry>, TreeError> {
        let registry = Registry::load(&self.layout)?;
        let known = registry.find(slug).or(registry.last_removed(slug));
        match known {
            Some(entry) => Ok(Some(entry.clone())),
            None => removed::last(&self.layout, slug),
        }
    }

    /// The commit a removed worktree was at, as far as it is kept.
    pub fn last_commit(&self, entry: &Entry) -> Option<String> {
        let trash = entry.trash.as_ref()?;
        let head = format!("refs/ccb/rescue/{}/head", trash.id);
        let kept = self.layout.history().tip(&head).ok().flatten();
        let noted = entry.merged.as_ref().map(|landed| landed.head.clone());
        let known = kept.or_else(|| trash.branch_tip.clone()).or(noted)?;
        (entry.status == TreeStatus::Removed && self.has_commit(&known)).then_some(known)
    }
}
