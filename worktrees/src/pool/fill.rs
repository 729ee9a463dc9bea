//! Worktrees that are made in advance.
//!
//! A checkout of many files takes seconds; handing out an existing one takes a check, a rename and
//! a branch (`take`). Worktrees of the pool are registered with git, on no branch, under names of
//! ccb's own, and in a list of their own in the registry: no agent works in them. If one was used
//! all the same, ccb removes it like any other, so that it can be restored.
//!
//! A repository with submodules (moving a worktree breaks theirs) or with reftables (whose HEAD
//! cannot be written as a file) has no pool.

use std::time::Duration;

use store::fault::reached;
use store::lock::FileLock;

use crate::create::{CreateRequest, SetUp};
use crate::error::TreeError;
use crate::fault;
use crate::git::Git;
use crate::registry::{Entry, Op, Pooled, Registry};
use crate::remove::RemoveRequest;
use crate::slug::Slug;
use crate::trees::Trees;

/// The prefix of the names of all worktrees of the pool.
pub(super) const PREFIX: &str = "ccb-pool";

/// Size of an index, about two thousand files, from which reading the files takes noticeable time.
const MANY_FILES: u64 = 256 * 1024;

/// A worktree that is not assigned yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolTree {
    /// Its present name.
    pub name: String,
    /// Its present path.
    pub path: String,
    /// The commit it is at.
    pub base: String,
    /// The time it was made.
    pub created_at: String,
}

/// The result of filling the pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refilled {
    /// Worktrees made.
    pub made: usize,
    /// Worktrees removed from the pool, because they were too many or unusable.
    pub retired: usize,
    /// Worktrees in the pool now.
    pub ready: usize,
    /// The reason why there are fewer than wanted.
    pub why_not: Option<String>,
}

impl Trees {
    /// The worktrees that are ready to be handed out.
    pub fn pool(&self) -> Result<Vec<PoolTree>, TreeError> {
        let pool = Registry::load(&self.layout)?.pool;
        let shown = pool.into_iter().map(|pooled| PoolTree {
            name: pooled.tree.name,
            path: pooled.tree.path,
            base: pooled.tree.base.unwrap_or_default(),
            created_at: pooled.tree.created_at,
        });
        Ok(shown.collect())
    }

    /// Makes worktrees until there are `want`, all by `request`, and retires the others. Takes as
    /// long as that many checkouts; only one process does it at a time.
    pub fn fill_pool(
        &self,
        want: usize,
        request: &CreateRequest<'_>,
    ) -> Result<Refilled, TreeError> {
        self.layout.create_dirs()?;
        request.set_up.check()?;
        let mut done = Refilled::default();
        // One process fills and one waits to look again: a third may rely on that one, which has
        // not counted yet.
        let Some(next) = FileLock::try_exclusive(&self.layout.locks().join("pool-next"))? else {
            done.ready = Registry::load(&self.layout)?.pool.len();
            done.why_not = Some("others are filling it".into());
            return Ok(done);
        };
        let _turn = FileLock::exclusive(
            &self.layout.locks().join("pool"),
            "filling the pool",
            self.options.checkout_timeout,
        )?;
        drop(next);
        let nobody = Slug::new(PREFIX)?;
        self.recover_others(&nobody);
        let mut useful = 0;
        for pooled in Registry::load(&self.layout)?.pool {
            if pooled.used {
                // The process that keeps using it retires it.
                continue;
            }
            if pooled.suits(&request.set_up) && useful < want {
                useful += 1;
            } else if let Some(_lock) = self.lock_pooled(&pooled)? {
                self.retire(&pooled)?;
                done.retired += 1;
            }
        }
        if useful < want {
            let base = self.base_commit(&nobody, request)?;
            done.why_not = self.why_no_pool(&base)?.map(str::to_owned);
            while useful < want && done.why_not.is_none() {
                self.fill_one(&base, &request.set_up)?;
                done.made += 1;
                useful += 1;
            }
        }
        done.ready = Registry::load(&self.layout)?.pool.len();
        Ok(done)
    }

