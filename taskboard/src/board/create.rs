//! New tasks: one, or many that refer to each other.

use crate::board::Board;
use crate::error::BoardError;
use crate::hooks::Hooks;
use crate::id::TaskId;
use crate::rules::batch::{Batch, NewTask};
use crate::task::Task;

impl Board {
    /// Puts all of `batch` on the board, or none of it.
    pub fn create(
        &self,
        batch: &[NewTask],
        hooks: Option<&dyn Hooks>,
    ) -> Result<Vec<Task>, BoardError> {
        let batch = Batch::resolve(batch)?;
        if batch.len() == 0 {
            return Ok(Vec::new());
        }
        loop {
            let ids = self.backend.reserve(&batch)?;
            let tasks = self.draw_up(&batch, &ids, hooks)?;
            if self.backend.publish(&batch, &tasks)? {
                return Ok(tasks);
            }
        }
    }

    /// The tasks as they are to be, if the hooks agree.
    fn draw_up(
        &self,
        batch: &Batch<'_>,
        ids: &[TaskId],
        hooks: Option<&dyn Hooks>,
    ) -> Result<Vec<Task>, BoardError> {
        let mut tasks = batch.build(ids)?;
        for task in &mut tasks {
            task.remove_secrets(&self.secret_filter);
        }
        if let Some(hooks) = hooks {
            for task in &tasks {
                hooks.before_create(task)?;
            }
        }
        Ok(tasks)
    }
}
