//! Taking a task, and giving it back.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use store::atomic::Durability;

use crate::board::{Board, Caller};
use crate::change::{Change, Edited, Turn, at_once, no_queue};
use crate::error::{BoardError, Refusal};
use crate::id::TaskId;
use crate::index::{Index, Slim};
use crate::live::Loaded;
use crate::section::{ListDir, Section, Stop};
use crate::snapshot::Entry;
use crate::task::{Lease, Status, Task, check_line};

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

/// How long other processes' announcements are respected when there is nothing else to take.
/// Longer than a claim takes on a slow disk; what counts in the end is who writes first.
const COURTESY: Duration = Duration::from_secs(1);

/// How many processes are under way with a durable `next` at once. Enough to share the disk's
/// work; more would only wait for each other's turn.
pub(crate) const GATES: u32 = 16;

impl Board {
    /// Claims task `id`: owner and status change in one step, or nothing does.
    pub fn claim(&self, id: TaskId, request: &ClaimRequest) -> Result<Claimed, BoardError> {
        check_line("agent", &request.agent)?;
        self.take(request, Busy::OwnsUnfinished, |section| {
            Ok(Ok::<_, BoardError>(section.read(id)?))
        })?
    }

    /// Claims the best task the agent can have, with nothing in between for others to take.
    pub fn claim_next(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        check_line("agent", &request.agent)?;
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if self.durability() == Durability::Full {
            self.create_dirs()?;
            // Only a means of keeping the crowd small: who waits for too long goes through.
            if let Err(error) = gate.acquire(&self.lock_name(), COURTESY) {
                tracing::debug!(%error, "going on without the gate");
            }
        }
        let claimed = self.take_next(request);
        gate.release();
        Ok(match claimed? {
            Ok(claimed) => Next::Claimed(Box::new(claimed)),
            Err(other) => other,
        })
    }

    fn take_next(&self, request: &ClaimRequest) -> Result<Result<Claimed, Next>, BoardError> {
        let started = Instant::now();
        self.take(request, Busy::IsWorking, |section| {
            if request.check_busy {
                let busy = in_progress(section.index(), &request.agent, None);
                if !busy.is_empty() {
                    return Ok(Err(Next::Busy(busy)));
                }
            }
            choose_next(section, &request.agent, started.elapsed() < COURTESY)
        })
    }

