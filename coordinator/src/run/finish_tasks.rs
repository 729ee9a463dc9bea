//! The tasks of a run that has ended: completed, or free again with what went wrong.

use serde_json::Value;
use swarm::run::{Exit, ExitReason, ExitStatus, Meta, Proof};
use taskboard::{Attempt, Board, BoardError, Caller, Hooks, Task, TaskId, Veto};

use super::engine::Agents;
use super::error::AgentError;
use super::launch::LaunchPlan;
use crate::progress::{Patience, Progress, judge};

/// A task whose agents are lost so often is parked: something about it kills them.
const LOST_AGENTS: usize = 10;

/// What became of a run's tasks.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Tasks that are free again.
    pub(super) returned: Vec<Task>,
    /// What is to be said about that.
    pub(super) note: Option<String>,
}

/// Completes the run's task if that was its job; gives back everything else it has.
pub(super) fn settle_tasks(
    agents: &Agents,
    meta: &Meta,
    exit: &Exit,
) -> Result<Settled, AgentError> {
    let board = agents.board();
    // A list nobody made is not made by looking.
    if !board.dir().is_dir() {
        return Ok(Settled::default());
    }
    let mut settled = Settled::default();
    if let Some(id) = meta.task_id.as_ref().and_then(|id| id.parse().ok()) {
        match settle_own(&board, id, meta, exit, &mut settled) {
            Ok(()) => {}
            // Somebody was faster, or it was taken away: then it is not ours to settle.
            Err(
                error @ (BoardError::Refused { .. }
                | BoardError::NotFound { .. }
                | BoardError::Vetoed { .. }),
            ) => tracing::warn!(%error, id = %id, "the task stays as it is"),
            Err(error) => return Err(error.into()),
        }
    }
    settled.returned.extend(board.unassign_run(&meta.agent_id)?);
    Ok(settled)
}

/// The task the run was started for.
fn settle_own(
    board: &Board,
    id: TaskId,
    meta: &Meta,
    exit: &Exit,
    settled: &mut Settled,
) -> Result<(), BoardError> {
    let caller = Caller {
        agent: meta.address().to_owned(),
        token: meta.token,
        force: false,
    };
    let prove = LaunchPlan::of(meta).prove;
    // A model says by itself what it has done, unless somebody wants to see it; a command
    // cannot.
    let ours = prove.is_some() || meta.runtime.kind == "shell";
    // One that was stopped, or may not go on for now, says nothing about the task; one that
    // reached its own limit does, where somebody counts.
    let told_nothing = match exit.reason {
        Some(ExitReason::Quota) => true,
        Some(ExitReason::Limit) => prove.is_none(),
        _ => false,
    };
    match exit.status {
        ExitStatus::Completed if ours => {
            let shown = Shown(exit.proof.as_ref().map(|proof| result(meta, proof)));
            board.complete(id, &caller, Some(&shown))?;
        }
        ExitStatus::Failed | ExitStatus::Lost if !told_nothing => {
            let attempt = Attempt {
                run: meta.life_id(),
                status: exit.status.as_str().to_owned(),
                why: exit.error.clone().unwrap_or_else(|| exit.text()),
                counts: exit.status == ExitStatus::Failed,
                // As the agent left it: whatever becomes of its tree comes later.
                tree: worktrees::fingerprint_of(&meta.cwd),
                at: String::new(),
            };
            let patience = prove.map_or(Patience::ENDLESS, |prove| Patience {
                failed: prove.max_attempts,
                lost: LOST_AGENTS,
            });
            let enough = |attempts: &[Attempt]| patience.is_over(attempts);
            let task = board.attempt_failed(id, &caller, &attempt, &enough)?;
            if let Progress::Stuck { times, .. } = judge(&task.attempts()) {
                settled.note = Some(format!(
                    "[no progress: {times} attempts at task #{id} failed the same way, and \
                     nothing changed in between]"
                ));
            }
            settled.returned.push(task);
        }
        _ => {}
    }
    Ok(())
}

/// What a task's result says about the run that did it.
fn result(meta: &Meta, proof: &Proof) -> Value {
    let mut result = serde_json::to_value(proof).unwrap_or_default();
    result["run"] = meta.life_id().into();
    if let (Some(tree), Some(_)) = (&meta.worktree, &proof.commit) {
        result["worktree"] = tree.name.clone().into();
    }
    result
}

/// Keeps what is there to show for a task as its result.
#[derive(Debug)]
struct Shown(Option<Value>);

impl Hooks for Shown {
    fn before_complete(&self, _: &Task) -> Result<Option<Value>, Veto> {
        Ok(self.0.clone())
    }
}
