//! All worktrees of one repository: opening, reading, and the small changes.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use store::atomic::{self, Durability};
use store::clock::{Clock, SystemClock, parse_rfc3339, rfc3339};
use store::lock::{DEFAULT_TIMEOUT, FileLock};
use store::secret_filter::SecretFilter;
use store::tree::device;

use crate::error::TreeError;
use crate::git::Repository;
use crate::layout::Layout;
use crate::lease::Lease;
use crate::registry::{
    Entry, Event, EventTask, Registry, Section, TreeStatus, events, not_found, removed,
};
use crate::slug::Slug;

/// Options for handling worktrees.
#[derive(Debug, Clone)]
pub struct TreeOptions {
    /// The source of the time.
    pub clock: Arc<dyn Clock>,
    /// Durability of the registry, and of git's files, before a change is acknowledged.
    pub durability: Durability,
    /// Time limit for the repository's lock.
    pub lock_timeout: Duration,
    /// Time limit for a checkout, and for another process's checkout.
    pub checkout_timeout: Duration,
    /// Days for which a removed worktree is kept in the trash.
    pub trash_days: u32,
    /// Days without use after which `gc` removes a worktree.
    pub gc_days: u32,
    /// Maximum size of a worktree's files that are kept as a ref when the trash is emptied, in
    /// bytes.
    pub rescue_max_bytes: u64,
    /// A program with its arguments that starts the following command without any right to write;
    /// empty if there is no such program. It reads files that agents wrote.
    pub reader: Vec<OsString>,
    /// Removes secrets from the output of checks before it is written.
    pub secret_filter: SecretFilter,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            durability: Durability::Full,
            lock_timeout: DEFAULT_TIMEOUT,
            checkout_timeout: Duration::from_secs(600),
            trash_days: 7,
            gc_days: 30,
            rescue_max_bytes: 256 * 1024 * 1024,
            reader: Vec::new(),
            secret_filter: SecretFilter::default(),
        }
    }
}

/// The worktrees of one repository. Everything begins here:
///
/// ```no_run
/// use std::path::Path;
/// use worktrees::{CreateRequest, Slug, TreeOptions, Trees};
///
/// # fn main() -> Result<(), worktrees::TreeError> {
/// let here = Path::new(".");
/// let trees = Trees::discover(here, TreeOptions::default())?;
/// let name = Slug::new("fix/login")?;
/// let created = trees.create(&CreateRequest::new(Some(name.clone()), here))?;
/// println!("work in {}", created.entry.path().display());
/// assert_eq!(trees.changes(&name)?.describe(), "none");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Trees {
    pub(crate) layout: Layout,
    pub(crate) options: TreeOptions,
}

impl Trees {
    /// The worktrees of the repository `dir` is in, from inside any of them.
    pub fn discover(dir: &Path, options: TreeOptions) -> Result<Self, TreeError> {
        match Repository::discover(dir) {
            Some(repository) => Self::open(&repository, options),
            None => Err(match Repository::bare_at(dir) {
                Some(path) => TreeError::Bare { path },
                None => TreeError::NoRepository {
                    dir: dir.to_owned(),
                },
            }),
        }
    }

    /// The worktrees of `repository`.
    pub fn open(repository: &Repository, options: TreeOptions) -> Result<Self, TreeError> {
        let Some(main) = &repository.main_tree else {
            return Err(TreeError::Bare {
                path: repository.common_dir.clone(),
            });
        };
        if main.to_str().is_none() {
            return Err(TreeError::NotText { path: main.clone() });
        }
        Ok(Self {
            layout: Layout::new(&repository.common_dir, main),
            options,
        })
    }

    /// The main worktree.
    pub fn main_tree(&self) -> &Path {
        &self.layout.main
    }

