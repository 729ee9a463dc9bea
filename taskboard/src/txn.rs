//! One lock section: everything that changes the board goes through here.
//!
//! A section begins with the list's lock and the repair of whatever a crash or another tool
//! left: lock directories of a dead process, an unfinished intent, changes without a number,
//! expired leases, half edges. Then comes the operation itself, on a fresh snapshot.
//!
//! A change of one file is one rename and needs nothing else. A change of several files is
//! written down first as an [intent](crate::intent) and carried out again by the next section if this
//! process dies half-way; its steps say what is to be true, not what to write, so doing them
//! twice, or after another tool has changed a file, is fine.
//!
//! While lock directories are held nothing slow happens: content is written and synced
//! before they are taken, the directory is synced after they are released.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use petgraph::graphmap::DiGraphMap;
use store::StoreError;
use store::atomic::{self, Staged};
use store::fault::reached;
use store::lock::FileLock;
use store::lockdir::{HeldDirs, STALE_AFTER, Take};
use store::settings::LockMode;

use crate::board::Board;
use crate::changes::{Draft, History};
use crate::error::BoardError;
use crate::fault;
use crate::format;
use crate::graph;
use crate::id::TaskId;
use crate::intent::{Intent, Step, insert, redo_intent};
use crate::snapshot::{self, Entry, Read, Snapshot};
use crate::task::{Status, Task};

/// Why a section ended without a result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// For good.
    Error(BoardError),
    /// Another tool is in the way (its lock directory, or what it changed since we looked);
    /// nothing was changed, try again.
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

/// Whether the lock directory of the whole list is needed besides those of single tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListDir {
    Take,
    Leave,
}

/// A lock section under way.
#[derive(Debug)]
pub(crate) struct Txn<'b> {
    pub(crate) board: &'b Board,
    pub(crate) snapshot: Snapshot,
    pub(crate) history: History,
    drafts: Vec<Draft>,
    pub(crate) dirty: bool,
    // Last, so that it is released after everything else.
    _lock: FileLock,
}

impl Board {
    /// Runs `body` in a lock section, again if another tool is in the way.
    pub(crate) fn transact<T>(
        &self,
        mut body: impl FnMut(&mut Txn<'_>) -> Result<T, Stop>,
    ) -> Result<T, BoardError> {
        self.create_dirs()?;
        let started = Instant::now();
        // A lock directory of a killed process is free after STALE_AFTER at the latest, so
        // waiting a little longer than that means never failing because of one.
        let patience = self
            .options
            .lock_timeout
            .max(STALE_AFTER + Duration::from_secs(2));
        let mut pause = Duration::from_micros(300);
        loop {
            let what = format!("the task list {:?}", self.name.as_str());
            let lock =
                FileLock::exclusive(&self.dir.join(".lock"), &what, self.options.lock_timeout)?;
            let (path, age) = match self.attempt(lock, &mut body) {
                Ok(value) => return Ok(value),
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Retry { path, age }) => (path, age),
            };
            if started.elapsed() > patience {
                let holder = format!(
                    "another tool, which last touched it {:.1} s ago",
                    age.as_secs_f32()
                );
                let waited = started.elapsed();
                return Err(StoreError::LockTimeout {
                    what,
                    path,
                    holder,
                    waited,
                }
                .into());
            }
            // Outside the lock: one task in another tool's hands must not stop the rest.
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(4));
        }
    }

    fn attempt<T>(
        &self,
        lock: FileLock,
        body: &mut impl FnMut(&mut Txn<'_>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let mut txn = Txn::begin(self, lock)?;
        let result = match txn.repair() {
            // A task in another tool's hands must not stop work on the others.
            Ok(()) | Err(Stop::Retry { .. }) => body(&mut txn),
            Err(stop) => Err(stop),
        };
        // What was repaired is to be kept and numbered even if the operation was refused.
        let finished = txn.finish();
        let value = result?;
        finished?;
        Ok(value)
    }
}

impl<'b> Txn<'b> {
    fn begin(board: &'b Board, lock: FileLock) -> Result<Self, Stop> {
        if board.options.lock_mode == LockMode::Shared {
            board.lock_dirs.sweep()?;
        }
        let recovered = redo_intent(board)?;
        let snapshot = Snapshot::load(&board.dir)?;
        let history = History::load(board.history_paths())?;
        let drafts = history.unlogged(&snapshot, &recovered);
        Ok(Self {
            board,
            snapshot,
            history,
            drafts,
            dirty: false,
            _lock: lock,
        })
    }

    /// Returns tasks whose lease ran out and completes edges that are on one side only.
    fn repair(&mut self) -> Result<(), Stop> {
        let now = self.board.now_ms();
        let expired: Vec<Task> = self
            .snapshot
            .tasks()
            .filter(|task| task.lease_expired(now))
            .cloned()
            .collect();
        for mut task in expired {
            task.make_pending();
            self.write("expire", task, ListDir::Leave)?;
        }
        self.repair_half_edges()
    }

