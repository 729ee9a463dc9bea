//! The whole board at one moment, and what can be read off it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use store::atomic::Stamp;

use crate::error::BoardError;
use crate::id::TaskId;
use crate::rules::index::{Index, Slim};
use crate::rules::ready::Dependencies;
use crate::task::Task;

/// All tasks of a list as they were read.
#[derive(Debug)]
pub struct Snapshot {
    tasks: BTreeMap<TaskId, Task>,
    unreadable: BTreeMap<TaskId, Unreadable>,
    index: Index,
}

/// A task as read from its file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) task: Task,
    /// Of the file's bytes; tells whether it changed since.
    pub(crate) fingerprint: u64,
    pub(crate) stamp: Stamp,
}

impl Entry {
    /// An entry for a task that is in no file.
    pub(crate) fn of(task: Task) -> Self {
        Self {
            task,
            fingerprint: 0,
            stamp: Stamp::default(),
        }
    }

    pub(crate) fn slim(&self) -> Slim {
        Slim::of(&self.task, self.fingerprint, self.stamp)
    }
}

/// A task file that cannot be read as a task. Never treated as absent.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// The error.
    pub detail: String,
}

impl Unreadable {
    pub(crate) fn error(&self, id: TaskId) -> BoardError {
        BoardError::Corrupt {
            id,
            path: self.path.clone(),
            detail: self.detail.clone(),
        }
    }
}

impl Snapshot {
    /// Of what was read.
    pub(crate) fn made_of(entries: Vec<Entry>, unreadable: BTreeMap<TaskId, Unreadable>) -> Self {
        let stamps = unreadable
            .keys()
            .map(|id| (*id, Stamp::default()))
            .collect();
        let slim = entries.iter().map(|entry| (entry.task.id, entry.slim()));
        let index = Index::build(slim, stamps);
        let tasks = entries.into_iter().map(|entry| (entry.task.id, entry.task));
        Self {
            tasks: tasks.collect(),
            unreadable,
            index,
        }
    }

    /// All readable tasks, by number.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// Files that cannot be read as tasks.
    pub fn unreadable(&self) -> &BTreeMap<TaskId, Unreadable> {
        &self.unreadable
    }

    /// The task with this id, if it is there and readable.
    pub fn get(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id)
    }

    /// The task with this id, or the error that says why not.
    pub fn require(&self, id: TaskId) -> Result<&Task, BoardError> {
        self.get(id).ok_or_else(|| match self.unreadable.get(&id) {
            Some(bad) => bad.error(id),
            None => BoardError::NotFound { id },
        })
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Tasks that `id` waits for or once waited for, on either side's word.
    pub fn blockers(&self, id: TaskId) -> Vec<TaskId> {
        let mut ids: Vec<TaskId> = self.index.blockers(id).collect();
        ids.sort_unstable();
        ids
    }

    /// Tasks that wait for `id`, on either side's word.
    pub fn dependents(&self, id: TaskId) -> Vec<TaskId> {
        let mut ids: Vec<TaskId> = self.index.dependents(id).collect();
        ids.sort_unstable();
        ids
    }

    /// The blockers of `id` that are not completed. One whose file is missing is resolved;
    /// one whose file is unreadable is not.
    pub fn open_blockers(&self, id: TaskId) -> Vec<TaskId> {
        self.index.open_blockers(id)
    }

    /// True if any agent may claim it now.
    pub fn is_ready(&self, task: &Task) -> bool {
        self.index.is_ready(task.id)
    }

    /// Edges written on one side only, although both tasks are there: (blocker, dependent).
    pub fn half_edges(&self) -> Vec<(TaskId, TaskId)> {
        self.index.half_edges().iter().copied().collect()
    }
}
