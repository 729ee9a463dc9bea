//! The branch that commits land on: its commit, its checkout, moving it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use store::lock::FileLock;

use crate::error::{TreeError, some};
use crate::git::{Git, path_from};
use crate::layout::Layout;
use crate::merge::interrupted;
use crate::remote::{RemoteBranch, branch_of_remote};

/// Maximum of attempts to fast-forward a checkout if git is killed.
const MAX_TRIES: usize = 5;

/// A branch as it was found.
#[derive(Debug)]
pub(crate) struct Target {
    /// Without `refs/heads/`.
    pub(crate) branch: String,
    /// Its commit.
    pub(crate) tip: String,
    /// The worktree that has it checked out.
    pub(crate) checkout: Option<PathBuf>,
    /// The remote's branch, if it is one.
    pub(crate) remote: Option<RemoteBranch>,
}

/// The result of an attempt to move it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TargetMove {
    Moved,
    MovedByOthers,
}

impl Target {
    /// The named branch; the main worktree's if `None`.
    pub(crate) fn find(layout: &Layout, into: Option<&str>) -> Result<Self, TreeError> {
        if let Some(remote) = into.and_then(RemoteBranch::parse) {
            return Self::at_remote(layout, remote);
        }
        let checkouts = checkouts(layout)?;
        let invalid = |what: String, why: &str| TreeError::Invalid {
            what,
            why: why.to_owned(),
        };
        let branch = match into {
            Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
            None => {
                let main = checkouts.first().and_then(|(_, branch)| branch.clone());
                main.ok_or_else(|| {
                    invalid(
                        "the main worktree".into(),
                        "it is on no branch; name the target with --into",
                    )
                })?
            }
        };
        let reference = format!("refs/heads/{branch}");
        let missing = || invalid(format!("branch {branch:?}"), "there is no such branch");
        if !git2::Reference::is_valid_name(&reference) {
            return Err(missing());
        }
        let tip = layout.history().tip(&reference)?;
        let tip = tip.ok_or_else(missing)?;
        let here = |(_, on): &&(PathBuf, Option<String>)| on.as_ref() == Some(&branch);
        let checkout = checkouts.iter().find(here).map(|(path, _)| path.clone());
        Ok(Self {
            branch,
            tip,
            checkout,
            remote: None,
        })
    }

    /// A branch at a remote that several machines land on, in its present state.
    fn at_remote(layout: &Layout, at: RemoteBranch) -> Result<Self, TreeError> {
        let tip = at.fetch(layout)?.ok_or_else(|| TreeError::Invalid {
            what: format!("branch {:?}", at.branch),
            why: format!("the remote {} has no such branch", at.remote),
        })?;
        Ok(Self {
            branch: branch_of_remote(&at.remote, &at.branch),
            tip,
            checkout: None,
            remote: Some(at),
        })
    }

    /// Moves it from its commit to `commit`, a descendant.
    pub(crate) fn advance(
        &self,
        layout: &Layout,
        commit: &str,
        turn: &FileLock,
        timeout: Duration,
    ) -> Result<TargetMove, TreeError> {
        if let Some(remote) = &self.remote {
            return Ok(match remote.advance(layout, &self.tip, commit, turn)? {
                true => TargetMove::Moved,
                false => TargetMove::MovedByOthers,
            });
        }
        let reference = format!("refs/heads/{}", self.branch);
        let moved = match &self.checkout {
            // Files and branch move together, or git names the obstacle. No setting of the user may
            // turn this into another kind of merge, and ignored files are as good as any others.
            Some(dir) if dir.is_dir() => self.fast_forward(layout, dir, commit, turn, timeout),
            Some(dir) => {
                return Err(self.refused(dir.clone(), "that directory is gone".into()));
            }
            None => layout
                .git("update-ref")
                .args([
                    "-m",
                    "ccb: a worktree landed",
                    &reference,
                    commit,
                    &self.tip,
                ])
                .holding(turn)?
                .run(),
        };
        let tip = layout.history().tip(&reference)?;
        match moved {
            _ if tip.as_deref() == Some(commit) => Ok(TargetMove::Moved),
            _ if tip.as_ref() != Some(&self.tip) => Ok(TargetMove::MovedByOthers),
            Err(TreeError::Git { stderr, .. }) if self.checkout.is_some() => {
                let dir = self.checkout.clone().unwrap_or_default();
                Err(self.refused(dir, in_a_line(&stderr)))
            }
            Err(error) => Err(error),
            Ok(_) => Ok(TargetMove::MovedByOthers),
        }
    }

