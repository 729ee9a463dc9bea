//! Histories of calls to a task board: their form in workers' output, and the answers of a board
//! that takes one call at a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::linearize::{Call, Spec};

/// A call by one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardCall {
    pub agent: String,
    pub action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    Claim(u64),
    Next,
    Release(u64),
    Complete(u64),
    /// To pending, whichever agent completed it.
    Reopen(u64),
    Show(u64),
    /// The parts of a [`Next`](Self::Next) that other calls can come between; see [`in_parts`].
    Choose,
    Take,
    LetGo,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BoardAnswer {
    Took(u64),
    Chose(u64),
    Done,
    /// The kind of the refusal, and the owner or the blockers it names.
    Refused(String, Vec<String>),
    Shown(TaskState),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskState {
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
    pub owner: Option<String>,
}

/// One line of a worker's output. Times are of the machine's monotonic clock.
#[derive(Debug, Serialize, Deserialize)]
pub enum Line {
    /// The worker has opened the board and waits for the end of its input.
    Ready,
    Invoke {
        call: BoardCall,
        at: u64,
    },
    Return {
        answer: BoardAnswer,
        at: u64,
    },
}

/// Nanoseconds, comparable across processes.
pub fn monotonic_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The calls in a worker's output; the last one has no answer if the worker died in it, which
/// was before `gone`.
pub fn calls_of(lines: &[Line], gone: u64) -> Vec<Call<BoardCall, BoardAnswer>> {
    let mut calls: Vec<Call<BoardCall, BoardAnswer>> = Vec::new();
    for line in lines {
        match line {
            Line::Ready => {}
            Line::Invoke { call, at } => calls.push(Call {
                op: call.clone(),
                invoked: *at,
                returned: gone,
                answer: None,
            }),
            Line::Return { answer, at } => {
                let call = calls.last_mut().expect("a return follows an invocation");
                call.returned = *at;
                call.answer = Some(answer.clone());
            }
        }
    }
    calls
}

/// The same history with every `next` in parts, as a database carries it out: a claim chooses the
/// best task that no other claim has chosen, and others see a moment later that it is taken. No
/// task is ready if others have chosen all of them. Every other change waits for the claims under
/// way.
pub fn in_parts(history: Vec<Call<BoardCall, BoardAnswer>>) -> Vec<Call<BoardCall, BoardAnswer>> {
    let parts = |call: Call<BoardCall, BoardAnswer>| {
        let part = |action, answer| Call {
            op: BoardCall {
                agent: call.op.agent.clone(),
                action,
            },
            answer,
            ..call
        };
        match (&call.op.action, &call.answer) {
            (Action::Next, Some(BoardAnswer::Took(id))) => vec![
                part(Action::Choose, Some(BoardAnswer::Chose(*id))),
                part(Action::Take, Some(BoardAnswer::Took(*id))),
            ],
            (Action::Next, None) => [Action::Choose, Action::Take, Action::LetGo]
                .map(|action| part(action, None))
                .into(),
            _ => vec![call],
        }
    };
    history.into_iter().flat_map(parts).collect()
}

/// A board whose tasks wait for each other as `blocked_by` says; all of it is one object,
/// so that what a call says about other tasks (blockers, "nothing ready") is checked too.
#[derive(Debug)]
pub struct BoardSpec {
    pub blocked_by: BTreeMap<u64, Vec<u64>>,
}

type Tasks = BTreeMap<u64, TaskState>;

/// The tasks of a board, and those chosen by claims under way, by agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoardState {
    tasks: Tasks,
    chosen: BTreeMap<String, u64>,
}

impl BoardSpec {
    fn open_blockers(&self, state: &Tasks, id: u64) -> Vec<u64> {
        let blockers = self.blocked_by[&id].iter().copied();
        blockers
            .filter(|blocker| state[blocker].status != "completed")
            .collect()
    }

    /// The length of the longest chain of unfinished tasks that starts with `id`.
    fn chain(&self, state: &Tasks, id: u64) -> usize {
        if state[&id].status == "completed" {
            return 0;
        }
        let dependents = self
            .blocked_by
            .iter()
            .filter(|(_, blockers)| blockers.contains(&id));
        1 + dependents
            .map(|(dependent, _)| self.chain(state, *dependent))
            .max()
            .unwrap_or(0)
    }

    /// The best one that is ready and not among `chosen`.
    fn next(&self, state: &Tasks, chosen: &[u64]) -> Option<u64> {
        let ready = |id: &u64| {
            if chosen.contains(id) {
                return false;
            }
            let free = state[id].status == "pending" && state[id].owner.is_none();
            free && self.open_blockers(state, *id).is_empty()
        };
        let ids = self.blocked_by.keys().copied().filter(ready);
        ids.min_by_key(|id| (std::cmp::Reverse(self.chain(state, *id)), *id))
    }

