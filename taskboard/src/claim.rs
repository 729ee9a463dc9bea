//! Taking a task, and giving it back.

use crate::board::{Board, Caller};
use crate::error::{BoardError, Refusal};
use crate::graph::Graph;
use crate::id::TaskId;
use crate::snapshot::Snapshot;
use crate::task::{Lease, Status, Task, check_line};
use crate::txn::{ListDir, Txn, all_completed};

/// Who wants a task, and on what terms.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The agent that will own it.
    pub agent: String,
    /// Refuse if the agent has other unfinished work.
    pub check_busy: bool,
    /// How the claim can end without the agent.
    pub lease: Option<LeaseTerm>,
}

/// What ends a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseTerm {
    /// Time.
    Milliseconds(i64),
    /// The end of the run with this id; whoever watches over runs returns its tasks.
    Run(String),
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

    fn list_dir(&self) -> ListDir {
        if self.check_busy {
            ListDir::Take
        } else {
            ListDir::Leave
        }
    }
}

/// A task that is now the caller's.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// As it is now.
    pub task: Task,
    /// To be shown with every later write, if the claim has a lease.
    pub token: Option<u64>,
}

/// The answer to "give me something to do".
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This.
    Claimed(Box<Claimed>),
    /// Nothing now.
    Nothing(Nothing),
    /// Finish this first.
    Busy(Vec<TaskId>),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// Every task is completed (or there is none).
    AllDone,
    /// What is left is being worked on, blocked, parked or assigned to others.
    NothingReady,
    /// What is left waits for itself in a circle.
    Cycle,
}

impl Nothing {
    /// A stable word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllDone => "all_done",
            Self::NothingReady => "nothing_ready",
            Self::Cycle => "cycle",
        }
    }
}

impl Board {
    /// Claims task `id`: owner and status change in one step, or nothing does.
    pub fn claim(&self, id: TaskId, request: &ClaimRequest) -> Result<Claimed, BoardError> {
        check_line("agent", &request.agent)?;
        self.transact(|txn| {
            check_claim(&txn.snapshot, id, request)?;
            take(txn, id, request)
        })
    }

    /// Claims the best task the agent can have, with nothing in between for others to take.
    pub fn claim_next(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        check_line("agent", &request.agent)?;
        self.transact(|txn| {
            if request.check_busy {
                let busy = in_progress(&txn.snapshot, &request.agent, None);
                if !busy.is_empty() {
                    return Ok(Next::Busy(busy));
                }
            }
            match pick(&txn.snapshot, &request.agent) {
                Some(id) => Ok(Next::Claimed(Box::new(take(txn, id, request)?))),
                None => Ok(Next::Nothing(why_nothing(&txn.snapshot))),
            }
        })
    }

    /// Gives a task back: pending, no owner, no lease.
    pub fn release(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        self.transact(|txn| {
            let task = txn.snapshot.require(id)?;
            caller.check_token(task)?;
            if task.status == Status::Completed {
                return Err(BoardError::refused(task, Refusal::AlreadyResolved).into());
            }
            caller.check_owner(task)?;
            let mut task = task.clone();
            task.make_pending();
            txn.write("release", task.clone(), ListDir::Leave)?;
            Ok(task)
        })
    }

    /// Returns everything unfinished that `agent` owns; used when the agent is gone.
    pub fn unassign(&self, agent: &str) -> Result<Vec<Task>, BoardError> {
        self.return_tasks(|task| task.owner.as_deref() == Some(agent))
    }

    /// Returns everything unfinished that the run `run` holds; used when the run is gone.
    pub fn unassign_run(&self, run: &str) -> Result<Vec<Task>, BoardError> {
        self.return_tasks(|task| task.lease().is_some_and(|l| l.run.as_deref() == Some(run)))
    }

    fn return_tasks(&self, belongs: impl Fn(&Task) -> bool) -> Result<Vec<Task>, BoardError> {
        // Kept across attempts: what an interrupted attempt returned is returned.
        let mut returned = Vec::new();
        self.transact(|txn| {
            let tasks: Vec<Task> = txn
                .snapshot
                .tasks()
                .filter(|task| task.status != Status::Completed && belongs(task))
                .cloned()
                .collect();
            for mut task in tasks {
                task.make_pending();
                txn.write("unassign", task.clone(), ListDir::Leave)?;
                returned.push(task);
            }
            Ok(())
        })?;
        Ok(returned)
    }
}

/// The rules of a claim, in the order in which they are checked.
pub(crate) fn check_claim(
    snapshot: &Snapshot,
    id: TaskId,
    request: &ClaimRequest,
) -> Result<(), BoardError> {
    let task = snapshot.require(id)?;
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
    if let Some(obstacle) = snapshot.start_obstacle(task) {
        return refused(obstacle);
    }
    if request.check_busy {
        // Work that was assigned but not begun keeps an agent from taking more, but not from
        // beginning with it.
        let with = if mine {
            in_progress(snapshot, &request.agent, Some(id))
        } else {
            unfinished(snapshot, &request.agent)
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

/// Makes the task the agent's. The rules have been checked.
pub(crate) fn take(
    txn: &mut Txn<'_>,
    id: TaskId,
    request: &ClaimRequest,
) -> Result<Claimed, crate::txn::Stop> {
    let mut task = txn.snapshot.require(id)?.clone();
    start(&mut task, request, txn.board.now_ms());
    txn.write("claim", task.clone(), request.list_dir())?;
    let token = task.lease().map(|lease| lease.token);
    Ok(Claimed { task, token })
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

/// The task `agent` should do next: one assigned to it, else the best ready one.
fn pick(snapshot: &Snapshot, agent: &str) -> Option<TaskId> {
    let graph = Graph::new(snapshot);
    let visible = || snapshot.tasks().filter(|task| !task.is_internal());
    let assigned = visible().filter(|t| t.owner.as_deref() == Some(agent) && snapshot.can_start(t));
    let best = graph.best(assigned);
    best.or_else(|| graph.best(visible().filter(|task| snapshot.is_ready(task))))
        .map(|t| t.id)
}

fn why_nothing(snapshot: &Snapshot) -> Nothing {
    if all_completed(snapshot).0 {
        Nothing::AllDone
    } else if snapshot
        .tasks()
        .all(|task| task.status != Status::InProgress)
        && !Graph::new(snapshot).cycles().is_empty()
    {
        Nothing::Cycle
    } else {
        Nothing::NothingReady
    }
}

fn in_progress(snapshot: &Snapshot, agent: &str, except: Option<TaskId>) -> Vec<TaskId> {
    owned(snapshot, agent, |task| {
        task.status == Status::InProgress && Some(task.id) != except
    })
}

fn unfinished(snapshot: &Snapshot, agent: &str) -> Vec<TaskId> {
    owned(snapshot, agent, |task| task.status != Status::Completed)
}

fn owned(snapshot: &Snapshot, agent: &str, filter: impl Fn(&Task) -> bool) -> Vec<TaskId> {
    snapshot
        .tasks()
        .filter(|task| task.owner.as_deref() == Some(agent) && filter(task))
        .map(|task| task.id)
        .collect()
}