    fn take<X>(
        &self,
        request: &ClaimRequest,
        busy: Busy,
        choose: impl FnMut(&mut Section<'_>) -> Result<Result<Entry, X>, Stop>,
    ) -> Result<Result<Claimed, X>, BoardError> {
        let now = self.now_ms();
        let changed = self.change(Change {
            list: request.list_dir(),
            turn: match busy {
                Busy::OwnsUnfinished => at_once,
                Busy::IsWorking => in_order,
            },
            queue: match busy {
                Busy::OwnsUnfinished => no_queue,
                Busy::IsWorking => announced_better,
            },
            choose,
            edit: |index: &Index, task: &Task| {
                check_claim(index, task, request, busy)?;
                let mut task = task.clone();
                start(&mut task, request, now);
                Ok(Edited { op: "claim", task })
            },
            then: |_: &Index| (),
        })?;
        Ok(changed.map(|(task, ())| {
            let token = task.lease().map(|lease| lease.token);
            Claimed { task, token }
        }))
    }

    /// Gives a task back: pending, no owner, no lease.
    pub fn release(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        let changed = self.change(Change {
            list: ListDir::Leave,
            turn: at_once,
            queue: no_queue,
            choose: |section: &mut Section<'_>| Ok(Ok::<_, BoardError>(section.read(id)?)),
            edit: |_: &Index, task: &Task| {
                caller.check_token(task)?;
                if task.status == Status::Completed {
                    return Err(BoardError::refused(task, Refusal::AlreadyResolved));
                }
                caller.check_owner(task)?;
                let mut task = task.clone();
                task.make_pending();
                Ok(Edited {
                    op: "release",
                    task,
                })
            },
            then: |_: &Index| (),
        })?;
        changed.map(|(task, ())| task)
    }

    /// Returns everything unfinished that `agent` owns; used when the agent is gone.
    pub fn unassign(&self, agent: &str) -> Result<Vec<Task>, BoardError> {
        self.return_tasks(|slim| slim.owner.as_deref() == Some(agent))
    }

    /// Returns everything unfinished that the run `run` holds; used when the run is gone.
    pub fn unassign_run(&self, run: &str) -> Result<Vec<Task>, BoardError> {
        self.return_tasks(|slim| slim.run.as_deref() == Some(run))
    }

    fn return_tasks(&self, belongs: impl Fn(&Slim) -> bool) -> Result<Vec<Task>, BoardError> {
        // Kept across attempts: what an interrupted attempt returned is returned.
        let mut returned = Vec::new();
        self.section(|section| {
            // Whoever is gone is gone: nothing of its may be overlooked.
            section.scan(&HashMap::new())?;
            let open = |slim: &Slim| slim.status != Status::Completed && belongs(slim);
            let ids: Vec<TaskId> = section
                .index()
                .iter()
                .filter(|(_, slim)| open(slim))
                .map(|(id, _)| id)
                .collect();
            for id in ids {
                let before = section.read(id)?;
                let mut task = before.task.clone();
                task.make_pending();
                section.stage_and_write("unassign", &before, task.clone(), ListDir::Leave)?;
                returned.push(task);
            }
            Ok(())
        })?;
        Ok(returned)
    }

    /// What can be claimed now, best first.
    pub fn ready(&self) -> Result<Vec<TaskId>, BoardError> {
        self.section(|section| Ok(section.live().index.ready()))
    }
}

/// Picks the best task for `agent`, makes sure that the files say so too, and announces it.
fn choose_next(
    section: &mut Section<'_>,
    agent: &str,
    courteous: bool,
) -> Result<Result<Entry, Next>, Stop> {
    let mut looked = false;
    let mut check_alive = false;
    loop {
        // Who writes at once needs no order among the slow ones: it simply comes first.
        let reserved = if courteous && section.board.durability() == Durability::Full {
            section.live().slots.reserved(check_alive)?
        } else {
            HashSet::new()
        };
        if let Some(id) = section.live().index.pick(agent, &reserved) {
            match section.read(id) {
                Ok(before) if pickable(section.index(), id, agent) => {
                    if section.board.durability() == Durability::Full {
                        section.live().slots.reserve(id)?;
                    }
                    return Ok(Ok(before));
                }
                // The index was wrong, and has been put right.
                Ok(_) | Err(BoardError::NotFound { .. } | BoardError::Corrupt { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
        }
        if !reserved.is_empty() && !check_alive {
            check_alive = true;
        } else if !reserved.is_empty()
            && section.live().index.pick(agent, &HashSet::new()).is_some()
        {
            // All that is left is about to be taken by others. Whether it is will be known soon.
            let path = section.board.dir().join(".ccb/slots");
            return Err(Stop::Retry {
                path,
                age: Duration::ZERO,
            });
        } else if !looked {
            // Before saying that there is nothing, look whether a hand edit changed that.
            looked = true;
            section.scan(&HashMap::new())?;
        } else {
            return Ok(Err(Next::Nothing(why_nothing(section.index()))));
        }
    }
}

/// Tasks are handed out in order of rank, as if one process did it all. So who has prepared
/// the claim of one waits for those who have announced the claim of a better one.
fn in_order(section: &mut Section<'_>, edited: &Edited, waited: Duration) -> Result<Turn, Stop> {
    let agent = edited.task.owner.as_deref().unwrap_or_default();
    let best = section.live().index.pick(agent, &HashSet::new());
    if best == Some(edited.task.id) {
        return Ok(Turn::Now);
    }
    let announced = match best {
        Some(better) if waited < COURTESY => {
            // Whether its announcer lives is asked only when it takes unusually long.
            let check_alive = waited > COURTESY / 20;
            section
                .live()
                .slots
                .reserved(check_alive)?
                .contains(&better)
        }
        _ => false,
    };
    Ok(if announced { Turn::Later } else { Turn::Never })
}

/// How many tasks better than `id` others have announced.
fn announced_better(live: &mut Loaded, id: TaskId) -> Result<usize, BoardError> {
    let announced = live.slots.reserved(false)?;
    Ok(announced
        .into_iter()
        .filter(|other| live.index.ranks_before(*other, id))
        .count())
}

fn pickable(index: &Index, id: TaskId, agent: &str) -> bool {
    let owner = index.get(id).and_then(|slim| slim.owner.as_deref());
    index.can_start(id) && owner.is_none_or(|owner| owner == agent)
}

/// What keeps an agent from taking a task that is not its own yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Anything unfinished it owns: whoever names a task should first do what is assigned.
    OwnsUnfinished,
    /// What it is working on: `next` hands out assigned tasks first anyway, and one that is
    /// blocked must not keep its owner idle.
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

fn why_nothing(index: &Index) -> Nothing {
    if index.all_completed() {
        Nothing::AllDone
    } else if index
        .iter()
        .all(|(_, slim)| slim.status != Status::InProgress)
        && !index.cycles().is_empty()
    {
        Nothing::Cycle
    } else {
        Nothing::NothingReady
    }
}

fn in_progress(index: &Index, agent: &str, except: Option<TaskId>) -> Vec<TaskId> {
    index
        .working_on(agent)
        .filter(|id| Some(*id) != except)
        .collect()
}