    /// The directory all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.layout.common
    }

    /// All worktrees, existing and removed: first the fully deleted ones, then the others in the
    /// order of their creation.
    pub fn list(&self) -> Result<Vec<Entry>, TreeError> {
        let mut entries = removed::all(&self.layout)?;
        entries.extend(Registry::load(&self.layout)?.worktrees);
        entries.retain(|entry| !entry.is_internal());
        for entry in &mut entries {
            if let Some(used) = self.last_used_ms(entry) {
                entry.last_used_at = rfc3339(used);
            }
        }
        Ok(entries)
    }

    /// The existing worktree of this name.
    pub fn get(&self, slug: &Slug) -> Result<Entry, TreeError> {
        let registry = Registry::load(&self.layout)?;
        match registry.find(slug) {
            Some(entry) if entry.is_live() => Ok(entry.clone()),
            _ => Err(not_found(slug)),
        }
    }

    /// Marks the worktree as in use by the caller, until the lease is dropped.
    pub fn hold(&self, slug: &Slug) -> Result<Lease, TreeError> {
        let lease = Lease::take(&self.layout, slug)?;
        // Looked up after it is held: from here on it cannot be removed.
        let entry = self.get(slug)?;
        if entry.op.is_none() {
            self.end_stay(&entry)?;
            return Ok(lease);
        }
        // Another process was changing it. If that died half way, the worktree may already be gone.
        drop(lease);
        let lock = self.tree_lock(slug)?;
        self.recover(slug)?;
        let lease = Lease::take(&self.layout, slug)?;
        drop(lock);
        self.get(slug)?;
        Ok(lease)
    }

    /// True if a process works in the worktree right now.
    pub fn is_held(&self, slug: &Slug) -> Result<bool, TreeError> {
        let lease = self.layout.lease(slug);
        Ok(lease.exists() && FileLock::try_exclusive(&lease)?.is_none())
    }

    /// Records that the worktree is kept, independent of the task it was made for.
    pub fn keep(&self, slug: &Slug) -> Result<Entry, TreeError> {
        self.keep_as(slug, |entry| entry.made_for = None)
    }

    /// Records that the worktree is kept, and more.
    pub(crate) fn keep_as(
        &self,
        slug: &Slug,
        more: impl FnOnce(&mut Entry),
    ) -> Result<Entry, TreeError> {
        let entry = self.section()?.edit(slug, |entry| {
            entry.status = TreeStatus::Kept;
            more(entry);
        })?;
        self.emit(&Event::of("worktree.keep", &entry));
        Ok(entry)
    }

    /// Records the task (its id and its list) of the worktree, and that no other worktree has it;
    /// `None` for no task.
    pub fn set_task(
        &self,
        slug: &Slug,
        task: Option<(String, String)>,
    ) -> Result<Entry, TreeError> {
        let mut section = self.section()?;
        let (id, list) = task.unzip();
        section.registry.forget_task(&id, &list);
        section.edit(slug, |entry| (entry.task_id, entry.task_list) = (id, list))
    }

    /// Removes its task from a deleted worktree.
    pub fn forget_task(&self, removed: &Entry) -> Result<(), TreeError> {
        let mut section = self.section()?;
        let Some(trash) = &removed.trash else {
            return Ok(());
        };
        match section.registry.trashed_mut(&trash.id) {
            Some(entry) => {
                (entry.task_id, entry.task_list) = (None, None);
                section.save()
            }
            None => Ok(()),
        }
    }

    /// The last `limit` events, oldest first.
    pub fn events(&self, limit: usize) -> Result<Vec<Value>, TreeError> {
        events::recent(&self.layout, limit)
    }

    /// Records that a task was completed with its worktree.
    pub fn task_completed(&self, entry: &Entry, task: EventTask) {
        self.emit_with_task("task.completed", entry, task);
    }

    /// Records that a task was bound to a worktree.
    pub fn task_bound(&self, entry: &Entry, task: EventTask) {
        self.emit_with_task("worktree.bind", entry, task);
    }

    /// Records that a task is no longer bound to a worktree.
    pub fn task_unbound(&self, entry: &Entry, task: EventTask) {
        self.emit_with_task("worktree.unbind", entry, task);
    }

    fn emit_with_task(&self, name: &str, entry: &Entry, task: EventTask) {
        let mut event = Event::of(name, entry);
        event.task = Some(task);
        self.emit(&event);
    }

    pub(crate) fn section(&self) -> Result<Section<'_>, TreeError> {
        Section::new(
            &self.layout,
            self.options.durability,
            self.options.lock_timeout,
        )
    }

    /// The lock under which the worktree is made, removed or restored.
    pub(crate) fn tree_lock(&self, slug: &Slug) -> Result<FileLock, TreeError> {
        self.layout.create_dirs()?;
        let what = format!("worktree {:?}", slug.as_str());
        let path = self.layout.tree_lock(slug);
        Ok(FileLock::exclusive(
            &path,
            &what,
            self.options.checkout_timeout,
        )?)
    }

    /// Waits until everything git has written so far is on the disk: objects, refs, its records of
    /// the worktrees, and their files.
    ///
    /// Called after git's work and before ccb reports it as done. Git itself syncs too little,
    /// whatever `core.fsync` says: the directory of a ref not at all.
    pub fn make_durable(&self) -> Result<(), TreeError> {
        let (common, durability) = (&self.layout.common, self.options.durability);
        atomic::sync_file_system(common, durability)?;
        let trees = self.layout.trees();
        if durability != Durability::Relaxed && trees.is_dir() && device(&trees)? != device(common)?
        {
            atomic::sync_file_system(&trees, durability)?;
        }
        Ok(())
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    pub(crate) fn now(&self) -> String {
        rfc3339(self.now_ms())
    }

    /// The time this many days ago.
    pub(crate) fn days_ago(&self, days: u32) -> i64 {
        self.now_ms() - i64::from(days) * 24 * 60 * 60 * 1000
    }

    pub(crate) fn emit(&self, event: &Event) {
        events::emit(&self.layout, self.now_ms(), event);
    }

    /// Runs an operation on a worktree between the events `<what>.before` and `<what>.after` or
    /// `<what>.failed`.
    pub(crate) fn with_events<T>(
        &self,
        what: &str,
        entry: &Entry,
        step: impl FnOnce() -> Result<T, TreeError>,
        after: impl FnOnce(&T) -> Event,
    ) -> Result<T, TreeError> {
        self.emit(&Event::of(format!("{what}.before"), entry));
        let done = step();
        match &done {
            Ok(done) => self.emit(&after(done)),
            Err(error) => {
                self.emit(&Event::of(format!("{what}.failed"), entry).with_error(error));
            }
        }
        done
    }

    /// The time of the last request for the worktree or work in it.
    pub(crate) fn last_used_ms(&self, entry: &Entry) -> Option<i64> {
        let noted = parse_rfc3339(&entry.last_used_at);
        let slug = entry.slug().ok();
        let touched = slug.and_then(|slug| modified_ms(&self.layout.lease(&slug)));
        // A removed worktree's lease file may belong to a later one of the same name.
        if entry.status == TreeStatus::Removed {
            return noted;
        }
        noted.max(touched)
    }
}

/// The time a file's content last changed, in milliseconds since 1970.
pub(crate) fn modified_ms(path: &Path) -> Option<i64> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}
