//! Makes a worktree, or finds the existing one.
//!
//! 1. The entry is written with `op: creating`.
//! 2. git registers branch and worktree. Both under the repository's lock, because git's own races
//!    fail parallel adds and leave branches behind.
//! 3. Files are checked out and set up, outside of that lock.
//! 4. `op` is removed.
//!
//! A failure before step 4 undoes everything; after a crash the next command does (`recover`).

use std::path::Path;
use std::time::Instant;

use store::IoContext;
use store::fault::{pass, reached};
use store::lock::FileLock;
use store::tree::touch;

use crate::create::{CreateMode, CreateRequest, Created, SetUp, setup};
use crate::error::TreeError;
use crate::fault;
use crate::git::head_commit;
use crate::git::{Git, index_times};
use crate::lease::Lease;
use crate::registry::{Entry, Event, Op, Registry, Section, not_found};
use crate::slug::Slug;
use crate::trees::Trees;

/// Given to single commands instead of the configuration, which all worktrees share; git continues
/// from what the index says.
pub(crate) const SPARSE: &[&str] = &["core.sparseCheckout=true", "core.sparseCheckoutCone=false"];

/// Maximum of attempts to create a worktree if git is killed.
const MAX_TRIES: usize = 3;

impl Trees {
    /// Finds the worktree, or makes it.
    pub fn create(&self, request: &CreateRequest<'_>) -> Result<Created, TreeError> {
        let started = Instant::now();
        request.set_up.check()?;
        let slug = match &request.name {
            Some(slug) => slug.clone(),
            None => self.free_slug()?,
        };
        let mut found = self.resume(&slug, request)?;
        let mut tries = 0;
        while found.is_none() {
            tries += 1;
            found = match self.create_locked(&slug, request) {
                // Everything was undone, so it can be started again.
                Err(TreeError::Interrupted { .. }) if tries < MAX_TRIES => None,
                made => Some(made?),
            };
        }
        let mut created = found.ok_or_else(|| not_found(&slug))?;
        created.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(created)
    }

    fn free_slug(&self) -> Result<Slug, TreeError> {
        let registry = Registry::load(&self.layout)?;
        let taken = |slug: &Slug| {
            registry
                .worktrees
                .iter()
                .any(|e| slug.clashes_with(&e.name))
        };
        let mut slug = Slug::generated();
        while taken(&slug) {
            slug = Slug::generated();
        }
        Ok(slug)
    }

    /// The worktree if it exists and is sound; starts no process.
    pub(crate) fn resume(
        &self,
        slug: &Slug,
        request: &CreateRequest<'_>,
    ) -> Result<Option<Created>, TreeError> {
        let lease = match request.hold && self.layout.locks().is_dir() {
            true => match Lease::take(&self.layout, slug) {
                Ok(lease) => Some(lease),
                // It is being removed; its lock is free when that is over.
                Err(TreeError::Held { .. }) => return Ok(None),
                Err(error) => return Err(error),
            },
            false => None,
        };
        let registry = Registry::load(&self.layout)?;
        let Some(entry) = registry.find(slug) else {
            return registry.check_clash(slug).map(|()| None);
        };
        if entry.op.is_some() {
            return Ok(None);
        }
        let same_agent = entry.agent.is_some() && entry.agent == request.agent;
        let theirs = match request.mode {
            CreateMode::GetOrCreate => false,
            CreateMode::Exclusive => true,
            CreateMode::Resume => !same_agent,
        };
        if theirs {
            return Err(TreeError::Exists {
                name: slug.to_string(),
            });
        }
        if std::fs::symlink_metadata(entry.path()).is_err() {
            return Ok(None);
        }
        let mut head = None;
        if !entry.hook_based {
            let admin = self.layout.admin_of(entry.path())?;
            head = head_commit(&self.layout, entry.path(), &admin);
        }
        touch(&self.layout.lease(slug))?;
        Ok(Some(Created {
            entry: entry.clone(),
            created: false,
            head,
            lease,
            notes: Vec::new(),
            duration_ms: 0,
        }))
    }

