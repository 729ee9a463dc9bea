//! Taking tasks off the board.

use std::collections::BTreeSet;

use crate::board::{Board, Caller};
use crate::error::{BoardError, Refusal};
use crate::id::TaskId;
use crate::task::{Status, Task};

impl Board {
    /// Deletes a task and every mention of it. Returns what it was.
    pub fn delete(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        self.transact(|txn| {
            let task = txn.snapshot.require(id)?.clone();
            caller.check_token(&task)?;
            if task.status == Status::InProgress {
                caller.check_owner(&task)?;
            }
            txn.remove("delete", &BTreeSet::from([id]))?;
            Ok(task)
        })
    }

    /// Deletes all tasks; ids go on where they were. Returns how many there were.
    ///
    /// Refused while a task is in progress or a file is unreadable, unless forced; with
    /// force, unreadable files are set aside, not deleted.
    pub fn reset(&self, force: bool) -> Result<usize, BoardError> {
        self.transact(|txn| {
            if !force {
                if let Some(task) = txn
                    .snapshot
                    .tasks()
                    .find(|t| t.status == Status::InProgress)
                {
                    let owner = task.owner.clone().unwrap_or_else(|| "nobody".into());
                    return Err(BoardError::refused(task, Refusal::AlreadyClaimed { owner }).into());
                }
                if let Some(id) = txn.snapshot.unreadable().keys().next() {
                    txn.snapshot.require(*id)?;
                }
            }
            let unreadable: Vec<TaskId> = txn.snapshot.unreadable().keys().copied().collect();
            let ids: BTreeSet<TaskId> = txn.snapshot.tasks().map(|task| task.id).collect();
            if !ids.is_empty() || !unreadable.is_empty() {
                txn.remove("reset", &ids)?;
            }
            // Last: while there are tasks, an unreadable one holds up what waits for it.
            for id in unreadable {
                self.set_aside(id)?;
                txn.snapshot.take_out(id);
            }
            Ok(ids.len())
        })
    }
}
