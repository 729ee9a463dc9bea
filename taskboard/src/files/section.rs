//! One lock section: everything that changes the board goes through here.
//!
//! A section begins with the list's lock and the repair of whatever a crash or another tool left:
//! lock directories of a dead process, an unfinished intent, changes without a number, expired
//! leases, half edges. Then comes the operation itself.
//!
//! The index says what to do; the files confirm it. A section reads the whole directory only if its
//! mtime shows that another program than ccb changed it. It always reads the file it is about to
//! change, and those of its blockers, because a hand edit in place leaves no other trace.
//!
//! While lock directories are held nothing slow happens: content is written and synced before they
//! are taken, the directory is synced after the lock is released.

use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use store::atomic::{self, Staged, Stamp};
use store::fault::reached;
use store::lockdir::{HeldDirs, Take};
use store::settings::LockMode;
use store::{IoContext, StoreError};

use crate::error::BoardError;
use crate::fault;
use crate::files::Files;
use crate::files::intent::{Intent, Step, redo_intent};
use crate::files::live::{Live, Loaded};
use crate::files::log::Draft;
use crate::files::patience::Patience;
use crate::files::prepared::Prepared;
use crate::files::read::{self, Read, Version};
use crate::files::slot::Slot;
use crate::files::slots::WorkerId;
use crate::id::TaskId;
use crate::rules::index::{Index, Slim};
use crate::rules::needs::{Edited, Needs};
use crate::rules::ready::Dependencies;
use crate::snapshot::Entry;
use crate::task::Task;

/// The reasons why a section ended without a result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A permanent error.
    Error(BoardError),
    /// Another tool is in the way (its lock directory, or its change since the last read); nothing
    /// was changed, try again.
    Retry { path: PathBuf, age: Duration },
}

impl From<BoardError> for Stop {
    fn from(error: BoardError) -> Self {
        Self::Error(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Error(error.into())
    }
}

/// Says if the lock directory of the whole list is needed besides those of single tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListDir {
    Take,
    Leave,
}

impl ListDir {
    /// The tasks that the rules read must not change meanwhile.
    pub(crate) fn for_needs(needs: &Needs<'_>) -> Self {
        Self::if_all(needs.agent.is_some())
    }

    pub(crate) fn if_all(all: bool) -> Self {
        if all { Self::Take } else { Self::Leave }
    }
}

/// A lock section under way.
#[derive(Debug)]
pub(crate) struct Section<'b> {
    pub(crate) files: &'b Files,
    live: &'b mut Loaded,
    drafts: Vec<Draft>,
    /// True if the directory has to be synced before the change is acknowledged.
    pub(crate) dirty: bool,
    /// True if this process changed its mtime.
    pub(crate) touched: bool,
    /// The mtime up to which everything foreign is taken in, once it is logged.
    settled: Option<i64>,
    /// True if so much time has passed that another tool may have written unseen.
    pub(crate) slow: bool,
    /// The answers to waiting workers, for when the change is logged.
    pub(crate) served: Vec<(WorkerId, Slot)>,
}

/// The duties of a section besides its own operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// Repair damage, and serve waiting workers.
    Full,
    /// Nothing.
    Look,
}