    fn create_locked(
        &self,
        slug: &Slug,
        request: &CreateRequest<'_>,
    ) -> Result<Created, TreeError> {
        self.layout.create_dirs()?;
        self.recover_others(slug);
        let lock = self.tree_lock(slug)?;
        self.recover(slug)?;
        // Another process may have made it while this one waited.
        if let Some(created) = self.resume(slug, request)? {
            return Ok(created);
        }
        let lost = Registry::load(&self.layout)?.find(slug).cloned();
        if let Some(lost) = lost.filter(|lost| !lost.hook_based) {
            return self.check_out_again(slug, &lost, request);
        }
        let entry = self.draft(slug, request)?;
        if let Some(hook) = request.hook {
            return self.create_by_hook(slug, &entry, request, hook);
        }
        let make = || self.make(slug, &entry, request, &lock);
        self.with_events("worktree.create", &entry, make, created_event)
    }

    /// The registry entry of the new worktree.
    fn draft(&self, slug: &Slug, request: &CreateRequest<'_>) -> Result<Entry, TreeError> {
        let path = self.layout.tree(slug);
        if path.to_str().is_none() {
            return Err(TreeError::NotText { path });
        }
        let mut entry = Entry::new(slug, &path, self.now());
        entry.hook_based = request.hook.is_some();
        if !entry.hook_based {
            entry.branch = Some(slug.branch());
            entry.base = Some(self.base_commit(slug, request)?);
        }
        entry.agent.clone_from(&request.agent);
        let task = request.task.as_ref();
        entry.made_for = task.map(|(list, id)| format!("{list}#{id}"));
        (entry.task_id, entry.task_list) = request.bound_to.clone().unzip();
        entry.sparse = !request.set_up.sparse_paths.is_empty();
        Ok(entry)
    }

    fn make(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &CreateRequest<'_>,
        lock: &FileLock,
    ) -> Result<Created, TreeError> {
        self.prepare_place(entry)?;
        setup::exclude(&self.layout, &["/.claude/worktrees/".into()])?;
        let made = self
            .take_from_pool(slug, entry, request, lock)
            .and_then(|taken| {
                if !taken {
                    self.register(slug, entry)?;
                    self.check_out(entry, request, lock)?;
                }
                let created = self.set_up_tree(slug, entry, request)?;
                // An agent's worktree is no promise to a user: if it is lost, so is its agent, and
                // the next agent gets a new one.
                if request.agent.is_none() {
                    self.make_durable()?;
                }
                self.publish(slug, created)
            });
        if made.is_err() {
            self.undo_creation(slug);
        }
        made
    }

    /// Step 4: from here on it is an ordinary worktree.
    fn publish(&self, slug: &Slug, mut created: Created) -> Result<Created, TreeError> {
        let mut placed = std::mem::take(&mut created.entry.placed);
        let mut section = self.section()?;
        let Entry {
            task_id, task_list, ..
        } = &created.entry;
        section.registry.forget_task(task_id, task_list);
        created.entry = section.edit(slug, |saved| {
            saved.op = None;
            saved.placed.append(&mut placed);
        })?;
        Ok(created)
    }

    /// Makes sure that the place is free and that no link leads there.
    pub(crate) fn prepare_place(&self, entry: &Entry) -> Result<(), TreeError> {
        self.layout.create_trees_dir()?;
        match std::fs::symlink_metadata(entry.path()) {
            Err(_) => Ok(()),
            Ok(_) => Err(TreeError::PathTaken {
                path: entry.path().to_owned(),
                why: "it is there, but not registered as a worktree".into(),
            }),
        }
    }

    /// Steps 1 and 2, under the repository's lock.
    fn register(&self, slug: &Slug, entry: &Entry) -> Result<(), TreeError> {
        let mut section = self.section()?;
        self.check_names_free(&section, slug)?;
        let mut recorded = entry.clone();
        recorded.op = Some(Op::Creating);
        section.registry.worktrees.push(recorded);
        section.save()?;
        reached(fault::CREATE_RECORDED);
        let branch = ["--no-track", "-b", &slug.branch()];
        self.add_worktree(&section, &branch, entry, entry.base.as_deref())?
            .once()
            .run()?;
        reached(fault::CREATE_REGISTERED);
        Ok(())
    }