    fn repair_half_edges(&mut self) -> Result<(), Stop> {
        let half = self.snapshot.half_edges();
        if half.is_empty() {
            return Ok(());
        }
        let mut whole = DiGraphMap::<TaskId, ()>::new();
        for task in self.snapshot.tasks() {
            for blocker in self.snapshot.blockers(task.id) {
                if half.binary_search(&(blocker, task.id)).is_err() {
                    whole.add_edge(blocker, task.id, ());
                }
            }
        }
        for (blocker, dependent) in half {
            // Completing it would make a cycle for good; it stays visible as it is.
            if graph::cycle_with(&whole, blocker, dependent).is_some() {
                continue;
            }
            whole.add_edge(blocker, dependent, ());
            for (id, is_dependent) in [(dependent, true), (blocker, false)] {
                let Some(mut task) = self.snapshot.get(id).cloned() else {
                    continue;
                };
                if is_dependent {
                    insert(&mut task.blocked_by, blocker);
                } else {
                    insert(&mut task.blocks, dependent);
                }
                self.write("repair", task, ListDir::Leave)?;
            }
        }
        Ok(())
    }

    /// Replaces the file of one task, if it changed. The only way a single task changes.
    pub(crate) fn write(
        &mut self,
        op: &'static str,
        task: Task,
        list: ListDir,
    ) -> Result<(), Stop> {
        let id = task.id;
        let Some(before) = self.snapshot.entry(id) else {
            return Err(BoardError::NotFound { id }.into());
        };
        if before.task == task {
            return Ok(());
        }
        let expected = before.fingerprint;
        let bytes = format::to_bytes(&task);
        let fingerprint = store::fingerprint(&bytes);
        let staged = Staged::write(&self.board.tmp_dir(), &bytes, self.board.durability())?;
        let held = self.take_dirs(list, &[id])?;
        let path = self.board.task_path(id);
        let now = atomic::read(&path)?.map(|bytes| store::fingerprint(&bytes));
        if now != Some(expected) || !still_ours(held.as_ref())? {
            return Err(Stop::Retry {
                path,
                age: Duration::ZERO,
            });
        }
        // If this fails after the rename, the next section numbers the change.
        self.dirty = true;
        staged.replace(&path)?;
        release(held)?;
        self.drafts.push(Draft {
            op,
            id,
            after: Some((task.to_json(), fingerprint)),
            foreign: false,
        });
        self.snapshot.put(Entry { task, fingerprint });
        Ok(())
    }

    /// Takes over what an intent made of task `id`.
    pub(crate) fn note_changed(&mut self, op: &'static str, id: TaskId) -> Result<(), Stop> {
        let before = self.snapshot.entry(id).map(|entry| entry.fingerprint);
        match snapshot::read_task(&self.board.dir, id)? {
            Read::Task(entry) if before != Some(entry.fingerprint) => {
                let after = Some((entry.task.to_json(), entry.fingerprint));
                self.drafts.push(Draft {
                    op,
                    id,
                    after,
                    foreign: false,
                });
                self.snapshot.put(*entry);
            }
            Read::Absent if before.is_some() => {
                self.drafts.push(Draft {
                    op,
                    id,
                    after: None,
                    foreign: false,
                });
                self.snapshot.take_out(id);
            }
            _ => {}
        }
        Ok(())
    }

    /// Publishes one staged file under a new id; says whether the id was free.
    pub(crate) fn publish(&mut self, staged: Staged, task: &Task) -> Result<bool, Stop> {
        self.dirty = true;
        let created = staged.create(&self.board.task_path(task.id))?;
        if created {
            self.note_changed("create", task.id)?;
        }
        Ok(created)
    }

    /// Reserves `count` ids: nobody, ccb or another tool, will be given any of them again.
    pub(crate) fn reserve_ids(&mut self, count: usize) -> Result<Vec<TaskId>, Stop> {
        let held = self.take_dirs(ListDir::Take, &[])?;
        let last = self.last_id()?;
        let ids: Option<Vec<TaskId>> = (1..=count as u64)
            .map(|n| TaskId::new(last.saturating_add(n)))
            .collect();
        let ids = ids.ok_or_else(|| BoardError::invalid("task ids", "there are none left"))?;
        self.write_high_water(last + count as u64)?;
        release(held)?;
        reached(fault::IDS_RESERVED);
        Ok(ids)
    }

    /// Makes sure that no id in use is given out again. The list's lock directory is held.
    fn keep_high_water(&mut self) -> Result<(), Stop> {
        let last = self.last_id()?;
        if self.board.read_high_water()? < last {
            self.write_high_water(last)?;
        }
        Ok(())
    }

    /// The highest id that was ever given out. The list's lock directory is held.
    fn last_id(&self) -> Result<u64, BoardError> {
        Ok(self.highest_known()?.max(self.board.read_high_water()?))
    }

