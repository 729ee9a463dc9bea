//! Hands out a worktree of the pool.
//!
//! Under the repository's lock: 1. the registry says which worktree goes where (`op: taking`). 2.
//! git gets its new path. 3. The directory is renamed. 4. It gets its branch. After a crash or a
//! failure all of it is undone, and the worktree is in the pool again; if it was changed meanwhile,
//! the next taker sees that.
//!
//! git's own `reset --hard` and `clean -fdx` would read every file twice more. One `git status`
//! that shows nothing at all proves that both would do nothing; a worktree without that proof is
//! not used. If the times of the files prove the same, not even that is needed.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use store::atomic;
use store::fault::reached;
use store::lock::FileLock;

use crate::create::{CreateRequest, SPARSE};
use crate::error::TreeError;
use crate::fault;
use crate::git::{Git, Head, admin, files, in_process, locks, path_from, untouched, zero_split};
use crate::registry::{Entry, Event, Op, Pooled, Registry};
use crate::remove::MOVING;
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// Makes the worktree from one of the pool, if one fits.
    pub(crate) fn take_from_pool(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &CreateRequest<'_>,
        lock: &FileLock,
    ) -> Result<bool, TreeError> {
        let pool = Registry::load(&self.layout)?.pool;
        let suits = |pooled: &&Pooled| pooled.suits(&request.set_up);
        let Some(base) = &entry.base else {
            return Ok(false);
        };
        if !pool.iter().any(|pooled| suits(&pooled)) || self.why_no_pool(base)?.is_some() {
            return Ok(false);
        }
        for pooled in pool.iter().filter(suits) {
            let Some(_lock) = self.lock_pooled(pooled)? else {
                continue;
            };
            match self.inspect_pooled(pooled) {
                Ok(found) => {
                    found.clear(pooled)?;
                    self.move_from_pool(slug, entry, pooled, &found.admin)?;
                    self.bring_to_base(entry, pooled, request, lock)?;
                    return Ok(true);
                }
                Err(why) => {
                    let name = &pooled.tree.name;
                    tracing::warn!(worktree = name, why, "in the pool, but used by now");
                    self.retire(pooled)?;
                }
            }
        }
        Ok(false)
    }

    /// The facts about it, if it is exactly as it was made; else the difference.
    pub(super) fn inspect_pooled(&self, pooled: &Pooled) -> Result<Inspected, String> {
        let tree = pooled.tree.path();
        let admin = files::admin_of(&self.layout, tree)?;
        if files::locked(&admin).is_some() {
            return Err("it is locked".into());
        }
        if let Some(what) = files::in_progress(&admin) {
            return Err(format!("there is an unfinished {what}"));
        }
        let base = pooled.tree.base.as_deref().unwrap_or_default();
        let logged = files::reflog(&admin, "HEAD").ok_or("its reflog is missing")?;
        if logged.iter().any(|oid| oid != base) {
            return Err("it has been at other commits".into());
        }
        if self.is_as_made(pooled, &admin, base) {
            let left = Vec::new();
            return Ok(Inspected { admin, left });
        }
        let status = Git::status(tree)
            .args(["--porcelain=v2", "-z", "--branch", "--no-renames"])
            .args(["--untracked-files=all", "--ignored=matching"])
            .timeout(self.options.checkout_timeout)
            .run()
            .map_err(|error| error.to_string())?;
        let expected = [
            format!("# branch.oid {base}").into_bytes(),
            b"# branch.head (detached)".to_vec(),
        ];
        let mut left = Vec::new();
        let odd = zero_split(&status).find(|record| match record {
            [b'#', ..] => !expected.iter().any(|line| line == record),
            [b'?' | b'!', b' ', path @ ..] if pooled.keeps(path) => false,
            // Work in it left ignored files; a removal would delete them, too.
            [b'!', b' ', path @ ..] if pooled.used => {
                left.push(path_from(path.strip_suffix(b"/").unwrap_or(path)));
                false
            }
            _ => true,
        });
        match odd {
            None => Ok(Inspected { admin, left }),
            Some(record) => Err(String::from_utf8_lossy(record).into_owned()),
        }
    }

    /// True if its files can be checked without starting git, and are unchanged.
    fn is_as_made(&self, pooled: &Pooled, admin: &Path, base: &str) -> bool {
        let at_base = |head| matches!(head, Head::Detached(at) if at == base);
        let indexed = || in_process::write_tree(&self.layout, admin);
        let wanted = || self.layout.history().tree_of(base).ok();
        let keeps = |path: &[u8]| pooled.keeps(path);
        at_base(files::head(&self.layout, admin))
            && untouched::is_untouched(pooled.tree.path(), admin, &keeps)
            && indexed().is_some_and(|tree| Some(tree) == wanted())
    }

    fn move_from_pool(
        &self,
        slug: &Slug,
        entry: &Entry,
        pooled: &Pooled,
        admin: &Path,
    ) -> Result<(), TreeError> {
        let (Some(branch), Some(base)) = (&entry.branch, &entry.base) else {
            return Err(TreeError::NoCommit);
        };
        let mut section = self.section()?;
        self.check_names_free(&section, slug)?;
        let reference = format!("refs/heads/{branch}");
        let mut recorded = entry.clone();
        if !pooled.used {
            recorded.placed.clone_from(&pooled.tree.placed);
        }
        recorded.op = Some(Op::Taking {
            from: Box::new(pooled.clone()),
            admin: admin.to_owned(),
        });
        section.registry.pool.retain(|other| other != pooled);
        section.registry.worktrees.push(recorded);
        section.save()?;
        reached(fault::POOL_RECORDED);
        self.point_git_to(admin, entry.path())?;
        reached(fault::POOL_POINTED);
        atomic::rename(pooled.tree.path(), entry.path())?;
        reached(fault::POOL_MOVED);
        admin::create_refs(&self.layout, &[(reference.clone(), base.clone())])?;
        // The reflog starts anew: its commits in the pool are not work, and would count as some.
        let zero = "0".repeat(base.len());
        let seconds = self.now_ms() / 1000;
        let log =
            format!("{zero} {base} ccb <ccb@localhost> {seconds} +0000\tccb: from the pool\n");
        self.layout.write_git_file(&admin.join("logs/HEAD"), &log)?;
        self.layout
            .write_git_file(&admin.join("HEAD"), &format!("ref: {reference}\n"))?;
        admin::unlock(admin, MOVING)?;
        reached(fault::POOL_BRANCHED);
        Ok(())
    }

    /// Gives git the path `path` for the worktree, and an order to accept that it is not there yet.
    pub(super) fn point_git_to(&self, admin: &Path, path: &Path) -> Result<(), TreeError> {
        self.layout.write_git_file(&admin.join("locked"), MOVING)?;
        self.layout
            .write_git_file(&admin.join("gitdir"), &format!("{}/.git\n", path.display()))
    }

    /// Changes only the files that differ between the two commits: the present ones are known to be
    /// those of the first.
    fn bring_to_base(
        &self,
        entry: &Entry,
        pooled: &Pooled,
        request: &CreateRequest<'_>,
        lock: &FileLock,
    ) -> Result<(), TreeError> {
        let from = pooled.tree.base.as_deref().unwrap_or_default();
        let to = entry.base.as_deref().unwrap_or_default();
        if from == to {
            return Ok(());
        }
        let config: &[&str] = if pooled.sparse.is_some() { SPARSE } else { &[] };
        let changed = Git::with_config(entry.path(), "read-tree", config)
            .args(["-m", "-u", "--no-recurse-submodules", from, to])
            .timeout(self.options.checkout_timeout)
            .holding(lock)?
            .once()
            .run();
        match changed {
            // By their times they could be others (copied, touched), by their content they are not:
            // git has to compare all of them.
            Err(TreeError::Git { .. }) => {
                let admin = self.layout.admin_of(entry.path())?;
                self.check_out_files(entry.path(), &admin, &request.set_up, lock)
            }
            changed => changed.map(drop),
        }
    }

    /// Puts a worktree back whose taker died or failed. Its lock is held; every step can be
    /// repeated.
    pub(crate) fn settle_taking(
        &self,
        slug: &Slug,
        entry: &Entry,
        from: &Pooled,
        admin: &Path,
    ) -> Result<(), TreeError> {
        let mut section = self.section()?;
        let there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
        let back = from.tree.path();
        if admin.parent() == Some(&self.layout.admin_dirs()) && admin.is_dir() {
            self.point_git_to(admin, back)?;
            if there(entry.path()) && !there(back) {
                atomic::rename(entry.path(), back)?;
            }
            self.take_branch_back(entry, from, admin)?;
            admin::unlock(admin, MOVING)?;
            section.registry.pool.push(from.clone());
        }
        let same = |other: &Entry| other.name == slug.as_str() && other.op == entry.op;
        section.registry.worktrees.retain(|other| !same(other));
        section.save()?;
        self.emit(&Event::of("worktree.create.failed", entry).interrupted());
        Ok(())
    }

    /// Removes the lock of a process that was killed while making or deleting the branch of a
    /// worktree; the worktree's own lock is held, and no other process needs it.
    pub(crate) fn clear_branch_lock(&self, branch: &str) {
        let lock = format!("refs/heads/{branch}.lock");
        locks::clear(&self.layout.common.join(lock), true);
    }

    /// Deletes the branch again; one that has moved has work on it and is kept, and so is a HEAD
    /// that is on it.
    fn take_branch_back(
        &self,
        entry: &Entry,
        from: &Pooled,
        admin: &Path,
    ) -> Result<(), TreeError> {
        let (Some(branch), Some(base)) = (&entry.branch, &entry.base) else {
            return Ok(());
        };
        let reference = format!("refs/heads/{branch}");
        self.clear_branch_lock(branch);
        let tip = self.layout.history().tip(&reference)?;
        if tip.as_ref().is_some_and(|tip| tip != base) {
            return Ok(());
        }
        if matches!(files::head(&self.layout, admin), Head::Branch(on, _) if on == reference) {
            let commit = from.tree.base.as_deref().unwrap_or(base);
            self.layout
                .write_git_file(&admin.join("HEAD"), &format!("{commit}\n"))?;
        }
        if tip.is_some() && !admin::is_checked_out(&self.layout, branch)? {
            admin::delete_ref(&self.layout, &reference, base)?;
        }
        Ok(())
    }
}

/// A worktree of the pool that can be handed out.
#[derive(Debug)]
pub(super) struct Inspected {
    /// git's directory for it.
    pub(super) admin: PathBuf,
    /// The files of its previous user, to be deleted.
    left: Vec<PathBuf>,
}

impl Inspected {
    /// Deletes the files of its previous user, and those of the set-up: they may have been changed,
    /// and the set-up places them again.
    fn clear(&self, pooled: &Pooled) -> Result<(), TreeError> {
        if !pooled.used {
            return Ok(());
        }
        let placed = pooled
            .tree
            .placed
            .iter()
            .map(|placed| Path::new(&placed.path));
        for path in self.left.iter().map(PathBuf::as_path).chain(placed) {
            store::tree::delete(&pooled.tree.path().join(path))?;
        }
        Ok(())
    }
}

impl Pooled {
    /// True if ccb placed the file at `path` and keeps it.
    fn keeps(&self, path: &[u8]) -> bool {
        let placed = self
            .tree
            .placed
            .iter()
            .any(|placed| placed.path.as_bytes() == path);
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        placed || self.directories.iter().any(|dir| path.starts_with(dir))
    }
}
