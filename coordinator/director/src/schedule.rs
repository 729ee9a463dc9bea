//! Decides what happens next: a pure function from the known state to a plan.
//!
//! No clock, no disk, no model. The same snapshot gives the same answer, so a table tests every
//! policy, and properties of all snapshots test what must never happen.

use std::collections::{BTreeMap, BTreeSet};

use runs::KnownWorker;
use taskboard::{Dependencies, Status, TaskId, rank};

use super::inputs::{Limits, SeatView, TaskView, Tasks, Waiting, overlap};

/// The inputs of scheduling.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snapshot<'a> {
    /// The board.
    pub tasks: &'a Tasks,
    /// Tasks whose files cannot be read: their dependents wait.
    pub unreadable: &'a BTreeSet<TaskId>,
    /// Files that finished work changed which has still to land: a task on them would start from
    /// their old content.
    pub held: &'a [Vec<String>],
    /// Tasks that do not start for now.
    pub resting: &'a BTreeSet<TaskId>,
    /// The slots.
    pub seats: &'a [SeatView],
    /// The runtime of each agent type that has one.
    pub needs: &'a BTreeMap<String, String>,
    /// The labels of this machine that not every machine has.
    pub labels: &'a BTreeSet<String>,
    /// The workers on the same board.
    pub workers: &'a [KnownWorker],
    /// A number that varies the choice between equally good tasks, because other machines choose
    /// from the same tasks at the same time.
    pub spread: Option<u64>,
    /// The limits to keep.
    pub limits: Limits,
    /// The reason why nothing may start now, such as a quota, a budget, or the end.
    pub closed: Option<&'a str>,
    /// Number of successes since the start.
    pub succeeded: usize,
    /// Number of tasks that failed for good.
    pub failed: usize,
}

impl<'a> Snapshot<'a> {
    fn waiting(&self) -> Waiting<'a> {
        Waiting {
            tasks: self.tasks,
            unreadable: self.unreadable,
        }
    }
}

/// The actions to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The tasks to start, each with the number of its slot.
    pub start: Vec<(TaskId, usize)>,
    /// Tasks that are marked done and whose checks are to run.
    pub prove: Vec<TaskId>,
    /// The state after these actions.
    pub stand: Stand,
}

/// The overall state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    /// An agent works.
    Working,
    /// No agent works, but a task can start later: when the gate opens, or a slot is available.
    Waiting(String),
    /// No agent works here, but other machines do the remaining tasks, or can do them.
    Elsewhere,
    /// There are no tasks.
    NoTasks,
    /// No agent works, and every task is completed.
    AllDone,
    /// No agent works, and no task can start unless a person acts.
    Stuck(Vec<(TaskId, Why)>),
    /// No agent works, and no task will start because too many failed.
    GivenUp(String),
}

/// The reason why a task cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It failed too often.
    Parked,
    /// It waits for these tasks.
    Blocked(Vec<TaskId>),
    /// It belongs to an agent that ccb does not direct.
    Owned(String),
    /// It needs a model, and no agent has one.
    NeedsModel,
    /// It needs a machine with these labels.
    Needs(Vec<String>),
}

/// Decides what happens next.
pub(super) fn schedule(snapshot: &Snapshot<'_>) -> Plan {
    let busy = snapshot
        .seats
        .iter()
        .filter(|seat| seat.at.is_some())
        .count();
    let given_up = given_up(snapshot);
    let mut start = Vec::new();
    let mut waiting = snapshot.closed.map(str::to_owned);
    if snapshot.closed.is_none() && given_up.is_none() {
        let mut most = snapshot.limits.at_once;
        if let Some(canary) = snapshot.limits.canary.filter(|n| snapshot.succeeded < *n) {
            most = most.min(canary - snapshot.succeeded);
        }
        let (begun, held_back) = choose(snapshot, most.saturating_sub(busy));
        start = begun;
        if held_back {
            waiting = Some("nobody is free".into());
        }
    }
    let prove: Vec<TaskId> = match snapshot.closed {
        Some(_) => Vec::new(),
        None => {
            let reported = snapshot.tasks.values().filter(|task| task.reported);
            reported.map(|task| task.id).collect()
        }
    };
    let stand = if busy + start.len() + prove.len() > 0 {
        Stand::Working
    } else if let Some(why) = given_up {
        Stand::GivenUp(why)
    } else {
        at_rest(snapshot, waiting)
    };
    Plan {
        start,
        prove,
        stand,
    }
}

/// The reason to give up, if too many tasks failed.
fn given_up(snapshot: &Snapshot<'_>) -> Option<String> {
    let Limits {
        canary,
        max_failures,
        ..
    } = snapshot.limits;
    if canary.is_some_and(|n| snapshot.succeeded < n) && snapshot.failed > 0 {
        return Some("one of the first tasks failed".into());
    }
    let most = max_failures.filter(|most| snapshot.failed >= *most)?;
    Some(match most {
        0 | 1 => "a task failed".into(),
        most => format!("{most} tasks failed"),
    })
}

