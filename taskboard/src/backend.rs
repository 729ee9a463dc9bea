//! The port behind which a board is kept: in files, in tables of a database, or in memory.
//!
//! The board checks what it is given, asks hooks and takes out secrets; the backend makes each change
//! happen whole or not at all. The rules are the same functions for all of them (`rules`). Every
//! change first returns the tasks whose lease ran out.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use crate::caller::Caller;
use crate::error::BoardError;
use crate::finding::Finding;
use crate::history::Change;
use crate::id::TaskId;
use crate::record::Record;
use crate::rules::batch::Batch;
use crate::rules::claim::ClaimRequest;
use crate::rules::complete::Completed;
use crate::rules::index::Slim;
use crate::rules::needs::{Edit, Needs};
use crate::rules::next::Next;
use crate::snapshot::Snapshot;
use crate::task::{Status, Task};

/// One list, wherever it is kept.
pub(crate) trait Backend: Any + Debug + Send + Sync {
    /// True if the list was changed before. Makes no list.
    fn exists(&self) -> bool;

    fn get(&self, id: TaskId) -> Result<Task, BoardError>;

    /// One task and those it waits for or that wait for it.
    fn around(&self, id: TaskId) -> Result<Snapshot, BoardError>;

    fn snapshot(&self) -> Result<Snapshot, BoardError>;

    /// The tasks that any agent can claim now, best first.
    fn ready(&self) -> Result<Vec<TaskId>, BoardError>;

    /// The board's own record about the check and result of a task; `None` if there is none.
    fn record(&self, id: TaskId) -> Result<Option<Record>, BoardError>;

    /// Parks a task that contradicts its record, where that can happen.
    fn dispute(&self, task: &Task) -> Result<(), BoardError> {
        let _ = task;
        Ok(())
    }

    /// Ids for new tasks. They are lost if the tasks are not published.
    fn reserve(&self, batch: &Batch<'_>) -> Result<Vec<TaskId>, BoardError>;

    /// Makes the tasks visible with both sides of their edges; `false` if an id was taken meanwhile,
    /// and the caller reserves others.
    fn publish(&self, batch: &Batch<'_>, tasks: &[Task]) -> Result<bool, BoardError>;

    /// Changes one task.
    fn edit(&self, id: TaskId, needs: &Needs<'_>, edit: Edit<'_>) -> Result<Task, BoardError>;

    /// The task and its version, if the rules allow `caller` to complete it now.
    fn completable(&self, id: TaskId, caller: &Caller) -> Result<(Task, u64), BoardError>;

    /// Changes one task to a completed one; refused if it has another version than `shown`.
    fn complete(
        &self,
        id: TaskId,
        shown: Option<u64>,
        needs: &Needs<'_>,
        finish: Edit<'_>,
    ) -> Result<Completed, BoardError>;

    /// Makes the second task wait for the first; returns the second.
    fn block(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError>;

    /// Makes the second task no longer wait for the first, which may be gone; returns the second.
    fn unblock(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError>;

    /// Deletes a task and every mention of it; returns what it was.
    fn delete(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError>;

    /// Deletes all tasks; returns how many there were.
    fn reset(&self, force: bool) -> Result<usize, BoardError>;

    fn claim_next(&self, request: &ClaimRequest) -> Result<Next, BoardError>;

    /// Makes unfinished tasks pending again; returns them.
    fn give_back(&self, whose: Whose<'_>) -> Result<Vec<Task>, BoardError>;

    /// Returns the tasks whose lease ran out, if no other process does; `true` if there were any.
    fn return_overdue(&self) -> Result<bool, BoardError> {
        Ok(false)
    }

    /// Extends the leases of a run that have not run out; returns their tasks and tokens.
    fn renew(&self, run: &str, milliseconds: i64) -> Result<Vec<(TaskId, u64)>, BoardError>;

    /// Follows the list from change number `since` on, or from now on.
    fn watch(&self, since: Option<u64>) -> Result<Box<dyn Feed + '_>, BoardError>;

    /// The number of the last change. Creates the list.
    fn last_change(&self) -> Result<u64, BoardError>;

    /// Opens a view that reads the list again and again, and changes nothing.
    fn glance(&self) -> Box<dyn Poll>;

    /// Searches for damage; repairs it if `fix`.
    fn doctor(&self, fix: bool) -> Result<Vec<Finding>, BoardError>;
}

/// The owner of the tasks to give back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// The tasks that the agent owns.
    Agent(&'a str),
    /// The tasks that the run holds.
    Run(&'a str),
    /// The tasks that the run has claimed through the board, without reading every file.
    ClaimedBy(&'a str),
}

impl Whose<'_> {
    /// True if it holds this task and has not finished it.
    pub(crate) fn holds(self, slim: &Slim) -> bool {
        let its = match self {
            Self::Agent(agent) => slim.owner.as_deref() == Some(agent),
            Self::Run(run) | Self::ClaimedBy(run) => slim.run.as_deref() == Some(run),
        };
        its && slim.status != Status::Completed
    }
}

/// A stream of numbered changes.
pub(crate) trait Feed: Debug + Send {
    /// The changes since the last call.
    fn poll(&mut self) -> Result<Vec<Change>, BoardError>;

    /// Waits until something may have changed.
    fn wait(&mut self, limit: Duration);

    /// The number of the last change returned.
    fn last(&self) -> u64;
}

/// A list that a view reads again and again.
pub(crate) trait Poll: Debug + Send {
    /// The present list; `None` if it is the same as at the last call.
    fn look(&mut self, now_ms: i64) -> Result<Option<Snapshot>, BoardError>;

    /// The changes since the last call, as far as the history goes back.
    fn history(&mut self) -> Result<Vec<Change>, BoardError>;
}
