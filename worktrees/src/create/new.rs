//! Making a tree, or finding the one that is there.
//!
//! 1. The entry is written with `op: creating`.
//! 2. git registers branch and tree. Both under the repository's lock, because git's own races
//!    fail parallel adds and leave branches behind.
//! 3. Files are checked out and set up, outside of that lock.
//! 4. `op` is taken off.
//!
//! A failure before that takes everything back; after a crash the next command does
//! (`recover`).

use std::path::Path;
use std::time::Instant;

use store::fault::{pass, reached};
use store::lock::FileLock;
use store::tree::touch;
use store::{StoreError, atomic};

use crate::changes::head_commit;
use crate::create::request::{CreateRequest, Created, Mode};
use crate::create::setup::{self, SetUp};
use crate::error::TreeError;
use crate::fault;
use crate::git::Git;
use crate::git::files;
use crate::git::history::History;
use crate::git::index_times;
use crate::lease::Lease;
use crate::registry::events::Event;
use crate::registry::{Entry, Op, Registry, Status};
use crate::slug::Slug;
use crate::trees::Trees;

/// Said to single commands instead of the configuration, which all trees share; git goes on
/// from what the index says.
pub(crate) const SPARSE: &[&str] = &["core.sparseCheckout=true", "core.sparseCheckoutCone=false"];

/// How often a tree is begun whose making somebody interrupts.
const TRIES: usize = 3;

