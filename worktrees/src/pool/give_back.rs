//! Reuses a worktree: its work is kept elsewhere, so it goes back to the pool.
//!
//! A checkout and its deletion cost more than most tasks; moving a worktree from one commit to the
//! next touches only the files that differ. Nothing here looks at every file: the next taker does
//! that (`take`), and an unexpected file sends the worktree to the trash with everything in it.
//!
//! Under the repository's lock: 1. the registry says that the worktree goes to the pool (`op:
//! givingBack`). 2. git gets its new path. 3. The directory is renamed. 4. HEAD leaves the branch,
//! which is deleted. 5. The registry has it in the pool. After a crash the next command continues.

use std::path::{Path, PathBuf};

use store::atomic;
use store::fault::reached;

use crate::changes::reflog_commits;
use crate::create::SetUp;
use crate::error::TreeError;
use crate::fault;
use crate::git::{Head, admin, files};
use crate::lease::Lease;
use crate::private;
use crate::registry::{Entry, Event, Op, Pooled, Registry, Section};
use crate::remove::MOVING;
use crate::slug::Slug;
use crate::trees::Trees;

use super::fill::PREFIX;

/// The result of returning a worktree to the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenBack {
    /// It is in the pool.
    Yes,
    /// It is unchanged, for this reason.
    No(String),
}

impl Trees {
    /// Puts the worktree into the pool: all work in it is part of `kept`, which the caller keeps.
    /// `set_up` is the set-up it was made with.
    pub fn give_back(
        &self,
        slug: &Slug,
        kept: &str,
        set_up: &SetUp,
    ) -> Result<GivenBack, TreeError> {
        self.layout.create_dirs()?;
        let _lock = self.tree_lock(slug)?;
        self.recover(slug)?;
        let entry = self.get(slug)?;
        let _nobody_inside = Lease::exclude_holders(&self.layout, slug)?;
        self.end_stay(&entry)?;
        let admin = match self.reusable(&entry, kept, set_up)? {
            Ok(admin) => admin,
            Err(why) => return Ok(GivenBack::No(why)),
        };
        let (pool_slug, _pool_lock) = self.free_internal(PREFIX)?;
        let mut tree = Entry::new(&pool_slug, &self.layout.tree(&pool_slug), self.now());
        tree.base = Some(kept.to_owned());
        tree.placed.clone_from(&entry.placed);
        let to = Pooled {
            tree,
            sparse: set_up.sparse_patterns(),
            directories: Vec::new(),
            used: true,
        };
        let mut section = self.section()?;
        section.edit(slug, |entry| {
            entry.op = Some(Op::GivingBack {
                to: Box::new(to.clone()),
                admin: admin.clone(),
            });
        })?;
        reached(fault::GIVE_BACK_RECORDED);
        self.finish_giving_back(&mut section, slug, &to, &admin)?;
        Ok(GivenBack::Yes)
    }

    /// git's directory for the worktree if it can be reused; else the reason why not.
    fn reusable(
        &self,
        entry: &Entry,
        kept: &str,
        set_up: &SetUp,
    ) -> Result<Result<PathBuf, String>, TreeError> {
        let no = |why: &str| Ok(Err(why.to_owned()));
        if entry.hook_based {
            return no("it was made by a hook");
        }
        if !set_up.directories().is_empty() {
            // A directory that was copied may contain the agent's work.
            return no("directories were linked or copied into it");
        }
        if let Some(why) = self.why_no_pool(kept)? {
            return no(why);
        }
        let Some(admin) = self.own_admin(entry)? else {
            return no("it is gone");
        };
        if let Some(what) = files::in_progress(&admin) {
            return no(&format!("there is an unfinished {what}"));
        }
        if admin.join("index.lock").exists() {
            return no("git is at work in it, or was killed there");
        }
        let branch = entry.branch.as_deref().unwrap_or_default();
        let own = format!("refs/heads/{branch}");
        let at_kept = match files::head(&self.layout, &admin) {
            Head::Branch(on, tip) => on == own && tip.as_deref() == Some(kept),
            _ => false,
        };
        if !at_kept {
            return no("it is not at the commit that is kept, or on another branch");
        }
        if files::stashes_on(&self.layout.common, branch) > 0 {
            return no("there is a stash of it");
        }
        let left = private::what_is_left(&self.layout, entry.path())?;
        if !left.commits.is_empty() || left.stashes + left.nested + left.unmerged > 0 {
            return no("its agent had commits of its own that nothing else keeps");
        }
        if let Some(what) = left.unfinished() {
            return no(&format!("there is an unfinished {what}"));
        }
        let logged = reflog_commits(&self.layout, entry, &admin)?;
        let Some(logged) = logged else {
            return no("its reflog is missing");
        };
        if self.layout.history().count_beyond(kept, &logged)? > 0 {
            return no("its reflog has commits that nothing else keeps");
        }
        Ok(Ok(admin))
    }

