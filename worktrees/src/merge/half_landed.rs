//! Landings that a power cut, or a kill, ended half way where the branch is checked out.
//!
//! git writes the files, then the index, then the branch, and syncs too little of it. What is
//! left may be files with the new content or none at all beside a branch that has not moved, or
//! old ones beside one that has, and the lock of a git that is gone. The note in the registry
//! (`pending`) says which files may be concerned.

use std::path::Path;

use store::atomic;

use crate::doctor::power_cut::has_no_text;
use crate::error::TreeError;
use crate::git::files;
use crate::git::history::History;
use crate::git::locks;
use crate::merge::halfway;
use crate::merge::target::Target;
use crate::registry::{Entry, Landed, Registry};
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

    /// Gives each file of the checkout that git may have left half way the content the branch
    /// has for it.
    fn settle_landing(&self, entry: &Entry, landed: &Landed) -> Result<(), TreeError> {
        let target = Target::find(&self.layout, Some(&landed.into))?;
        let Some(dir) = target.checkout.as_deref().filter(|dir| dir.is_dir()) else {
            return Ok(());
        };
        self.drop_leftovers(dir, &landed.into)?;
        let history = History::open(&self.layout.main);
        let moved = history.is_ancestor(&landed.commit, &target.tip)?;
        let other = match (moved, &entry.base) {
            (false, _) => &landed.commit,
            (true, Some(base)) => base,
            (true, None) => return Ok(()),
        };
        halfway::put_back(&self.layout, dir, &target.tip, other)
    }

    /// The locks of a git that is gone keep every other one out, and an `ORIG_HEAD` without
    /// content makes the next merge fail.
    fn drop_leftovers(&self, dir: &Path, branch: &str) -> Result<(), TreeError> {
        let git_dir = match dir == self.layout.main {
            true => self.layout.common.clone(),
            false => match files::admin_of(&self.layout, dir) {
                Ok(admin) => admin,
                Err(_) => return Ok(()),
            },
        };
        let branch = self.layout.common.join("refs/heads").join(branch);
        for lock in [
            git_dir.join("index.lock"),
            git_dir.join("HEAD.lock"),
            git_dir.join("ORIG_HEAD.lock"),
            branch.with_added_extension("lock"),
        ] {
            locks::clear(&lock, true);
        }
        let orig_head = git_dir.join("ORIG_HEAD");
        if has_no_text(&orig_head) {
            atomic::remove(&orig_head)?;
        }
        Ok(())
    }
}