impl Files {
    /// Runs `body` in a lock section, again if another tool is in the way.
    pub(crate) fn section<T>(
        &self,
        body: impl FnMut(&mut Section<'_>) -> Result<T, Stop>,
    ) -> Result<T, BoardError> {
        self.persist(Duty::Full, body)
    }

    /// Runs a section if no process holds the lock; else returns `None`.
    pub(crate) fn section_if_free<T>(
        &self,
        mut body: impl FnMut(&mut Section<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>, BoardError> {
        let mut live = self.live();
        let free = self.with_dirs(&mut live, |live| live.lock.try_acquire())?;
        if !free {
            return Ok(None);
        }
        let result = self.locked(&mut live, Duty::Full, &mut body);
        self.unlock(&mut live, Duty::Full);
        drop(live);
        match result {
            Ok((value, dirty)) => self.sync_if(dirty).map(|()| Some(value)),
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Retry { .. }) => self.section(body).map(Some),
        }
    }

    /// Runs a section for a caller that only reads: no task changes, but changes of other tools get
    /// numbers.
    pub(crate) fn observe<T>(
        &self,
        body: impl FnMut(&mut Section<'_>) -> Result<T, Stop>,
    ) -> Result<T, BoardError> {
        self.persist(Duty::Look, body)
    }

    fn persist<T>(
        &self,
        duty: Duty,
        mut body: impl FnMut(&mut Section<'_>) -> Result<T, Stop>,
    ) -> Result<T, BoardError> {
        let mut patience = Patience::new(self);
        loop {
            match self.attempt(duty, &mut body) {
                Ok((value, dirty)) => return self.sync_if(dirty).map(|()| value),
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Retry { path, age }) => patience.wait(path, age)?,
            }
        }
    }

    /// Outside the lock, where the kernel merges it with those of others.
    fn sync_if(&self, dirty: bool) -> Result<(), BoardError> {
        if dirty {
            atomic::sync_dir(&self.dir, self.durability())
                .map_err(|source| BoardError::NotDurable { source })?;
        }
        Ok(())
    }

    fn attempt<T>(
        &self,
        duty: Duty,
        body: &mut impl FnMut(&mut Section<'_>) -> Result<T, Stop>,
    ) -> Result<(T, bool), Stop> {
        let mut live = self.live();
        self.with_dirs(&mut live, |live| {
            live.lock
                .acquire(|| self.lock_name(), self.options.lock_timeout)
        })?;
        let result = self.locked(&mut live, duty, body);
        self.unlock(&mut live, duty);
        result
    }

    /// Takes the lock, making the list's directories first if they are not there.
    fn with_dirs<T>(
        &self,
        live: &mut Live,
        mut take: impl FnMut(&mut Live) -> Result<T, StoreError>,
    ) -> Result<T, BoardError> {
        if !live.lock.was_opened() {
            self.create_dirs()?;
        }
        match take(live) {
            // Another process deleted it.
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                self.create_dirs()?;
                Ok(take(live)?)
            }
            other => Ok(other?),
        }
    }

    fn unlock(&self, live: &mut Live, duty: Duty) {
        live.lock.release();
        // A worker that asked after the read, and before the release of the lock, waits for no one
        // else.
        if duty == Duty::Full
            && let Some(loaded) = live.loaded()
        {
            loaded.slots.wake_served();
            loaded.wake_one_who_waits();
        }
    }

    fn locked<T>(
        &self,
        live: &mut Live,
        duty: Duty,
        body: &mut impl FnMut(&mut Section<'_>) -> Result<T, Stop>,
    ) -> Result<(T, bool), Stop> {
        if self.options.lock_mode == LockMode::Shared {
            self.lock_dirs.sweep()?;
        }
        let recovered = redo_intent(self)?;
        let live = live.sync(self)?;
        let mut section = Section::new(self, live);
        if !recovered.is_empty() || section.live.foreign_change()? {
            section.scan(&recovered)?;
        }
        let result = match duty {
            Duty::Look => body(&mut section),
            Duty::Full => match section.repair() {
                // A task in another tool's hands must not stop work on the others.
                Ok(()) | Err(Stop::Retry { .. }) => body(&mut section),
                Err(stop) => Err(stop),
            },
        };
        let dirty = section.dirty;
        if duty == Duty::Full {
            section.serve();
        }
        // Repairs are to be kept and numbered even if the operation was refused.
        let finished = section.finish();
        section.tell_served();
        let value = result?;
        finished?;
        Ok((value, dirty))
    }

    /// Reads the known state of this process, without the lock.
    pub(crate) fn peek<T>(
        &self,
        look: impl FnOnce(&mut Loaded) -> Result<T, BoardError>,
    ) -> Result<T, BoardError>
    where
        T: Default,
    {
        self.live().loaded().map_or_else(|| Ok(T::default()), look)
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        // A thread that panicked in a section left files that the next section repairs.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_name(&self) -> String {
        format!("the task list {:?}", self.name.as_str())
    }
}

impl<'b> Section<'b> {
    fn new(files: &'b Files, live: &'b mut Loaded) -> Self {
        Self {
            files,
            live,
            drafts: Vec::new(),
            dirty: false,
            touched: false,
            settled: None,
            slow: false,
            served: Vec::new(),
        }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.live.index
    }

    pub(crate) fn live(&mut self) -> &mut Loaded {
        self.live
    }

    /// Compares every file with the index and takes in what differs.
    pub(crate) fn scan(
        &mut self,
        recovered: &HashMap<TaskId, &'static str>,
    ) -> Result<(), BoardError> {
        let scanned = self.live.scan(self.files, recovered)?;
        self.drafts.extend(scanned.drafts);
        self.settled = Some(scanned.settled);
        Ok(())
    }

    /// Reads the task with this id, taking in what a hand edit changed.
    pub(crate) fn read(&mut self, id: TaskId) -> Result<Entry, BoardError> {
        let entry = match read::read_task(&self.files.dir, id)? {
            Read::Task(entry) => *entry,
            Read::Absent => {
                self.take_in(id)?;
                return Err(BoardError::NotFound { id });
            }
            Read::Unreadable(bad) => {
                self.take_in(id)?;
                return Err(bad.error(id));
            }
        };
        if self.index().get(id).map(|slim| slim.fingerprint) != Some(entry.fingerprint) {
            self.take_in(id)?;
        }
        if self.live.disputed.contains_key(&id) {
            return self.read_disputed(id);
        }
        self.check_blockers(id)?;
        Ok(entry)
    }

    /// Reads a task whose check another tool may have changed, after settling that.
    fn read_disputed(&mut self, id: TaskId) -> Result<Entry, BoardError> {
        match self.settle_check(id) {
            Ok(()) => self.read(id),
            Err(Stop::Error(error)) => Err(error),
            // Another tool is writing it right now.
            Err(Stop::Retry { .. }) => Err(BoardError::ChangedMeanwhile { id }),
        }
    }

    /// Takes in hand edits of the tasks that `id` waits for.
    pub(crate) fn check_blockers(&mut self, id: TaskId) -> Result<(), BoardError> {
        let blockers: Vec<TaskId> = self.index().blockers(id).collect();
        for blocker in blockers {
            let path = self.files.task_path(blocker);
            let stamp = std::fs::symlink_metadata(path)
                .ok()
                .map(|meta| Stamp::of(&meta));
            let known = match self.index().get(blocker) {
                Some(slim) => Some(slim.stamp),
                None => self.index().unreadable().get(&blocker).copied(),
            };
            if stamp != known {
                self.take_in(blocker)?;
            }
        }
        Ok(())
    }

    /// Reads changes that another tool may have made to the task with this id.
    pub(crate) fn take_in(&mut self, id: TaskId) -> Result<(), BoardError> {
        let draft = self.live.refresh(&self.files.dir, id, None)?;
        self.drafts.extend(draft);
        Ok(())
    }

    /// The task with this id must be there and readable.
    pub(crate) fn require(&self, id: TaskId) -> Result<&Slim, BoardError> {
        if let Some(slim) = self.index().get(id) {
            return Ok(slim);
        }
        match read::read_task(&self.files.dir, id)? {
            Read::Unreadable(bad) => Err(bad.error(id)),
            Read::Task(_) | Read::Absent => Err(BoardError::NotFound { id }),
        }
    }

    /// Replaces the file of one task, if it changed.
    pub(crate) fn stage_and_write(
        &mut self,
        op: &'static str,
        before: &Entry,
        task: Task,
        list: ListDir,
    ) -> Result<(), Stop> {
        if before.task == task {
            return Ok(());
        }
        let prepared = Prepared::new(self.files, task)?;
        self.write_change(op, before, prepared, list)
    }

    /// Puts the prepared file in the place of the file that was read as `before`.
    pub(crate) fn write(
        &mut self,
        op: &'static str,
        before: Version,
        prepared: Prepared,
        list: ListDir,
    ) -> Result<(), Stop> {
        let held = self.take_dirs(list, &[prepared.task.id])?;
        self.write_held(op, before, prepared, held)
    }

    /// Changes one task with its lock directory taken first, so that no tool can come in between;
    /// for when that has happened. Its file is written, and synced, meanwhile: a few milliseconds.
    pub(crate) fn write_at_once(
        &mut self,
        id: TaskId,
        list: ListDir,
        mut edit: impl FnMut(&Index, &Task) -> Result<Edited, BoardError>,
    ) -> Result<Task, Stop> {
        let held = self.take_dirs(list, &[id])?;
        let before = self.read(id)?;
        let Edited { op, task } = edit(self.index(), &before.task)?;
        if before.task != task {
            let prepared = Prepared::new(self.files, task.clone())?;
            self.write_held(op, Version::of(&before), prepared, held)?;
        }
        Ok(task)
    }

    fn write_held(
        &mut self,
        op: &'static str,
        before: Version,
        prepared: Prepared,
        held: Option<HeldDirs>,
    ) -> Result<(), Stop> {
        let Prepared {
            task,
            staged,
            fingerprint,
        } = prepared;
        let id = task.id;
        let path = self.files.task_path(id);
        if !self.unchanged(before, held.as_ref())? {
            let age = Duration::ZERO;
            return Err(Stop::Retry { path, age });
        }
        let stamp = staged.stamp();
        // If this fails after the rename, the next section numbers the change.
        self.dirty = true;
        staged.replace(&path)?;
        let slim = Slim::of(&task, fingerprint, stamp);
        self.live.index.put(id, slim.clone());
        self.drafts.push(Draft {
            op,
            id,
            after: Some((slim, task.to_json())),
            foreign: false,
        });
        release(held)?;
        Ok(())
    }

    /// True if the task's file is still the file that was read as `before`.
    fn unchanged(&self, before: Version, held: Option<&HeldDirs>) -> Result<bool, StoreError> {
        let path = self.files.task_path(before.id);
        let Some(held) = held else {
            // Without lock directories only ccb writes here, and this process holds its lock. A
            // person with an editor cannot be kept out; the stamp is as good as it gets.
            let stamp = std::fs::symlink_metadata(&path)
                .ok()
                .map(|meta| Stamp::of(&meta));
            return Ok(stamp == Some(before.stamp));
        };
        let now = atomic::read(&path)?.map(|bytes| store::fingerprint(&bytes));
        Ok(now == Some(before.fingerprint) && held.still_ours()?)
    }

    /// Reads this process's own change of task `id` by other means than [`Self::write`].
    pub(crate) fn note_changed(&mut self, op: &'static str, id: TaskId) -> Result<(), Stop> {
        let draft = self.live.refresh(&self.files.dir, id, Some(op))?;
        self.drafts.extend(draft);
        Ok(())
    }

    /// Publishes one staged file under a new id; says whether the id was free.
    pub(crate) fn publish(&mut self, staged: Staged, task: &Task) -> Result<bool, Stop> {
        self.dirty = true;
        let created = staged.create(&self.files.task_path(task.id))?;
        if created {
            self.note_changed("create", task.id)?;
        }
        Ok(created)
    }

    /// Removes task files and every mention of them; ids stay used.
    pub(crate) fn remove(&mut self, op: &'static str, ids: &BTreeSet<TaskId>) -> Result<(), Stop> {
        let held = self.take_dirs(ListDir::Take, &[])?;
        let last = self.last_id()?;
        self.write_high_water(last)?;
        release(held)?;
        let mut steps: Vec<Step> = ids.iter().map(|id| Step::Remove { id: *id }).collect();
        for (id, slim) in self.index().iter().filter(|(id, _)| !ids.contains(id)) {
            let named = |list: &[TaskId]| -> Vec<TaskId> {
                list.iter().filter(|id| ids.contains(id)).copied().collect()
            };
            let (blocks, blocked_by) = (named(&slim.blocks), named(&slim.blocked_by));
            if !blocks.is_empty() || !blocked_by.is_empty() {
                steps.push(Step::Unlink {
                    id,
                    blocks,
                    blocked_by,
                });
            }
        }
        self.carry_out(op, &Intent::new(op, steps))
    }

    pub(crate) fn take_dirs(
        &mut self,
        list: ListDir,
        ids: &[TaskId],
    ) -> Result<Option<HeldDirs>, Stop> {
        self.touched = true;
        take_dirs(self.files, list, ids)
    }

    pub(crate) fn take_paths(&mut self, paths: &[PathBuf]) -> Result<HeldDirs, Stop> {
        self.touched = true;
        take_paths(self.files, paths)
    }

    /// Gives the section's changes their numbers.
    fn finish(&mut self) -> Result<(), BoardError> {
        reached(fault::SECTION_COMMITTED);
        let drafts = std::mem::take(&mut self.drafts);
        if let Err(error) = self.live.append(self.files, &drafts) {
            // The change itself is safe; the next section finds and numbers it.
            tracing::warn!(%error, "the change log could not be written");
            return Ok(());
        }
        if (self.dirty || self.touched) && !self.slow {
            let dir = &self.files.dir;
            let meta = std::fs::metadata(dir).context("read", dir)?;
            self.settled = Some(Stamp::of(&meta).mtime_ns);
        }
        match self.settled {
            Some(mtime_ns) => {
                let halves = !self.index().half_edges().is_empty();
                self.live.slots.set_settled(mtime_ns, halves)
            }
            None => Ok(()),
        }
    }
}

/// Takes the lock directories of `ids`, and of the list if asked, unless they are turned off.
pub(crate) fn take_dirs(
    files: &Files,
    list: ListDir,
    ids: &[TaskId],
) -> Result<Option<HeldDirs>, Stop> {
    if files.options.lock_mode == LockMode::Flock {
        return Ok(None);
    }
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let list = (list == ListDir::Take).then(|| files.dir.join(".lock.lock"));
    let tasks = ids
        .iter()
        .map(|id| files.dir.join(format!("{}.lock", id.file_name())));
    let paths: Vec<PathBuf> = list.into_iter().chain(tasks).collect();
    take_paths(files, &paths).map(Some)
}

fn take_paths(files: &Files, paths: &[PathBuf]) -> Result<HeldDirs, Stop> {
    match files.lock_dirs.take(paths, &*files.options.clock)? {
        Take::Held(held) => Ok(held),
        Take::Busy { path, age } => Err(Stop::Retry { path, age }),
    }
}

pub(crate) fn release(held: Option<HeldDirs>) -> Result<(), StoreError> {
    held.map_or(Ok(()), HeldDirs::release)
}