    /// Fails if another worktree has the name in another case, or if the branch exists.
    pub(crate) fn check_names_free(
        &self,
        section: &Section<'_>,
        slug: &Slug,
    ) -> Result<(), TreeError> {
        section.registry.check_clash(slug)?;
        let branch = slug.branch();
        match self.layout.tip_of(&branch)? {
            Some(_) => Err(TreeError::BranchExists { branch }),
            None => Ok(()),
        }
    }

    /// The git command that registers an empty worktree at the path in `entry`.
    ///
    /// ccb later reads the reflog to find commits made here, so git keeps it whatever the
    /// repository's settings say: an existing log is continued.
    pub(crate) fn add_worktree(
        &self,
        section: &Section<'_>,
        args: &[&str],
        entry: &Entry,
        at: Option<&str>,
    ) -> Result<Git, TreeError> {
        let logged = ["core.logAllRefUpdates=true"];
        Git::with_config(&self.layout.main, "worktree", &logged)
            .args(["add", "--quiet", "--no-checkout"])
            .args(args)
            .args(["--", &entry.path])
            .args(at)
            .holding(&section.lock)
    }

    /// Step 3, which can take long.
    fn check_out(
        &self,
        entry: &Entry,
        request: &CreateRequest<'_>,
        lock: &FileLock,
    ) -> Result<(), TreeError> {
        let tree = entry.path();
        let admin = self.layout.admin_of(tree)?;
        pass(fault::CREATE_CHECKOUT).context("check out", tree)?;
        self.check_out_files(tree, &admin, &request.set_up, lock)?;
        reached(fault::CREATE_CHECKED_OUT);
        Ok(())
    }

    /// Sets up a worktree whose files are checked out.
    fn set_up_tree(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &CreateRequest<'_>,
    ) -> Result<Created, TreeError> {
        let tree = entry.path();
        let log = self
            .layout
            .logs()
            .join(format!("{}-{}.log", slug.flat(), self.now_ms()));
        let done = request
            .set_up
            .run(&self.layout, tree, &log)
            .map_err(|failure| failure.of(slug))?;
        touch(&self.layout.lease(slug))?;
        let lease = self.lease_for(slug, request)?;
        reached(fault::CREATE_SET_UP);
        let mut entry = entry.clone();
        entry.placed = done.placed;
        Ok(Created {
            head: entry.base.clone(),
            entry,
            created: true,
            lease,
            notes: done.notes,
            duration_ms: 0,
        })
    }

    /// Holds the worktree for the caller, if it asked for that.
    pub(crate) fn lease_for(
        &self,
        slug: &Slug,
        request: &CreateRequest<'_>,
    ) -> Result<Option<Lease>, TreeError> {
        let lease = request.hold.then(|| Lease::take(&self.layout, slug));
        lease.transpose()
    }

    /// Checks out the commit HEAD is at, or the requested part of it.
    pub(crate) fn check_out_files(
        &self,
        tree: &Path,
        admin: &Path,
        set_up: &SetUp,
        lock: &FileLock,
    ) -> Result<(), TreeError> {
        let mut config: &[&str] = &[];
        if let Some(patterns) = set_up.sparse_patterns() {
            config = SPARSE;
            let info = admin.join("info");
            store::home::create_dir(&info)?;
            let file = info.join("sparse-checkout");
            self.layout.write_git_file(&file, &patterns)?;
        }
        Git::with_config(tree, "reset", config)
            .args(["--hard", "--quiet", "--no-recurse-submodules"])
            .timeout(self.options.checkout_timeout)
            .holding(lock)?
            .run()?;
        if let Err(error) = index_times::backdate_files(tree, admin, &self.layout.tmp()) {
            tracing::debug!(%error, "git will read the files of the new worktree more than once");
        }
        Ok(())
    }
}

pub(crate) fn created_event(created: &Created) -> Event {
    Event::of("worktree.create.after", &created.entry)
}
