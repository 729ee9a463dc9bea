//! Finishing a task.

use crate::board::Board;
use crate::caller::Caller;
use crate::error::BoardError;
use crate::facts::TaskResult;
use crate::hooks::Hooks;
use crate::id::TaskId;
use crate::rules::complete::{Completed, finish};
use crate::rules::edit::Update;
use crate::rules::index::Index;
use crate::rules::needs::Needs;
use crate::task::Task;

impl Board {
    /// Completes task `id`, asking `hooks` first.
    pub fn complete(
        &self,
        id: TaskId,
        caller: &Caller,
        hooks: Option<&dyn Hooks>,
    ) -> Result<Completed, BoardError> {
        self.complete_with(id, caller, hooks, &Update::default())
    }

    /// Completes task `id` and makes the changes of `update` in the same step.
    pub(super) fn complete_with(
        &self,
        id: TaskId,
        caller: &Caller,
        hooks: Option<&dyn Hooks>,
        update: &Update,
    ) -> Result<Completed, BoardError> {
        let Some(hooks) = hooks else {
            return self.commit_completion(id, caller, update, None, None);
        };
        // The hook must have seen exactly what is completed. Others may edit the task while
        // it runs; then it is asked once more about the new version.
        for last_try in [false, true] {
            // The same steps as a change, so that the same rules meet the same board as without
            // hooks: expired leases are returned and interrupted changes finished.
            let (shown, version) = self.backend.completable(id, caller)?;
            let result = hooks.before_complete(&shown)?;
            match self.commit_completion(id, caller, update, Some(version), result.as_ref()) {
                Err(BoardError::ChangedMeanwhile { .. }) if !last_try => {}
                outcome => return outcome,
            }
        }
        Err(BoardError::ChangedMeanwhile { id })
    }

    /// The task, if the rules allow `caller` to complete it now. Changes nothing.
    pub fn may_complete(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        Ok(self.backend.completable(id, caller)?.0)
    }

    fn commit_completion(
        &self,
        id: TaskId,
        caller: &Caller,
        update: &Update,
        shown: Option<u64>,
        result: Option<&TaskResult>,
    ) -> Result<Completed, BoardError> {
        let needs = Needs {
            edges: update.edges(id).collect(),
            ..Needs::nothing()
        };
        let mut finish = self.for_others(|index: &Index, task: &Task, _| {
            finish(index, task, caller, update, result)
        });
        self.backend.complete(id, shown, &needs, &mut finish)
    }
}
