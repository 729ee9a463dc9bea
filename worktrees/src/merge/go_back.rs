//! Moves a branch back to an earlier commit, with the worktree that has it checked out.

use std::path::Path;
use std::time::Duration;

use store::fault::reached;
use store::lock::FileLock;

use crate::error::TreeError;
use crate::fault;
use crate::git::{Git, path_from, zero_split};
use crate::layout::Layout;
use crate::merge::{Target, TargetMove, interrupted};

/// Maximum of attempts to move a checkout back if git is killed.
const MAX_TRIES: usize = 5;

impl Target {
    /// Moves the branch back to `commit`, an ancestor of its tip. A worktree that has it checked
    /// out follows, if that loses no work in it.
    pub(crate) fn go_back(
        &self,
        layout: &Layout,
        commit: &str,
        turn: &FileLock,
        timeout: Duration,
    ) -> Result<TargetMove, TreeError> {
        let reference = format!("refs/heads/{}", self.branch);
        match &self.checkout {
            Some(dir) if dir.is_dir() => {
                self.check_free(layout, dir, commit)?;
                self.follow_back(layout, dir, commit, turn, timeout)?;
                reached(fault::TAKE_BACK_FILES);
            }
            Some(dir) => return Err(self.refused(dir.clone(), "that directory is gone".into())),
            None => {}
        }
        let moved = layout
            .git("update-ref")
            .args(["-m", "ccb: a landing was undone"])
            .args([&reference, commit, &self.tip])
            .holding(turn)?
            .run();
        if layout.history().tip(&reference)?.as_deref() == Some(commit) {
            return Ok(TargetMove::Moved);
        }
        if let Some(dir) = &self.checkout {
            interrupted::put_back(layout, dir, &self.tip, commit)?;
        }
        moved.map(|_| TargetMove::MovedByOthers)
    }

    /// Makes index and files of the checkout those of `commit` where they differ from the branch's,
    /// unless one of them was changed. A killed git leaves some files done; they are put back, and
    /// the attempt starts over.
    fn follow_back(
        &self,
        layout: &Layout,
        dir: &Path,
        commit: &str,
        turn: &FileLock,
        timeout: Duration,
    ) -> Result<(), TreeError> {
        let mut killed = false;
        for _ in 0..MAX_TRIES {
            // A file with a new time and the same content is not changed.
            Git::at(dir, "update-index")
                .args(["-q", "--refresh"])
                .after_kill(killed)
                .ask()?;
            let moved = Git::with_config(dir, "read-tree", &["core.fsync=reference,index"])
                .args(["-m", "-u", &self.tip, commit])
                .timeout(timeout)
                .holding(turn)?
                .after_kill(killed)
                .once()
                .run();
            match moved {
                Ok(_) => return Ok(()),
                Err(TreeError::Interrupted { .. }) => {
                    killed = true;
                    interrupted::put_back(layout, dir, &self.tip, commit)?;
                }
                Err(TreeError::Git { stderr, .. }) => {
                    return Err(self.refused(dir.to_owned(), stderr));
                }
                Err(error) => return Err(error),
            }
        }
        Err(TreeError::Interrupted {
            what: "git read-tree".into(),
        })
    }

    /// Refuses if a file that would come back is there already, whatever it is.
    fn check_free(&self, layout: &Layout, dir: &Path, commit: &str) -> Result<(), TreeError> {
        let bytes = layout
            .git("diff-tree")
            .args(["-r", "-z", "--name-only", "--no-renames", "--diff-filter=A"])
            .args(["--end-of-options", &self.tip, commit])
            .run()?;
        let taken = zero_split(&bytes)
            .map(path_from)
            .find(|path| dir.join(path).symlink_metadata().is_ok());
        match taken {
            Some(path) => Err(self.refused(
                dir.to_owned(),
                format!("{} would be overwritten", path.display()),
            )),
            None => Ok(()),
        }
    }
}