    /// Fast-forwards the branch in its checkout to `commit`. A killed git leaves some files new
    /// already; they are put back, and the attempt starts over.
    fn fast_forward(
        &self,
        layout: &Layout,
        dir: &Path,
        commit: &str,
        turn: &FileLock,
        timeout: Duration,
    ) -> Result<Vec<u8>, TreeError> {
        let reference = format!("refs/heads/{}", self.branch);
        let mut killed = false;
        for _ in 0..MAX_TRIES {
            // The index is the user's own, and must not be lost to a power cut either.
            let moved = Git::with_config(dir, "merge", &["core.fsync=reference,index"])
                .args(["--ff-only", "--no-squash", "--no-autostash", "--no-stat"])
                .args(["--no-overwrite-ignore", "--no-verify-signatures", "--quiet"])
                .arg(commit)
                .timeout(timeout)
                .holding(turn)?
                .after_kill(killed)
                .once()
                .run();
            let Err(TreeError::Interrupted { .. }) = moved else {
                return moved;
            };
            killed = true;
            if layout.history().tip(&reference)?.as_ref() != Some(&self.tip) {
                return moved;
            }
            interrupted::put_back(layout, dir, &self.tip, commit)?;
        }
        Err(TreeError::Interrupted {
            what: "git merge".into(),
        })
    }

    pub(crate) fn refused(&self, path: PathBuf, why: String) -> TreeError {
        TreeError::TargetRefused {
            branch: self.branch.clone(),
            path,
            why,
        }
    }
}

/// The reason why git does not move a branch, in one line with the files.
pub(crate) fn in_a_line(said: &str) -> String {
    // The files follow, each after a tab.
    let files = said.lines().filter_map(|line| line.strip_prefix('\t'));
    let files: Vec<&str> = files.map(str::trim).collect();
    if said.contains("would be overwritten by merge") && !files.is_empty() {
        let whose = match said.contains("untracked working tree files") {
            true => "files that git does not know",
            false => "your changes",
        };
        return format!("it would overwrite {whose} in {}", some(&files));
    }
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// Every worktree with the branch it is on, the main one first.
fn checkouts(layout: &Layout) -> Result<Vec<(PathBuf, Option<String>)>, TreeError> {
    let bytes = layout
        .git("worktree")
        .args(["list", "--porcelain", "-z"])
        .run()?;
    let mut found: Vec<(PathBuf, Option<String>)> = Vec::new();
    for line in bytes.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            found.push((path_from(path), None));
        } else if let (Some(branch), Some(last)) =
            (line.strip_prefix(b"branch refs/heads/"), found.last_mut())
        {
            last.1 = Some(String::from_utf8_lossy(branch).into_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named() {
        let changes = "error: Your local changes to the following files would be overwritten by merge:\n\
            \treadme\n\tsrc/a b.rs\nPlease commit your changes or stash them before you merge.\nAborting";
        assert_eq!(
            in_a_line(changes),
            "it would overwrite your changes in readme, src/a b.rs"
        );
        let unknown = "error: The following untracked working tree files would be overwritten by merge:\n\
            \tnew\nPlease move or remove them before you merge.\nAborting";
        assert_eq!(
            in_a_line(unknown),
            "it would overwrite files that git does not know in new"
        );
        assert_eq!(in_a_line("fatal: a\n\n  b\n"), "fatal: a; b");
    }
}
