//! The check that proves a task.

use crate::board::Board;
use crate::error::{BoardError, Refusal};
use crate::record::{changed_check, unclear_reason};
use crate::task::Task;

impl Board {
    /// The command that proves that `task` is done, as recorded when an authorised agent or person
    /// set it. Refused, and the task parked, if the task's file has another check.
    pub fn check_of(&self, task: &Task) -> Result<Option<String>, BoardError> {
        let (id, found) = (task.id, task.verify_command());
        let record = self.backend.record(id)?;
        let reason = match (record, unclear_reason(&self.name, task)) {
            (_, Some(reason)) => reason,
            (Some(record), None) if !record.allows(found) => {
                changed_check(&self.name, task, record.verify.as_deref())
            }
            _ => return Ok(found.map(str::to_owned)),
        };
        // Parking only shows the trouble in lists; the refusal below is what counts.
        if let Err(error) = self.backend.dispute(task) {
            tracing::warn!(%id, %error, "its check was changed, and it is not parked");
        }
        Err(BoardError::refused(task, Refusal::Parked { reason }))
    }

    /// True if the board itself recorded the proof of a completed task, as far as there is a
    /// record.
    pub fn believes(&self, task: &Task) -> Result<bool, BoardError> {
        let record = self.backend.record(task.id)?;
        Ok(record
            .is_none_or(|record| record.allows(task.verify_command()) && record.believes(task)))
    }
}
