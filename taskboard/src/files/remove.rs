//! Taking tasks off the board.

use std::collections::{BTreeSet, HashMap};

use crate::board::{Board, Caller};
use crate::error::{BoardError, Refusal};
use crate::id::TaskId;
use crate::task::{Status, Task};

impl Board {
    /// Deletes a task and every mention of it. Returns what it was.
    pub fn delete(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.delete_in_tables(id, caller) {
            return done;
        }
        self.section(|section| {
            let task = section.read(id)?.task;
            check_delete(&task, caller)?;
            section.remove("delete", &BTreeSet::from([id]))?;
            Ok(task)
        })
    }

    /// Deletes all tasks; ids go on where they were. Returns how many there were.
    ///
    /// Refused while a task is in progress or a file is unreadable, unless forced; with
    /// force, unreadable files are set aside, not deleted.
    pub fn reset(&self, force: bool) -> Result<usize, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.reset_in_tables(force) {
            return done;
        }
        self.section(|section| {
            // Everything is about to go: better look at it first.
            section.scan(&HashMap::new())?;
            if !force {
                let busy = section
                    .index()
                    .iter()
                    .find(|(_, s)| s.status == Status::InProgress);
                if let Some((id, _)) = busy {
                    let task = &section.read(id)?.task;
                    let owner = task.owner.clone().unwrap_or_else(|| "nobody".into());
                    return Err(BoardError::refused(task, Refusal::AlreadyClaimed { owner }).into());
                }
                if let Some(id) = section.index().unreadable().keys().next().copied() {
                    section.read(id)?;
                }
            }
            let unreadable: Vec<TaskId> = section.index().unreadable().keys().copied().collect();
            let ids: BTreeSet<TaskId> = section.index().iter().map(|(id, _)| id).collect();
            if !ids.is_empty() || !unreadable.is_empty() {
                section.remove("reset", &ids)?;
            }
            // Last: while there are tasks, an unreadable one holds up what waits for it.
            for id in unreadable {
                self.set_aside(id)?;
                section.note_changed("reset", id)?;
            }
            Ok(ids.len())
        })
    }
}

/// The rules of a deletion.
pub(crate) fn check_delete(task: &Task, caller: &Caller) -> Result<(), BoardError> {
    caller.check_token(task)?;
    match task.status {
        Status::InProgress => caller.check_owner(task),
        Status::Pending | Status::Completed => Ok(()),
    }
}
