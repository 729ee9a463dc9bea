//! A board in the memory of one process, for tests of what uses boards.
//!
//! The smallest backend there is: one lock, every rule applied to one index, no waiting and no
//! repairs. The model tests hold it to the same answers as files and tables.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::clock::{Clock, rfc3339};
use store::name::Name;

use crate::backend::{Backend, Feed, Poll, Whose};
use crate::caller::Caller;
use crate::error::{BoardError, Refusal};
use crate::finding::Finding;
use crate::history::Change;
use crate::id::{TaskId, insert};
use crate::record::Record;
use crate::rules::batch::Batch;
use crate::rules::claim::{Busy, ClaimRequest, check_claim, in_progress, start};
use crate::rules::complete::{self, Completed};
use crate::rules::cycles::cycle_with;
use crate::rules::index::Index;
use crate::rules::needs::{Edit, Needs};
use crate::rules::next::{Next, why_nothing};
use crate::snapshot::{Entry, Snapshot};
use crate::task::{Status, Task};

/// Lists in memory. Every board that is opened on it, or on a clone of it, under the same name is the
/// same list.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<BTreeMap<String, Arc<Shared>>>>);

impl Memory {
    pub(crate) fn open(&self, name: &Name, clock: Arc<dyn Clock>) -> MemoryList {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = Arc::clone(lists.entry(name.to_string()).or_default());
        MemoryList { clock, shared }
    }
}

/// A list in memory.
#[derive(Debug)]
pub(crate) struct MemoryList {
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
}

/// The list, and the bell for its followers.
#[derive(Debug, Default)]
struct Shared {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    exists: bool,
    now_ms: i64,
    last_id: u64,
    index: Index,
    tasks: BTreeMap<TaskId, Entry>,
    log: Vec<Change>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryList {
    /// Makes a change, which must check everything before it writes anything.
    fn change<T>(
        &self,
        body: impl FnOnce(&mut List) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        let mut list = self.shared.lock();
        (list.exists, list.now_ms) = (true, self.clock.now_ms());
        let now_ms = list.now_ms;
        list.make_pending("expire", |index| index.expired(now_ms))?;
        let done = body(&mut list);
        self.shared.changed.notify_all();
        done
    }
}

impl List {
    fn entry(&self, id: TaskId) -> Result<&Entry, BoardError> {
        self.tasks.get(&id).ok_or(BoardError::NotFound { id })
    }

    fn task(&self, id: TaskId) -> Result<Task, BoardError> {
        Ok(self.entry(id)?.task.clone())
    }

    /// Writes a task as it is to be, and the other sides of its edges.
    fn put(&mut self, op: &str, task: &Task) {
        let id = task.id;
        let before = self.tasks.get(&id).map(|entry| entry.task.clone());
        if before.as_ref() == Some(task) {
            return;
        }
        let (mut blocks, mut blocked_by) = (Vec::new(), Vec::new());
        if let Some(before) = before {
            (blocks, blocked_by) = (before.blocks, before.blocked_by);
        }
        self.write(op, task.clone());
        self.relink(&blocks, &task.blocks, |other| (&mut other.blocked_by, id));
        self.relink(&blocked_by, &task.blocked_by, |other| {
            (&mut other.blocks, id)
        });
    }

    /// Updates the other side of edges whose one side was `before` and is `now`.
    fn relink(
        &mut self,
        before: &[TaskId],
        now: &[TaskId],
        side: impl Fn(&mut Task) -> (&mut Vec<TaskId>, TaskId),
    ) {
        for other in before.iter().chain(now) {
            let Ok(mut task) = self.task(*other) else {
                continue;
            };
            let (list, id) = side(&mut task);
            let (has, wanted) = (list.contains(&id), now.contains(other));
            if wanted && !has {
                insert(list, id);
                self.write("block", task);
            } else if has && !wanted {
                list.retain(|it| *it != id);
                self.write("unblock", task);
            }
        }
    }

    fn write(&mut self, op: &str, task: Task) {
        self.note(op, task.id, Some(task.to_json()));
        let entry = Entry {
            fingerprint: self.log.len() as u64,
            ..Entry::of(task)
        };
        self.index.put(entry.task.id, entry.slim());
        self.tasks.insert(entry.task.id, entry);
    }

    fn remove(&mut self, op: &str, id: TaskId) {
        self.tasks.remove(&id);
        self.index.remove(id);
        self.note(op, id, None);
    }

    fn note(&mut self, op: &str, id: TaskId, task: Option<serde_json::Value>) {
        self.log.push(Change {
            seq: self.log.len() as u64 + 1,
            ts: rfc3339(self.now_ms),
            op: op.to_owned(),
            id,
            task,
            foreign: false,
        });
    }

    fn make_pending(
        &mut self,
        op: &str,
        which: impl FnOnce(&Index) -> Vec<TaskId>,
    ) -> Result<Vec<Task>, BoardError> {
        let ids = which(&self.index).into_iter();
        let pending = ids.map(|id| {
            let mut task = self.task(id)?;
            task.make_pending();
            self.put(op, &task);
            Ok(task)
        });
        pending.collect()
    }