    /// One part of a `next`, if it is one. A part that is not possible now returns an answer that
    /// no call got.
    fn part(&self, state: &mut BoardState, call: &BoardCall) -> Option<BoardAnswer> {
        let not_now = BoardAnswer::Refused("not_now".into(), Vec::new());
        Some(match call.action {
            Action::Choose => {
                let chosen: Vec<u64> = state.chosen.values().copied().collect();
                match self.next(&state.tasks, &chosen) {
                    Some(id) if !state.chosen.contains_key(&call.agent) => {
                        state.chosen.insert(call.agent.clone(), id);
                        BoardAnswer::Chose(id)
                    }
                    _ => not_now,
                }
            }
            Action::Take => match state.chosen.remove(&call.agent) {
                Some(id) => {
                    let taken = TaskState {
                        status: "in_progress".into(),
                        owner: Some(call.agent.clone()),
                    };
                    state.tasks.insert(id, taken);
                    BoardAnswer::Took(id)
                }
                None => not_now,
            },
            Action::LetGo => match state.chosen.remove(&call.agent) {
                Some(_) => BoardAnswer::Done,
                None => not_now,
            },
            Action::Show(_) => return None,
            Action::Next if state.chosen.is_empty() => return None,
            Action::Next => {
                let chosen: Vec<u64> = state.chosen.values().copied().collect();
                match self.next(&state.tasks, &chosen) {
                    Some(_) => not_now,
                    None => BoardAnswer::Refused("nothing_ready".into(), Vec::new()),
                }
            }
            // It waits for the claims under way.
            _ if !state.chosen.is_empty() => not_now,
            _ => return None,
        })
    }

    fn try_step(&self, state: &mut Tasks, call: &BoardCall) -> Result<BoardAnswer, BoardAnswer> {
        let refused = |kind: &str, named: Vec<String>| BoardAnswer::Refused(kind.into(), named);
        let resolved = || refused("already_resolved", Vec::new());
        let claimed = |owner: &String| refused("already_claimed", vec![owner.clone()]);
        let blocked = |state: &Tasks, id| {
            let open = self.open_blockers(state, id);
            let named = open.iter().map(ToString::to_string).collect();
            if open.is_empty() {
                Ok(())
            } else {
                Err(refused("blocked", named))
            }
        };
        let of_another = |task: &TaskState| match &task.owner {
            Some(owner) if *owner != call.agent => Err(claimed(owner)),
            _ => Ok(()),
        };
        let in_progress = || TaskState {
            status: "in_progress".into(),
            owner: Some(call.agent.clone()),
        };
        let pending = || TaskState {
            status: "pending".into(),
            owner: None,
        };
        match call.action {
            Action::Claim(id) => {
                of_another(&state[&id])?;
                if state[&id].status == "completed" {
                    return Err(resolved());
                }
                if state[&id].status == "pending" {
                    blocked(state, id)?;
                }
                state.insert(id, in_progress());
                Ok(BoardAnswer::Took(id))
            }
            Action::Next => match self.next(state, &[]) {
                Some(id) => {
                    state.insert(id, in_progress());
                    Ok(BoardAnswer::Took(id))
                }
                None if state.values().all(|task| task.status == "completed") => {
                    Err(refused("all_done", Vec::new()))
                }
                None => Err(refused("nothing_ready", Vec::new())),
            },
            Action::Release(id) => {
                if state[&id].status == "completed" {
                    return Err(resolved());
                }
                of_another(&state[&id])?;
                state.insert(id, pending());
                Ok(BoardAnswer::Done)
            }
            Action::Complete(id) => {
                if state[&id].status == "completed" {
                    return Err(resolved());
                }
                of_another(&state[&id])?;
                blocked(state, id)?;
                let owner = state[&id].owner.clone();
                let status = "completed".into();
                state.insert(id, TaskState { status, owner });
                Ok(BoardAnswer::Done)
            }
            Action::Reopen(id) => {
                if state[&id].status != "completed" {
                    of_another(&state[&id])?;
                }
                state.insert(id, pending());
                Ok(BoardAnswer::Done)
            }
            Action::Show(id) => Ok(BoardAnswer::Shown(state[&id].clone())),
            Action::Choose | Action::Take | Action::LetGo => Ok(BoardAnswer::Done),
        }
    }
}

impl Spec for BoardSpec {
    type State = BoardState;
    type Op = BoardCall;
    type Answer = BoardAnswer;

    fn start(&self) -> BoardState {
        let pending = TaskState {
            status: "pending".into(),
            owner: None,
        };
        let ids = self.blocked_by.keys();
        BoardState {
            tasks: ids.map(|id| (*id, pending.clone())).collect(),
            chosen: BTreeMap::new(),
        }
    }

    fn step(&self, state: &BoardState, call: &BoardCall) -> (BoardState, BoardAnswer) {
        let mut after = state.clone();
        if let Some(answer) = self.part(&mut after, call) {
            return (after, answer);
        }
        let answer = self.try_step(&mut after.tasks, call);
        (after, answer.unwrap_or_else(|refusal| refusal))
    }

    fn only_looks(&self, answer: &BoardAnswer) -> bool {
        matches!(answer, BoardAnswer::Refused(..) | BoardAnswer::Shown(_))
    }
}