    /// The same without the high-water mark.
    fn highest_known(&self) -> Result<u64, BoardError> {
        // Another tool may have created tasks since the snapshot.
        let on_disk = snapshot::list_ids(&self.board.dir)?
            .last()
            .map_or(0, |id| id.get());
        Ok(on_disk
            .max(self.snapshot.max_id())
            .max(self.history.max_id()))
    }

    fn write_high_water(&mut self, last: u64) -> Result<(), BoardError> {
        let text = last.to_string();
        let dest = self.board.high_water_path();
        // The sync of the directory at the end of the section makes the name durable.
        self.dirty = true;
        Staged::write(
            &self.board.tmp_dir(),
            text.as_bytes(),
            self.board.durability(),
        )?
        .replace(&dest)?;
        Ok(())
    }

    /// Removes task files and every mention of them; ids stay used.
    pub(crate) fn remove(&mut self, op: &'static str, ids: &BTreeSet<TaskId>) -> Result<(), Stop> {
        let held = self.take_dirs(ListDir::Take, &[])?;
        self.keep_high_water()?;
        release(held)?;
        let mut steps: Vec<Step> = ids.iter().map(|id| Step::Remove { id: *id }).collect();
        for task in self.snapshot.tasks().filter(|task| !ids.contains(&task.id)) {
            let named = |list: &[TaskId]| -> Vec<TaskId> {
                list.iter().filter(|id| ids.contains(id)).copied().collect()
            };
            let (blocks, blocked_by) = (named(&task.blocks), named(&task.blocked_by));
            if !blocks.is_empty() || !blocked_by.is_empty() {
                steps.push(Step::Unlink {
                    id: task.id,
                    blocks,
                    blocked_by,
                });
            }
        }
        self.carry_out(op, &Intent::new(op, steps))
    }

    /// Sets the high-water mark to the highest id anybody knows of, whatever it says now.
    pub(crate) fn rebuild_high_water(&mut self) -> Result<u64, Stop> {
        let held = self.take_dirs(ListDir::Take, &[])?;
        let last = self
            .highest_known()?
            .max(self.board.read_high_water().unwrap_or(0));
        self.write_high_water(last)?;
        release(held)?;
        Ok(last)
    }

    pub(crate) fn take_dirs(
        &self,
        list: ListDir,
        ids: &[TaskId],
    ) -> Result<Option<HeldDirs>, Stop> {
        take_dirs(self.board, list, ids)
    }

    pub(crate) fn take_paths(&self, paths: &[PathBuf]) -> Result<HeldDirs, Stop> {
        take_paths(self.board, paths)
    }

    /// Makes the section durable and gives its changes their numbers.
    fn finish(&mut self) -> Result<(), BoardError> {
        if self.dirty {
            atomic::sync_dir(&self.board.dir, self.board.durability())?;
        }
        reached(fault::SECTION_COMMITTED);
        let drafts = std::mem::take(&mut self.drafts);
        if let Err(error) = self.history.append(&drafts, self.board.now_ms()) {
            // The change itself is safe; the next section numbers it.
            tracing::warn!(%error, "the change log could not be written");
        }
        Ok(())
    }
}

/// Takes the lock directories of `ids`, and of the list if asked, unless they are turned off.
pub(crate) fn take_dirs(
    board: &Board,
    list: ListDir,
    ids: &[TaskId],
) -> Result<Option<HeldDirs>, Stop> {
    if board.options.lock_mode == LockMode::Flock {
        return Ok(None);
    }
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let list = (list == ListDir::Take).then(|| board.dir.join(".lock.lock"));
    let tasks = ids
        .iter()
        .map(|id| board.dir.join(format!("{}.lock", id.file_name())));
    let paths: Vec<PathBuf> = list.into_iter().chain(tasks).collect();
    take_paths(board, &paths).map(Some)
}

fn take_paths(board: &Board, paths: &[PathBuf]) -> Result<HeldDirs, Stop> {
    match board.lock_dirs.take(paths, &*board.options.clock)? {
        Take::Held(held) => Ok(held),
        Take::Busy { path, age } => Err(Stop::Retry { path, age }),
    }
}

fn still_ours(held: Option<&HeldDirs>) -> Result<bool, StoreError> {
    held.map_or(Ok(true), HeldDirs::still_ours)
}

pub(crate) fn release(held: Option<HeldDirs>) -> Result<(), StoreError> {
    held.map_or(Ok(()), HeldDirs::release)
}

/// Whether nothing on the board is left to do, and the number of tasks on it.
pub(crate) fn all_completed(snapshot: &Snapshot) -> (bool, usize) {
    let shown: Vec<&Task> = snapshot
        .tasks()
        .filter(|task| !task.is_internal())
        .collect();
    let done = shown.iter().all(|task| task.status == Status::Completed);
    (done && snapshot.unreadable().is_empty(), shown.len())
}