    fn changes_since(&self, seq: u64) -> Vec<Change> {
        let seq = usize::try_from(seq).unwrap_or(usize::MAX);
        self.log.get(seq..).unwrap_or_default().to_vec()
    }

    fn snapshot_of(&self, wanted: impl Fn(TaskId) -> bool) -> Snapshot {
        let tasks = self.tasks.iter().filter(|(id, _)| wanted(**id));
        let entries = tasks.map(|(_, entry)| entry.clone());
        Snapshot::made_of(entries.collect(), BTreeMap::new())
    }
}

impl Backend for MemoryList {
    fn exists(&self) -> bool {
        self.shared.lock().exists
    }

    fn get(&self, id: TaskId) -> Result<Task, BoardError> {
        self.shared.lock().task(id)
    }

    fn around(&self, id: TaskId) -> Result<Snapshot, BoardError> {
        let list = self.shared.lock();
        let task = list.tasks.get(&id).map(|entry| &entry.task);
        let near = |other| task.is_some_and(|it| it.blocks.contains(&other));
        let before = |other| task.is_some_and(|it| it.blocked_by.contains(&other));
        Ok(list.snapshot_of(|other| other == id || near(other) || before(other)))
    }

    fn snapshot(&self) -> Result<Snapshot, BoardError> {
        Ok(self.shared.lock().snapshot_of(|_| true))
    }

    fn ready(&self) -> Result<Vec<TaskId>, BoardError> {
        self.change(|list| Ok(list.index.ready()))
    }

    fn record(&self, id: TaskId) -> Result<Option<Record>, BoardError> {
        let list = self.shared.lock();
        // Only the board writes here, so the task itself is the record.
        Ok(list.tasks.get(&id).map(|entry| Record::of(&entry.task)))
    }

    fn reserve(&self, batch: &Batch<'_>) -> Result<Vec<TaskId>, BoardError> {
        self.change(|list| {
            let ids = batch.ids_after(list.last_id);
            batch.check(&list.index, &ids)?;
            list.last_id += ids.len() as u64;
            Ok(ids)
        })
    }

    fn publish(&self, batch: &Batch<'_>, tasks: &[Task]) -> Result<bool, BoardError> {
        self.change(|list| {
            let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
            batch.check(&list.index, &ids)?;
            tasks.iter().for_each(|task| list.put("create", task));
            Ok(true)
        })
    }

    fn edit(&self, id: TaskId, _: &Needs<'_>, edit: Edit<'_>) -> Result<Task, BoardError> {
        self.change(|list| {
            let edited = edit(&list.index, &list.entry(id)?.task, list.now_ms)?;
            list.put(edited.op, &edited.task);
            Ok(edited.task)
        })
    }

    fn completable(&self, id: TaskId, caller: &Caller) -> Result<(Task, u64), BoardError> {
        self.change(|list| {
            let shown = list.entry(id)?.clone();
            complete::check(&list.index, &shown.task, caller)?;
            Ok((shown.task, shown.fingerprint))
        })
    }

    fn complete(
        &self,
        id: TaskId,
        shown: Option<u64>,
        _: &Needs<'_>,
        finish: Edit<'_>,
    ) -> Result<Completed, BoardError> {
        self.change(|list| {
            let before = list.entry(id)?;
            if shown.is_some_and(|shown| shown != before.fingerprint) {
                return Err(BoardError::ChangedMeanwhile { id });
            }
            let edited = finish(&list.index, &before.task, list.now_ms)?;
            list.put(edited.op, &edited.task);
            Ok(Completed {
                task: edited.task,
                unblocked: complete::unblocked(&list.index, id),
                nudge: complete::nudge(&list.index),
            })
        })
    }

    fn block(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.change(|list| {
            list.entry(blocker)?;
            let mut task = list.task(dependent)?;
            if !task.blocked_by.contains(&blocker) {
                if let Some(path) = cycle_with(&list.index.edges(), blocker, dependent) {
                    return Err(BoardError::Cycle { path });
                }
                insert(&mut task.blocked_by, blocker);
                list.put("block", &task);
            }
            Ok(task)
        })
    }

    fn unblock(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.change(|list| {
            let mut task = list.task(dependent)?;
            task.blocked_by.retain(|id| *id != blocker);
            list.put("unblock", &task);
            Ok(task)
        })
    }

    fn delete(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        self.change(|list| {
            let task = list.task(id)?;
            caller.check_delete(&task)?;
            let mut alone = task.clone();
            (alone.blocks, alone.blocked_by) = (Vec::new(), Vec::new());
            list.put("unblock", &alone);
            list.remove("delete", id);
            Ok(task)
        })
    }

    fn reset(&self, force: bool) -> Result<usize, BoardError> {
        self.change(|list| {
            let mut tasks = list.tasks.values().map(|entry| &entry.task);
            let busy = tasks.find(|task| task.status == Status::InProgress);
            if let Some(task) = busy.filter(|_| !force) {
                let owner = task.owner.clone().unwrap_or_else(|| "nobody".into());
                return Err(BoardError::refused(task, Refusal::AlreadyClaimed { owner }));
            }
            let ids: Vec<TaskId> = list.tasks.keys().copied().collect();
            ids.iter().for_each(|id| list.remove("reset", *id));
            Ok(ids.len())
        })
    }

