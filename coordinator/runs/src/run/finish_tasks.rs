//! The tasks of a run that has ended: completed, or free again with what went wrong.

use std::time::{Duration, Instant};

use swarm::run::{Exit, ExitReason, ExitStatus, Meta, Proof, RunState};
use taskboard::{Attempt, Board, BoardError, Caller, Hooks, Task, TaskId, TaskResult, Veto};

use worktrees::TreeError;

use super::agents::Agents;
use super::error::AgentError;
use crate::progress::{Others, Patience, Progress, judge, lost_too_often};
use crate::results::result_name;

/// Pause before sending again to a remote that did not answer.
const SEND_AGAIN: Duration = Duration::from_millis(500);

/// The result of settling a run's tasks.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Tasks that are free again.
    pub(super) returned: Vec<Task>,
    /// The note for the parent, if there is one.
    pub(super) note: Option<String>,
    /// The reason of a hook that refused to complete the run's own task; `None` if no hook did.
    pub(super) vetoed: Option<String>,
    /// The reason of the board for refusing the run's change of its own task; `None` if it did not.
    pub(super) refused: Option<String>,
}

/// Completes the run's task if that was its job; gives back everything else it has.
pub(super) fn settle_tasks(
    agents: &Agents,
    meta: &Meta,
    exit: &Exit,
) -> Result<Settled, AgentError> {
    let board = agents.board();
    // Reading must not create a task list that does not exist.
    if !board.exists() {
        return Ok(Settled::default());
    }
    let mut settled = Settled::default();
    if let Some(id) = meta.task_id.as_ref().and_then(|id| id.parse().ok()) {
        match settle_own(agents, board, id, meta, exit, &mut settled) {
            Ok(()) => {}
            // Another process was faster, or the task was taken away: then this run must not settle
            // it.
            Err(
                error @ (BoardError::Refused { .. }
                | BoardError::NotFound { .. }
                | BoardError::ChangedMeanwhile { .. }),
            ) => {
                tracing::info!(%error, id = %id, "the task stays as it is");
                settled.refused = Some(error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    // Reading every file would make the end of each agent slower, the longer the list is.
    settled.returned.extend(board.release_run(&meta.agent_id)?);
    Ok(settled)
}

/// The task the run was started for.
fn settle_own(
    agents: &Agents,
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
    let prove = &meta.launch.prove;
    // A model reports its own result, unless a check is required; a command cannot.
    let ours = prove.is_some() || !meta.runtime.kind.has_model();
    // A run that was stopped, or may not continue for now, says nothing about the task; one that
    // reached its own limit does, where attempts are counted.
    let told_nothing = match exit.reason {
        Some(ExitReason::Quota) => true,
        Some(ExitReason::Limit) => prove.is_none(),
        _ => false,
    };
    // Before it counts as done: other machines build on it.
    let unpublished = match exit.status {
        ExitStatus::Completed if ours => published(agents, id, meta, exit).err(),
        _ => None,
    };
    let why = match exit.status {
        ExitStatus::Completed if unpublished.is_some() => {
            let unpublished = unpublished.as_ref();
            unpublished
                .map(|error| error.to_string())
                .unwrap_or_default()
        }
        ExitStatus::Completed if ours => {
            match complete_own(agents, board, id, (meta, exit), &caller)? {
                None => return Ok(()),
                Some(refusal) => {
                    settled.vetoed = Some(refusal.reason);
                    refusal.why
                }
            }
        }
        // Its agent has not run: the engine failed.
        ExitStatus::Lost if meta.host.is_none() => return Ok(()),
        ExitStatus::Failed | ExitStatus::Lost if !told_nothing => {
            exit.error.clone().unwrap_or_else(|| exit.text())
        }
        _ => return Ok(()),
    };
    let attempt = Attempt {
        run: meta.life_id(),
        status: match exit.was_killed() {
            true => Attempt::DIED.to_owned(),
            false => exit.status.as_str().to_owned(),
        },
        why,
        // A remote that is not there says nothing about the task.
        counts: exit.status != ExitStatus::Lost
            && !unpublished.as_ref().is_some_and(TreeError::is_passing),
        // As the agent left it: the worktree changes only later.
        tree: worktrees::fingerprint_of(&meta.cwd),
        at: String::new(),
        work: None,
    };
    let patience = prove.as_ref().map_or(Patience::ENDLESS, |prove| Patience {
        failed: prove.max_attempts,
        all: prove.all_attempts,
    });
    let others = |since: &str| others_since(agents, meta, since);
    let enough = |attempts: &[Attempt]| {
        let lost = || {
            prove
                .as_ref()
                .and_then(|_| lost_too_often(attempts, &others))
        };
        patience.is_over(attempts).or_else(lost)
    };
    let task = board.attempt_failed(id, &caller, &attempt, &enough)?;
    if let Progress::Stuck { times, .. } = judge(&task.attempts()) {
        settled.note = Some(format!(
            "[no progress: {times} attempts at task #{id} failed the same way, and nothing \
             changed in between]"
        ));
    }
    settled.returned.push(task);
    Ok(())
}

/// The reason why a finished task is not completed.
struct NotCompleted {
    /// The reason from the hook, or from the file that names hooks.
    reason: String,
    /// The same as what went wrong with the attempt.
    why: String,
}

/// Completes the task the run was started for, if hooks let it.
fn complete_own(
    agents: &Agents,
    board: &Board,
    id: TaskId,
    (meta, exit): (&Meta, &Exit),
    caller: &Caller,
) -> Result<Option<NotCompleted>, BoardError> {
    let source = agents.hook_source(meta.address(), Some(&meta.agent_id));
    let asked = source.before_complete();
    let shown = Shown {
        result: exit.proof.as_ref().and_then(|proof| result(meta, proof)),
        hooks: asked.as_ref().map(|hooks| hooks as &dyn Hooks),
    };
    match board.complete(id, caller, Some(&shown)) {
        Ok(_) => Ok(None),
        Err(BoardError::Vetoed { reason }) => Ok(Some(NotCompleted {
            why: format!("a hook said no: {reason}"),
            reason,
        })),
        Err(BoardError::BadSettings { reason }) => Ok(Some(NotCompleted {
            why: reason.clone(),
            reason,
        })),
        Err(error) => Err(error),
    }
}

/// Sends the run's commit to the remote that other machines get it from, if several share the
/// board. Retries a remote that does not answer for as long as the run holds its task.
fn published(agents: &Agents, id: TaskId, meta: &Meta, exit: &Exit) -> Result<(), TreeError> {
    let Some(place) = agents.shared() else {
        return Ok(());
    };
    let proof = exit.proof.as_ref().filter(|proof| proof.changed);
    let commit = proof.and_then(|proof| proof.commit.as_ref());
    let (Some(remote), Some(commit)) = (&place.remote, commit) else {
        return Ok(());
    };
    let trees = agents.trees().map_err(|error| TreeError::Invalid {
        what: "the repository".into(),
        why: error.to_string(),
    })?;
    let name = result_name(&meta.list, id, &meta.life_id());
    let until = Instant::now() + place.lease();
    loop {
        match trees.send_result(remote, &name, commit) {
            Err(error) if error.is_passing() && Instant::now() < until => {
                tracing::warn!(%error, "a result is sent again in a moment");
                std::thread::sleep(SEND_AGAIN);
            }
            published => return published,
        }
    }
}

/// The results of other tasks' agents since then.
fn others_since(agents: &Agents, own: &Meta, since: &str) -> Others {
    let mut others = Others::default();
    let Ok((listed, _)) = agents.list() else {
        return others;
    };
    for meta in listed.iter().map(|listed| &listed.meta) {
        let other = meta.task_id.is_some() && meta.task_id != own.task_id;
        if other && meta.ended_at.as_deref().is_some_and(|at| at >= since) {
            match meta.state {
                RunState::Lost => others.lost += 1,
                RunState::Completed => others.completed += 1,
                _ => {}
            }
        }
    }
    others
}

/// The part of a task's result that comes from the run that did it.
fn result(meta: &Meta, proof: &Proof) -> Option<TaskResult> {
    let tree = meta.worktree.as_ref().filter(|_| proof.commit.is_some());
    Some(TaskResult {
        run: Some(meta.life_id()),
        worktree: tree.map(|tree| tree.name.clone()),
        ..TaskResult::of(proof)?
    })
}

/// Keeps what is there to show for a task as its result, if hooks let it be completed.
struct Shown<'a> {
    result: Option<TaskResult>,
    hooks: Option<&'a dyn Hooks>,
}

impl Hooks for Shown<'_> {
    fn before_complete(&self, task: &Task) -> Result<Option<TaskResult>, Veto> {
        let said = match self.hooks {
            Some(hooks) => hooks.before_complete(task)?,
            None => None,
        };
        Ok(self.result.clone().or(said))
    }
}
