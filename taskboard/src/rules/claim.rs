//! The rules of a claim.

use crate::error::{BoardError, Refusal};
use crate::facts::{Lease, LeaseTerm};
use crate::id::TaskId;
use crate::rules::index::Index;
use crate::task::{Status, Task};

/// The agent that wants a task, and its terms.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The agent that will own it.
    pub agent: String,
    /// True if the claim is refused while the agent has other unfinished work.
    pub check_busy: bool,
    /// The end of the claim without the agent; `None` if there is none.
    pub lease: Option<LeaseTerm>,
}

impl ClaimRequest {
    /// A claim without a lease, as a person makes it.
    pub fn new(agent: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            check_busy: false,
            lease: None,
        }
    }
}

/// A task that is now the caller's.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The claimed task.
    pub task: Task,
    /// To be shown with every later write, if the claim has a lease.
    pub token: Option<u64>,
}

impl Claimed {
    pub(crate) fn of(task: Task) -> Self {
        let token = task.lease().map(|lease| lease.token);
        Self { task, token }
    }
}

/// The rule that keeps an agent from taking a task that is not its own yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Any unfinished task it owns: an agent that names a task should first do its assigned tasks.
    OwnsUnfinished,
    /// A task in progress: `next` hands out assigned tasks first anyway, and one that is blocked
    /// must not keep its owner idle.
    IsWorking,
}

/// The rules of a claim, in the order in which they are checked.
pub(crate) fn check_claim(
    index: &Index,
    task: &Task,
    request: &ClaimRequest,
    busy: Busy,
) -> Result<(), BoardError> {
    let refused = |reason| Err(BoardError::refused(task, reason));
    let mine = task.owner.as_ref() == Some(&request.agent);
    if let Some(owner) = &task.owner
        && !mine
    {
        return refused(Refusal::AlreadyClaimed {
            owner: owner.clone(),
        });
    }
    if task.status == Status::Completed {
        return refused(Refusal::AlreadyResolved);
    }
    if mine && task.status == Status::InProgress {
        return Ok(());
    }
    if let Some(obstacle) = index.start_obstacle(task.id) {
        return refused(obstacle);
    }
    if request.check_busy {
        // Work that was assigned but not begun keeps an agent from taking more, but not from
        // beginning with it.
        let with = if mine || busy == Busy::IsWorking {
            in_progress(index, &request.agent, Some(task.id))
        } else {
            let agent = &request.agent;
            let mut all: Vec<TaskId> = index
                .working_on(agent)
                .chain(index.assigned_to(agent))
                .collect();
            all.sort_unstable();
            all
        };
        if !with.is_empty() {
            return refused(Refusal::AgentBusy {
                agent: request.agent.clone(),
                with,
            });
        }
    }
    Ok(())
}

/// Owner, status and lease of a claim.
pub(crate) fn start(task: &mut Task, request: &ClaimRequest, now_ms: i64) {
    let again = task.owner.as_ref() == Some(&request.agent) && task.status == Status::InProgress;
    task.owner = Some(request.agent.clone());
    task.status = Status::InProgress;
    match &request.lease {
        Some(term) => {
            let (run, expires_at) = match term {
                LeaseTerm::Milliseconds(ms) => (None, Some(now_ms.saturating_add(*ms))),
                LeaseTerm::Run(run) => (Some(run.clone()), None),
                LeaseTerm::Heartbeat { run, milliseconds } => (
                    Some(run.clone()),
                    Some(now_ms.saturating_add(*milliseconds)),
                ),
            };
            // Growing even if the clock was set back since the last one.
            let token = (task.last_token() + 1).max(u64::try_from(now_ms).unwrap_or(0));
            task.set_lease(&Lease {
                agent: request.agent.clone(),
                run,
                token,
                expires_at,
            });
        }
        None if again => {}
        None => task.end_lease(),
    }
}

pub(crate) fn in_progress(index: &Index, agent: &str, except: Option<TaskId>) -> Vec<TaskId> {
    index
        .working_on(agent)
        .filter(|id| Some(*id) != except)
        .collect()
}

/// True if `next` may give this task to the agent.
pub(crate) fn pickable(index: &Index, id: TaskId, agent: &str) -> bool {
    let owner = index.get(id).and_then(|slim| slim.owner.as_deref());
    index.may_start(id) && owner.is_none_or(|owner| owner == agent)
}