    /// The reason why worktrees of this commit cannot be pooled, if so.
    pub(crate) fn why_no_pool(&self, base: &str) -> Result<Option<&'static str>, TreeError> {
        if self.layout.common.join("reftable").exists() {
            return Ok(Some("the repository keeps its refs in reftables"));
        }
        let history = self.layout.history();
        let submodules = history.has_path(base, ".gitmodules")?;
        Ok(submodules.then_some("the repository has submodules"))
    }

    /// A free name for a worktree of ccb's own, with its lock.
    ///
    /// Numbered, so that the lock files, which are kept, are few.
    pub(super) fn free_internal(&self, prefix: &str) -> Result<(Slug, FileLock), TreeError> {
        let mut number = 0;
        loop {
            number += 1;
            let slug = Slug::new(&format!("{prefix}-{number}"))?;
            let path = self.layout.tree_lock(&slug);
            let Some(lock) = FileLock::try_exclusive(&path)? else {
                continue;
            };
            let registry = Registry::load(&self.layout)?;
            let place = self.layout.tree(&slug);
            let free = std::fs::symlink_metadata(&place).is_err() && !registry.knows(&slug);
            if free {
                return Ok((slug, lock));
            }
        }
    }

    /// Registers an empty worktree on no branch that is being made. Its lock is held.
    fn add_detached(&self, slug: &Slug, commit: &str) -> Result<Entry, TreeError> {
        let mut entry = Entry::new(slug, &self.layout.tree(slug), self.now());
        entry.base = Some(commit.to_owned());
        entry.op = Some(Op::Filling);
        self.prepare_place(&entry)?;
        crate::create::setup::exclude(&self.layout, &["/.claude/worktrees/".into()])?;
        let mut section = self.section()?;
        section.registry.worktrees.push(entry.clone());
        section.save()?;
        self.add_worktree(&section, &["--detach"], &entry, Some(commit))?
            .run()?;
        Ok(entry)
    }

    fn fill_one(&self, base: &str, set_up: &SetUp) -> Result<(), TreeError> {
        let (slug, lock) = self.free_internal(PREFIX)?;
        let made = self.prepare_pooled(&slug, base, set_up, &lock);
        if made.is_err() {
            self.undo_creation(&slug);
        }
        made
    }

    fn prepare_pooled(
        &self,
        slug: &Slug,
        base: &str,
        set_up: &SetUp,
        lock: &FileLock,
    ) -> Result<(), TreeError> {
        let mut tree = self.add_detached(slug, base)?;
        let admin = self.layout.admin_of(tree.path())?;
        self.check_out_files(tree.path(), &admin, set_up, lock)?;
        let placed = set_up.place_directories(&self.layout, tree.path());
        let placed = placed.map_err(|failure| failure.of(slug))?;
        // git reads a file again if it could have changed within the second in which the index was
        // written. Better now than when an agent waits for the worktree.
        if std::fs::metadata(admin.join("index")).is_ok_and(|meta| meta.len() > MANY_FILES) {
            let into_second = self.now_ms().rem_euclid(1000).unsigned_abs();
            std::thread::sleep(Duration::from_millis(1010 - into_second));
        }
        Git::at(tree.path(), "update-index")
            .args(["-q", "--refresh", "--force-write-index"])
            .timeout(self.options.checkout_timeout)
            .holding(lock)?
            .run()?;
        reached(fault::POOL_FILLED);
        let mut section = self.section()?;
        section
            .registry
            .worktrees
            .retain(|e| e.path != tree.path || e.op != tree.op);
        tree.op = None;
        tree.placed = placed.placed;
        section.registry.pool.push(Pooled {
            tree,
            sparse: set_up.sparse_patterns(),
            directories: set_up.directories(),
            used: false,
        });
        section.save()
    }

    /// The lock of the worktree, if it is still in the pool and no other process takes it.
    pub(crate) fn lock_pooled(&self, pooled: &Pooled) -> Result<Option<FileLock>, TreeError> {
        let slug = pooled.tree.slug()?;
        let lock = FileLock::try_exclusive(&self.layout.tree_lock(&slug))?;
        let there = Registry::load(&self.layout)?.pool.contains(pooled);
        Ok(lock.filter(|_| there))
    }

    /// Takes a worktree out of the pool and removes it like any other: nothing in it is lost.
    pub(crate) fn retire(&self, pooled: &Pooled) -> Result<(), TreeError> {
        let tree = Entry {
            op: Some(Op::Retiring),
            ..pooled.tree.clone()
        };
        let slug = tree.slug()?;
        let mut section = self.section()?;
        section.registry.pool.retain(|other| other != pooled);
        section.registry.worktrees.push(tree.clone());
        section.save()?;
        drop(section);
        reached(fault::POOL_GIVEN_UP);
        self.finish_retiring(&slug, &tree)
    }

    /// Moves a worktree of the pool to the trash. Its lock is held.
    pub(crate) fn finish_retiring(&self, slug: &Slug, tree: &Entry) -> Result<(), TreeError> {
        self.set_op(slug, Some(Op::Retiring))?;
        let request = RemoveRequest {
            rescue_ignored: true,
            ..RemoveRequest::default()
        };
        if let Err(error) = self.remove_as_found(slug, tree, &request) {
            // From now on a registered worktree that the user can see.
            tracing::warn!(worktree = %slug, %error, "a worktree of the pool is left as it is");
            if self
                .get(slug)
                .is_ok_and(|tree| tree.op == Some(Op::Retiring))
            {
                self.set_op(slug, None)?;
            }
        }
        Ok(())
    }
}

impl Pooled {
    /// True if the worktree fits this set-up.
    pub(crate) fn suits(&self, set_up: &SetUp) -> bool {
        self.sparse == set_up.sparse_patterns() && self.directories == set_up.directories()
    }
}