    /// The steps after the first, each of which can be repeated.
    pub(crate) fn finish_giving_back(
        &self,
        section: &mut Section<'_>,
        slug: &Slug,
        to: &Pooled,
        admin: &Path,
    ) -> Result<(), TreeError> {
        let entry = section.entry(slug)?.clone();
        let there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
        let ours = admin.parent() == Some(&self.layout.admin_dirs()) && admin.is_dir();
        if ours && (there(entry.path()) || there(to.tree.path())) {
            self.point_git_to(admin, to.tree.path())?;
            reached(fault::GIVE_BACK_POINTED);
            if there(entry.path()) && !there(to.tree.path()) {
                atomic::rename(entry.path(), to.tree.path())?;
            }
            reached(fault::GIVE_BACK_MOVED);
            self.layout.forget_private(entry.path())?;
            self.leave_branch(&entry, to, admin)?;
            admin::unlock(admin, MOVING)?;
            section.registry.pool.push(to.clone());
        }
        reached(fault::GIVE_BACK_DETACHED);
        let same = |other: &Entry| other.name == slug.as_str() && other.op == entry.op;
        section.registry.worktrees.retain(|other| !same(other));
        section.save()?;
        self.emit(&Event::of("worktree.reuse", &entry));
        Ok(())
    }

    /// Puts HEAD at the commit, on no branch; deletes the branch unless it has moved by now.
    fn leave_branch(&self, entry: &Entry, to: &Pooled, admin: &Path) -> Result<(), TreeError> {
        let (Some(branch), Some(kept)) = (&entry.branch, &to.tree.base) else {
            return Ok(());
        };
        let reference = format!("refs/heads/{branch}");
        if matches!(files::head(&self.layout, admin), Head::Branch(on, _) if on == reference) {
            let seconds = self.now_ms() / 1000;
            let zero = "0".repeat(kept.len());
            let log =
                format!("{zero} {kept} ccb <ccb@localhost> {seconds} +0000\tccb: to the pool\n");
            self.layout.write_git_file(&admin.join("logs/HEAD"), &log)?;
            self.layout
                .write_git_file(&admin.join("HEAD"), &format!("{kept}\n"))?;
        }
        self.clear_branch_lock(branch);
        let tip = self.layout.history().tip(&reference)?;
        if tip.as_ref() == Some(kept) && !admin::is_checked_out(&self.layout, branch)? {
            admin::delete_ref(&self.layout, &reference, kept)?;
        }
        Ok(())
    }

    /// Deletes the used worktrees of the pool that were not taken since.
    pub fn drop_used(&self) -> Result<usize, TreeError> {
        let mut dropped = 0;
        for pooled in Registry::load(&self.layout)?.pool {
            if !pooled.used {
                continue;
            }
            // Its holder is about to release it.
            let slug = pooled.tree.slug()?;
            let _lock = self.tree_lock(&slug)?;
            if !Registry::load(&self.layout)?.pool.contains(&pooled) {
                continue;
            }
            dropped += 1;
            if let Err(why) = self.inspect_pooled(&pooled) {
                let name = &pooled.tree.name;
                tracing::warn!(worktree = name, why, "in the pool, but used by now");
                self.retire(&pooled)?;
                continue;
            }
            let mut section = self.section()?;
            section.registry.pool.retain(|other| *other != pooled);
            let mut tree = pooled.tree.clone();
            tree.op = Some(Op::Scratch);
            section.registry.worktrees.push(tree);
            section.save()?;
            self.erase(&mut section, &slug)?;
        }
        Ok(dropped)
    }
}
