//! Histories of calls to a task board: how workers write them down, and what a board that
//! does one thing at a time would have answered.

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
    /// To pending, whoever completed it.
    Reopen(u64),
    Show(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BoardAnswer {
    Took(u64),
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
    /// It has opened the board and waits for the end of its input.
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

/// A board whose tasks wait for each other as `blocked_by` says; all of it is one object,
/// so that what a call says about other tasks (blockers, "nothing ready") is checked too.
#[derive(Debug)]
pub struct BoardSpec {
    pub blocked_by: BTreeMap<u64, Vec<u64>>,
}

type State = BTreeMap<u64, TaskState>;

impl BoardSpec {
    fn open_blockers(&self, state: &State, id: u64) -> Vec<u64> {
        let blockers = self.blocked_by[&id].iter().copied();
        blockers
            .filter(|blocker| state[blocker].status != "completed")
            .collect()
    }

    /// The length of the longest chain of unfinished tasks that starts with `id`.
    fn chain(&self, state: &State, id: u64) -> usize {
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

    fn next(&self, state: &State) -> Option<u64> {
        let ready = |id: &u64| {
            let free = state[id].status == "pending" && state[id].owner.is_none();
            free && self.open_blockers(state, *id).is_empty()
        };
        let ids = self.blocked_by.keys().copied().filter(ready);
        ids.min_by_key(|id| (std::cmp::Reverse(self.chain(state, *id)), *id))
    }

    fn try_step(&self, state: &mut State, call: &BoardCall) -> Result<BoardAnswer, BoardAnswer> {
        let refused = |kind: &str, named: Vec<String>| BoardAnswer::Refused(kind.into(), named);
        let resolved = || refused("already_resolved", Vec::new());
        let claimed = |owner: &String| refused("already_claimed", vec![owner.clone()]);
        let blocked = |state: &State, id| {
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
            Action::Next => match self.next(state) {
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
        }
    }
}

impl Spec for BoardSpec {
    type State = State;
    type Op = BoardCall;
    type Answer = BoardAnswer;

    fn start(&self) -> State {
        let pending = TaskState {
            status: "pending".into(),
            owner: None,
        };
        self.blocked_by
            .keys()
            .map(|id| (*id, pending.clone()))
            .collect()
    }

    fn step(&self, state: &State, call: &BoardCall) -> (State, BoardAnswer) {
        let mut after = state.clone();
        let answer = self.try_step(&mut after, call);
        (after, answer.unwrap_or_else(|refusal| refusal))
    }
    fn only_looks(&self, answer: &BoardAnswer) -> bool {
        matches!(answer, BoardAnswer::Refused(..) | BoardAnswer::Shown(_))
    }
}