impl Trees {
    /// Finds the tree, or makes it.
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
                // Everything was taken back, so it can be begun again.
                Err(TreeError::Interrupted { .. }) if tries < TRIES => None,
                made => Some(made?),
            };
        }
        let mut created = found.ok_or_else(|| TreeError::NotFound {
            name: slug.to_string(),
        })?;
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

    /// The tree if it is there and sound; starts no process.
    pub(crate) fn resume(
        &self,
        slug: &Slug,
        request: &CreateRequest<'_>,
    ) -> Result<Option<Created>, TreeError> {
        let lease = match request.hold && self.layout.locks().is_dir() {
            true => match Lease::take(&self.layout, slug) {
                Ok(lease) => Some(lease),
                // It is being removed; its lock says when that is over.
                Err(TreeError::Held { .. }) => return Ok(None),
                Err(error) => return Err(error),
            },
            false => None,
        };
        let registry = Registry::load(&self.layout)?;
        let Some(entry) = registry.find(slug) else {
            return match registry.clash(slug) {
                Some(other) => Err(TreeError::NameClash {
                    given: slug.to_string(),
                    existing: other.name.clone(),
                }),
                None => Ok(None),
            };
        };
        if entry.op.is_some() {
            return Ok(None);
        }
        let same_agent = entry.agent.is_some() && entry.agent == request.agent;
        let theirs = match request.mode {
            Mode::GetOrCreate => false,
            Mode::Exclusive => true,
            Mode::Resume => !same_agent,
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
            let admin =
                files::admin_of(&self.layout, entry.path()).map_err(|why| TreeError::NotOurs {
                    path: entry.path().to_owned(),
                    why,
                })?;
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
        // Somebody else may have made it while we waited.
        if let Some(created) = self.resume(slug, request)? {
            return Ok(created);
        }
        let lost = Registry::load(&self.layout)?.find(slug).cloned();
        if let Some(lost) = lost.filter(|lost| !lost.hook_based) {
            return self.check_out_again(slug, &lost, request);
        }
        let entry = self.draft(slug, request)?;
        if let Some(hook) = request.hook {
            return self.create_by_hook(slug, entry, request, hook);
        }
        self.emit(&Event::of("worktree.create.before", &entry));
        match self.make(slug, &entry, request, &lock) {
            Ok(created) => {
                self.emit(&Event::of("worktree.create.after", &created.entry));
                Ok(created)
            }
            Err(error) => {
                self.emit(&Event::of("worktree.create.failed", &entry).with_error(&error));
                Err(error)
            }
        }
    }

    /// What the registry will say about the tree.
    fn draft(&self, slug: &Slug, request: &CreateRequest<'_>) -> Result<Entry, TreeError> {
        let path = self.layout.tree(slug);
        let text = path
            .to_str()
            .ok_or_else(|| TreeError::NotText { path: path.clone() })?;
        let by_hook = request.hook.is_some();
        let base = if by_hook {
            None
        } else {
            Some(self.base_commit(slug, request)?)
        };
        Ok(Entry {
            name: slug.to_string(),
            path: text.to_owned(),
            branch: (!by_hook).then(|| slug.branch()),
            base,
            task_id: None,
            task_list: None,
            agent: request.agent.clone(),
            made_for: request
                .task
                .as_ref()
                .map(|(list, id)| format!("{list}#{id}")),
            status: Status::Active,
            created_at: self.now(),
            last_used_at: self.now(),
            hook_based: by_hook,
            sparse: !request.set_up.sparse_paths.is_empty(),
            trash: None,
            merged: None,
            placed: Vec::new(),
            op: None,
            extra: serde_json::Map::new(),
        })
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
                let created = self.equip(slug, entry, request)?;
                // An agent's tree is no promise to anybody: if it is lost, so is its agent, and
                // the next one gets a new one.
                if request.agent.is_none() {
                    self.make_durable()?;
                }
                self.publish(slug, created)
            });
        if made.is_err() {
            self.take_back(slug);
        }
        made
    }

    /// Step 4: from here on it is a tree like any other.
    fn publish(&self, slug: &Slug, mut created: Created) -> Result<Created, TreeError> {
        let mut section = self.section()?;
        let saved = section.entry(slug)?;
        saved.op = None;
        saved.placed.append(&mut created.entry.placed);
        created.entry = saved.clone();
        section.save()?;
        Ok(created)
    }

    /// Makes sure that the place is free and reached through no link.
    pub(crate) fn prepare_place(&self, entry: &Entry) -> Result<(), TreeError> {
        let taken = |path: &Path, why: &str| TreeError::PathTaken {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let trees = self.layout.trees();
        for dir in [self.layout.main.join(".claude"), trees.clone()] {
            match std::fs::symlink_metadata(&dir) {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => return Err(taken(&dir, "it must be a directory, and no link to one")),
                Err(_) => store::home::create_dir(&dir)?,
            }
        }
        match std::fs::symlink_metadata(entry.path()) {
            Err(_) => Ok(()),
            Ok(_) => Err(taken(
                entry.path(),
                "it is there, but not registered as a worktree",
            )),
        }
    }

    /// Steps 1 and 2, under the repository's lock.
    fn register(&self, slug: &Slug, entry: &Entry) -> Result<(), TreeError> {
        let mut section = self.section()?;
        if let Some(other) = section.registry.clash(slug) {
            return Err(TreeError::NameClash {
                given: slug.to_string(),
                existing: other.name.clone(),
            });
        }
        let branch = slug.branch();
        let history = History::open(&self.layout.main);
        if history.tip(&format!("refs/heads/{branch}"))?.is_some() {
            return Err(TreeError::BranchExists { branch });
        }
        let mut recorded = entry.clone();
        recorded.op = Some(Op::Creating);
        section.registry.worktrees.push(recorded);
        section.save()?;
        reached(fault::CREATE_RECORDED);
        // The reflog is how we know later whether anything was committed here, so it is kept
        // whatever the repository's settings say: a log that is there is continued.
        Git::with_config(
            &self.layout.main,
            "worktree",
            &["core.logAllRefUpdates=true"],
        )
        .args([
            "add",
            "--quiet",
            "--no-checkout",
            "--no-track",
            "-b",
            &branch,
        ])
        .arg("--")
        .arg(&entry.path)
        .args(&entry.base)
        .holding(&section.lock)?
        .once()
        .run()?;
        reached(fault::CREATE_REGISTERED);
        Ok(())
    }

    /// Step 3, which can take long.
    fn check_out(
        &self,
        entry: &Entry,
        request: &CreateRequest<'_>,
        lock: &FileLock,
    ) -> Result<(), TreeError> {
        let tree = entry.path();
        let admin = files::admin_of(&self.layout, tree).map_err(|why| TreeError::NotOurs {
            path: tree.to_owned(),
            why,
        })?;
        pass(fault::CREATE_CHECKOUT).map_err(|source| StoreError::Io {
            verb: "check out",
            path: tree.to_owned(),
            source,
        })?;
        self.check_out_files(tree, &admin, &request.set_up, lock)?;
        reached(fault::CREATE_CHECKED_OUT);
        Ok(())
    }

    /// The set-up of a tree whose files are there.
    fn equip(
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
            .map_err(|failure| TreeError::SetUp {
                name: slug.to_string(),
                why: failure.why,
                log: failure.log,
            })?;
        touch(&self.layout.lease(slug))?;
        let lease = if request.hold {
            Some(Lease::take(&self.layout, slug)?)
        } else {
            None
        };
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

    /// Checks out the commit HEAD is at, or as much of it as is asked for.
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
            atomic::replace_keeping_mode(
                &self.layout.tmp(),
                &info.join("sparse-checkout"),
                patterns.as_bytes(),
                atomic::Durability::Relaxed,
            )?;
        }
        Git::with_config(tree, "reset", config)
            .args(["--hard", "--quiet", "--no-recurse-submodules"])
            .timeout(self.options.checkout_timeout)
            .holding(lock)?
            .run()?;
        if let Err(error) = index_times::age(tree, admin, &self.layout.tmp()) {
            tracing::debug!(%error, "git will read the files of the new tree more than once");
        }
        Ok(())
    }
}
