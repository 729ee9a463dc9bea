//! Taking a task, and giving it back.

use crate::backend::Whose;
use crate::board::Board;
use crate::caller::Caller;
use crate::error::{BoardError, Refusal};
use crate::id::TaskId;
use crate::rules::claim::{Busy, ClaimRequest, Claimed, check_claim, start};
use crate::rules::needs::{Edited, Needs};
use crate::rules::next::Next;
use crate::task::{Status, Task, check_line};

impl Board {
    /// Claims task `id`: owner and status change in one step, or nothing does.
    pub fn claim(&self, id: TaskId, request: &ClaimRequest) -> Result<Claimed, BoardError> {
        self.claim_with(id, request, None)
    }

    /// Claims task `id` and says in the same step that it is done in the worktree `name`, which
    /// need not be there yet.
    pub fn claim_in(
        &self,
        id: TaskId,
        request: &ClaimRequest,
        name: &str,
    ) -> Result<Claimed, BoardError> {
        check_line("worktree", name)?;
        self.claim_with(id, request, Some(name))
    }

    fn claim_with(
        &self,
        id: TaskId,
        request: &ClaimRequest,
        worktree: Option<&str>,
    ) -> Result<Claimed, BoardError> {
        check_line("agent", &request.agent)?;
        let task = self.edit(
            id,
            &Needs::busy(request.check_busy, &request.agent),
            |index, task, now| {
                check_claim(index, task, request, Busy::OwnsUnfinished)?;
                let mut task = task.clone();
                start(&mut task, request, now);
                if worktree.is_some() {
                    task.set_worktree(worktree);
                }
                Ok(Edited::new("claim", task))
            },
        )?;
        Ok(Claimed::of(task))
    }

    /// Gives a task back: pending, no owner, no lease.
    pub fn release(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        self.edit(id, &Needs::nothing(), |_, task, _| {
            caller.check_token(task)?;
            if task.status == Status::Completed {
                return Err(BoardError::refused(task, Refusal::AlreadyResolved));
            }
            caller.check_owner(task)?;
            let mut task = task.clone();
            task.make_pending();
            Ok(Edited::new("release", task))
        })
    }

    /// Claims the best task the agent can have, with nothing in between for others to take.
    pub fn claim_next(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        check_line("agent", &request.agent)?;
        self.backend.claim_next(request)
    }

    /// Returns all unfinished tasks that `agent` owns; used when the agent is gone.
    pub fn unassign(&self, agent: &str) -> Result<Vec<Task>, BoardError> {
        self.backend.give_back(Whose::Agent(agent))
    }

    /// Returns all unfinished tasks that the run `run` holds; used when the run is gone.
    pub fn unassign_run(&self, run: &str) -> Result<Vec<Task>, BoardError> {
        self.backend.give_back(Whose::Run(run))
    }

    /// The same, without reading every file of the list: finds the tasks that the run has claimed
    /// through the board, and not a lease that a person wrote into a file by hand.
    pub fn release_run(&self, run: &str) -> Result<Vec<Task>, BoardError> {
        self.backend.give_back(Whose::ClaimedBy(run))
    }

    /// Returns the tasks whose leases have run out, as every change does first: for a process that
    /// waits for work while no process changes anything. True if there were any.
    pub fn return_overdue(&self) -> Result<bool, BoardError> {
        self.backend.return_overdue()
    }

    /// Extends the leases that the run `run` holds by a term from now on, and returns their tasks
    /// and tokens. An expired lease is not among them: its holder must stop.
    pub fn renew(&self, run: &str, milliseconds: i64) -> Result<Vec<(TaskId, u64)>, BoardError> {
        self.backend.renew(run, milliseconds)
    }
}
