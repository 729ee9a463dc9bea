//! Landings that a power cut, or a kill, ended half way where the branch is checked out.
//!
//! git writes the files, then the index, then the branch, and syncs too little of it. What is
//! left may be files with the new content or none at all beside a branch that has not moved, and
//! the lock of a git that is gone. The note in the registry (`pending`) says which files may be
//! concerned. Each of them that is empty, or exactly what was to land, gets the content the
//! branch has for it; whatever else is in a file is somebody's work and stays.

use std::path::{Path, PathBuf};

use store::atomic;

use crate::error::TreeError;
use crate::git::{Git, path_from, zero_split};
use crate::gitfiles;
use crate::history::History;
use crate::merge_target::Target;
use crate::registry::{Entry, Landed, Registry};
use crate::torn::has_no_text;
use crate::trees::Trees;

impl Trees {
    /// Tidies up after every landing that somebody began and did not live to confirm. The turn to
    /// land is held, so none of them is under way.
    pub(crate) fn settle_landings(&self) -> Result<(), TreeError> {
        for entry in Registry::load(&self.layout)?.worktrees {
            let Some(landed) = entry.merged.as_ref().filter(|landed| landed.pending) else {
                continue;
            };
            if let Err(error) = self.settle_landing(&entry, landed) {
                tracing::warn!(worktree = entry.name, %error, "its landing is not tidied up");
            }
        }
        Ok(())
    }

    fn settle_landing(&self, entry: &Entry, landed: &Landed) -> Result<(), TreeError> {
        let target = Target::find(&self.layout, Some(&landed.into))?;
        let Some(dir) = target.checkout.as_deref().filter(|dir| dir.is_dir()) else {
            return Ok(());
        };
        self.drop_leftovers(dir, &landed.into)?;
        let history = History::open(&self.layout.main);
        let moved = history.is_ancestor(&landed.commit, &target.tip)?;
        let from = match (moved, &entry.base) {
            (true, Some(base)) => base,
            _ => &target.tip,
        };
        let (mut restore, mut remove) = (Vec::new(), Vec::new());
        for name in self.paths_between(from, &landed.commit)? {
            let path = path_from(&name);
            // What is gone, or no plain file, is no trace of ours.
            let Ok(Some(here)) = atomic::read(&dir.join(&path)) else {
                continue;
            };
            let wanted = history.file(&target.tip, &path)?;
            let landing = history.file(&landed.commit, &path)?;
            let ours = here.is_empty() || landing.as_ref() == Some(&here);
            if wanted.as_ref() == Some(&here) || !ours {
                continue;
            }
            match wanted {
                Some(_) => restore.push(name),
                None => remove.push(name),
            }
        }
        self.put_back(dir, &target.tip, &restore, &remove)
    }

    fn put_back(
        &self,
        dir: &Path,
        tip: &str,
        restore: &[Vec<u8>],
        remove: &[Vec<u8>],
    ) -> Result<(), TreeError> {
        if !restore.is_empty() {
            self.with_paths(dir, "checkout", &["--quiet", "--force", tip], restore)?;
        }
        if !remove.is_empty() {
            let quietly = ["--quiet", "--cached", "--ignore-unmatch"];
            self.with_paths(dir, "rm", &quietly, remove)?;
            for name in remove {
                atomic::remove(&dir.join(path_from(name)))?;
            }
        }
        Ok(())
    }

    /// Runs git on exactly these paths.
    fn with_paths(
        &self,
        dir: &Path,
        verb: &str,
        args: &[&str],
        paths: &[Vec<u8>],
    ) -> Result<(), TreeError> {
        Git::at(dir, verb)
            .args(args)
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .input(paths.join(&0))
            .timeout(self.options.checkout_timeout)
            .run()?;
        Ok(())
    }

    fn paths_between(&self, from: &str, to: &str) -> Result<Vec<Vec<u8>>, TreeError> {
        let bytes = Git::at(&self.layout.main, "diff-tree")
            .args(["-r", "-z", "--name-only", "--no-renames"])
            .args(["--end-of-options", from, to])
            .run()?;
        Ok(zero_split(&bytes).map(<[u8]>::to_vec).collect())
    }

    /// The locks of a git that is gone keep every other one out, and an `ORIG_HEAD` without
    /// content makes the next merge fail.
    fn drop_leftovers(&self, dir: &Path, branch: &str) -> Result<(), TreeError> {
        let git_dir = match dir == self.layout.main {
            true => self.layout.common.clone(),
            false => match gitfiles::admin_of(&self.layout, dir) {
                Ok(admin) => admin,
                Err(_) => return Ok(()),
            },
        };
        let branch = self.layout.common.join("refs/heads").join(branch);
        let locks = [
            git_dir.join("index.lock"),
            git_dir.join("HEAD.lock"),
            git_dir.join("ORIG_HEAD.lock"),
            branch.with_added_extension("lock"),
        ];
        for lock in locks {
            if lock.exists() && !is_open(&lock) {
                atomic::remove(&lock)?;
            }
        }
        let orig_head = git_dir.join("ORIG_HEAD");
        if has_no_text(&orig_head) {
            atomic::remove(&orig_head)?;
        }
        Ok(())
    }
}

/// Whether a process has the file open, or nobody can tell.
fn is_open(path: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    let files = |process: PathBuf| std::fs::read_dir(process.join("fd"));
    let open = processes
        .flatten()
        .filter_map(|process| files(process.path()).ok())
        .flat_map(|files| files.flatten());
    let mut open = open.filter_map(|file| std::fs::read_link(file.path()).ok());
    open.any(|file| file == path)
}