    fn claim_next(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        self.change(|list| {
            let agent = &request.agent;
            let busy = in_progress(&list.index, agent, None);
            if request.check_busy && !busy.is_empty() {
                return Ok(Next::Busy(busy));
            }
            let Some(id) = list.index.pick(agent, &HashSet::new()) else {
                return Ok(Next::Nothing(why_nothing(&list.index)));
            };
            let mut task = list.task(id)?;
            check_claim(&list.index, &task, request, Busy::IsWorking)?;
            start(&mut task, request, list.now_ms);
            list.put("claim", &task);
            Ok(Next::claimed(task))
        })
    }

    fn give_back(&self, whose: Whose<'_>) -> Result<Vec<Task>, BoardError> {
        let ids = |index: &Index| {
            let open = index.iter().filter(|(_, slim)| whose.holds(slim));
            open.map(|(id, _)| id).collect()
        };
        self.change(|list| list.make_pending("unassign", ids))
    }

    fn renew(&self, run: &str, milliseconds: i64) -> Result<Vec<(TaskId, u64)>, BoardError> {
        self.change(|list| {
            let until = list.now_ms.saturating_add(milliseconds);
            let held = list.tasks.values().filter_map(|entry| {
                let lease = entry.task.lease()?;
                let its = lease.run.as_deref() == Some(run) && lease.expires_at.is_some();
                its.then(|| (entry.task.clone(), lease))
            });
            let held: Vec<_> = held.collect();
            let renewed = held.into_iter().map(|(mut task, mut lease)| {
                lease.expires_at = lease.expires_at.map(|end| end.max(until));
                task.set_lease(&lease);
                let id = task.id;
                list.put("renew", &task);
                (id, lease.token)
            });
            Ok(renewed.collect())
        })
    }

    fn watch(&self, since: Option<u64>) -> Result<Box<dyn Feed + '_>, BoardError> {
        let last = self.last_change()?;
        let since = since.unwrap_or(last);
        if since > last {
            return Err(BoardError::beyond(since, last));
        }
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(Followed {
            shared,
            last: since,
        }))
    }

    fn last_change(&self) -> Result<u64, BoardError> {
        self.change(|list| Ok(list.log.len() as u64))
    }

    fn glance(&self) -> Box<dyn Poll> {
        let shared = Arc::clone(&self.shared);
        Box::new(Seen {
            followed: Followed { shared, last: 0 },
            looked_at: 0,
        })
    }

    fn doctor(&self, _: bool) -> Result<Vec<Finding>, BoardError> {
        Ok(Vec::new())
    }
}

/// The changes of a list in memory.
#[derive(Debug)]
struct Followed {
    shared: Arc<Shared>,
    last: u64,
}

impl Feed for Followed {
    fn poll(&mut self) -> Result<Vec<Change>, BoardError> {
        let changes = self.shared.lock().changes_since(self.last);
        self.last += changes.len() as u64;
        Ok(changes)
    }

    fn wait(&mut self, limit: Duration) {
        let seen = |list: &mut List| list.log.len() as u64 <= self.last;
        let changed = &self.shared.changed;
        drop(changed.wait_timeout_while(self.shared.lock(), limit, seen));
    }

    fn last(&self) -> u64 {
        self.last
    }
}

/// A list in memory that a view reads again and again.
#[derive(Debug)]
struct Seen {
    followed: Followed,
    looked_at: usize,
}

impl Poll for Seen {
    fn look(&mut self, _: i64) -> Result<Option<Snapshot>, BoardError> {
        let list = self.followed.shared.lock();
        let changed = std::mem::replace(&mut self.looked_at, list.log.len()) != list.log.len();
        Ok(changed.then(|| list.snapshot_of(|_| true)))
    }

    fn history(&mut self) -> Result<Vec<Change>, BoardError> {
        self.followed.poll()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;
    use crate::options::BoardOptions;
    use crate::rules::batch::NewTask;

    #[test]
    fn boards_of_one_name_are_one_list() {
        let memory = Memory::default();
        let open = |name| {
            let name = Name::new("list", name).unwrap();
            Board::in_memory(&memory, name, BoardOptions::default())
        };
        let (one, same, other) = (open("a"), open("a"), open("b"));
        let mut glance = same.glance();
        assert!(!glance.look(0).unwrap() && !same.exists());
        let new = NewTask {
            subject: "job".into(),
            ..NewTask::default()
        };
        let id = one.create(&[new], None).unwrap()[0].id;
        assert!(glance.look(0).unwrap());
        assert_eq!(glance.snapshot().tasks().count(), 1);
        assert_eq!(glance.history().unwrap().len(), 1);
        assert_eq!(same.get(id).unwrap(), one.get(id).unwrap());
        assert!(!other.exists());
    }
}