/// Chooses tasks for at most `room` slots. The flag is true if a task was ready but no slot was
/// free.
fn choose(snapshot: &Snapshot<'_>, room: usize) -> (Vec<(TaskId, usize)>, bool) {
    let mut free: Vec<usize> = (0..snapshot.seats.len())
        .filter(|seat| snapshot.seats[*seat].available && snapshot.seats[*seat].at.is_none())
        .collect();
    let waiting = snapshot.waiting();
    let mut ready = snapshot
        .tasks
        .values()
        .filter(|task| waiting.can_start(task.id, task.status, task.parked))
        .filter(|task| obstacle(task, snapshot).is_none());
    if room == 0 || free.is_empty() {
        return (Vec::new(), ready.next().is_some());
    }
    let mut ready: Vec<&TaskView> = ready.collect();
    if ready.len() > 1 {
        let chains = waiting.chains();
        ready.sort_by_cached_key(|task| {
            let chain = chains.get(&task.id).copied().unwrap_or(1);
            let (priority, chain, id) = rank(task.id, task.priority, chain);
            let place = snapshot.spread.map(|seed| scattered(seed, task.id));
            let rank = std::cmp::Reverse((priority, chain));
            (task.owner.is_none(), rank, place, id.0)
        });
    }
    let at_work = snapshot.seats.iter().filter_map(|seat| seat.at);
    let mut taken: Vec<&[String]> = at_work
        .filter_map(|id| snapshot.tasks.get(&id))
        .map(|task| task.paths.as_slice())
        .chain(snapshot.held.iter().map(Vec::as_slice))
        .collect();
    let mut start = Vec::new();
    let mut held_back = false;
    for task in ready {
        if snapshot.resting.contains(&task.id) {
            held_back = true;
            continue;
        }
        if start.len() == room || free.is_empty() {
            held_back = true;
            break;
        }
        let alone = snapshot.limits.exclusive_paths;
        let in_the_way = alone && taken.iter().any(|paths| overlap(paths, &task.paths));
        // A command takes a slot that runs only commands, and leaves the others to tasks that need
        // a model.
        let fitting =
            (0..free.len()).filter(|at| suits(&snapshot.seats[free[*at]], task, snapshot));
        let seat =
            fitting.min_by_key(|at| task.has_command && !snapshot.seats[free[*at]].commands_only);
        match seat {
            Some(at) if !in_the_way => {
                start.push((task.id, free.remove(at)));
            }
            _ => held_back = true,
        }
        // A task that waits for its turn keeps its files: otherwise later tasks could pass it for
        // ever.
        taken.push(&task.paths);
    }
    (start, held_back)
}

/// True if this slot can be given this task.
fn suits(seat: &SeatView, task: &TaskView, snapshot: &Snapshot<'_>) -> bool {
    let whose = match &task.owner {
        None => true,
        Some(owner) => seat.name.as_deref() == Some(owner),
    };
    // If no slot has the runtime of an agent type, every slot can start it.
    let needed = task
        .agent_type
        .as_ref()
        .and_then(|name| snapshot.needs.get(name));
    let needed = needed.filter(|_| !task.has_command);
    let mut runtimes = snapshot.seats.iter().map(|seat| seat.runtime.as_ref());
    let needed = needed.filter(|needed| runtimes.any(|runtime| runtime == Some(needed)));
    let fits = needed.is_none() || seat.runtime.as_ref() == needed;
    whose && fits && (task.has_command || !seat.commands_only)
}

/// A number that looks random and is the same each time.
fn scattered(seed: u64, id: TaskId) -> u64 {
    store::fingerprint(format!("{seed} {id}").as_bytes())
}

/// The reason why no slot will ever begin an open, unblocked task.
fn obstacle(task: &TaskView, snapshot: &Snapshot<'_>) -> Option<Why> {
    let ours = |owner: &String| {
        let mut seats = snapshot.seats.iter();
        seats.any(|seat| seat.name.as_ref() == Some(owner))
    };
    if let Some(owner) = &task.owner
        && !ours(owner)
    {
        return Some(Why::Owned(owner.clone()));
    }
    let missing = task.needs.iter();
    let missing = missing.filter(|label| !snapshot.labels.contains(*label));
    let missing: Vec<String> = missing.cloned().collect();
    if !missing.is_empty() {
        return Some(Why::Needs(missing));
    }
    let suited = snapshot
        .seats
        .iter()
        .any(|seat| suits(seat, task, snapshot));
    (!suited).then_some(Why::NeedsModel)
}

/// True if a worker on the same board has all that the task needs.
fn a_worker_can(task: &TaskView, snapshot: &Snapshot<'_>) -> bool {
    let has_all = |worker: &KnownWorker| {
        let mut needs = task.needs.iter();
        needs.all(|label| worker.labels.contains(label))
    };
    snapshot.workers.iter().any(has_all)
}

/// The state when no agent works and nothing starts.
fn at_rest(snapshot: &Snapshot<'_>, waiting: Option<String>) -> Stand {
    let open: Vec<&TaskView> = snapshot
        .tasks
        .values()
        .filter(|task| !task.is_done())
        .collect();
    if snapshot.tasks.is_empty() && snapshot.unreadable.is_empty() {
        return Stand::NoTasks;
    }
    if open.is_empty() {
        return Stand::AllDone;
    }
    let mut stuck = Vec::new();
    for task in &open {
        let why = if task.reported {
            None
        } else if task.parked {
            Some(Why::Parked)
        } else if task.status == Status::InProgress && task.expires {
            // The owner will finish it at some time, or lose it.
            return Stand::Elsewhere;
        } else if task.status == Status::InProgress {
            let owner = task.owner.clone();
            Some(Why::Owned(owner.unwrap_or_else(|| "somebody".into())))
        } else {
            match snapshot.waiting().open_blockers(task.id) {
                none if none.is_empty() => obstacle(task, snapshot),
                open => Some(Why::Blocked(open)),
            }
        };
        match why {
            Some(Why::Needs(_)) if a_worker_can(task, snapshot) => return Stand::Elsewhere,
            Some(why) => stuck.push((task.id, why)),
            None => {
                let why = waiting.unwrap_or_else(|| "nobody is available".into());
                return Stand::Waiting(why);
            }
        }
    }
    Stand::Stuck(stuck)
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
