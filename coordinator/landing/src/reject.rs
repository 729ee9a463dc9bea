//! Rejects a result that has not landed.

use runs::Agents;
use store::Failure;
use taskboard::{Attempt, RejectedWork, Status, Task, TaskId, TaskResult};
use worktrees::Slug;

use super::queue::Results;
use super::work::{WorkState, state_of};

/// Maximum size of feedback in bytes.
const MOST: usize = 64 * 1024;

/// A task whose result was rejected.
#[derive(Debug)]
pub struct Rejected {
    /// The task after the rejection.
    pub task: Task,
    /// The worktree with the work, in which the next attempt continues.
    pub worktree: Option<String>,
    /// True if a running session starts the next attempt by itself.
    pub directed: bool,
}

/// Rejects the result of a task. Its next attempt gets the feedback, and starts from the present
/// work.
pub fn reject(id: TaskId, feedback: &str, agents: &Agents) -> Result<Rejected, Failure> {
    let feedback = feedback.trim();
    if feedback.is_empty() || feedback.len() > MOST {
        let message = format!("the feedback is empty, or longer than {MOST} bytes");
        return Err(Failure::usage("usage", message)
            .with_hint("say with --feedback what the next attempt should do differently"));
    }
    let board = agents.board();
    let task = board.get(id)?;
    let trees = agents.trees().ok();
    let results = trees.as_ref().map(|trees| Results::new(agents, trees));
    check(&task, board.name().as_str(), results)?;
    let result = task.result().unwrap_or_default();
    let attempt = Attempt {
        work: Some(RejectedWork {
            commit: result.commit.clone(),
            run: done_by(&result).or_else(|| run_of(&task, agents)),
        }),
        ..Attempt::new(
            format!("rejected-{}", uuid::Uuid::new_v4()),
            Attempt::REJECTED,
            feedback,
        )
    };
    let task = board.reject(id, &attempt)?;
    let there = |name: &String| {
        let slug = Slug::new(name).ok()?;
        trees.as_ref()?.get(&slug).ok()
    };
    Ok(Rejected {
        task,
        worktree: result.worktree.filter(|name| there(name).is_some()),
        directed: agents.are_directed().unwrap_or(false),
    })
}

/// Refuses a task without a result that could be rejected.
fn check(task: &Task, list: &str, results: Option<Results<'_>>) -> Result<(), Failure> {
    let id = task.id;
    if task.status == Status::InProgress {
        let owner = task.owner.as_deref().unwrap_or("nobody");
        let message = format!("task {id} is in progress ({owner})");
        return Err(Failure::refused("in_progress", message).with_hint(format!(
            "write to the agent instead: `ccb --team {list} agent send {owner} TEXT`"
        )));
    }
    if task.status == Status::Pending && task.parked().is_none() && task.attempts().is_empty() {
        let message = format!("task {id} has no result: nobody has worked on it");
        return Err(Failure::refused("not_done", message).with_hint(format!(
            "`ccb --list {list} task update {id} --description TEXT` says what is wanted"
        )));
    }
    let Some(results) = results else {
        return Ok(());
    };
    match state_of(task, results)? {
        WorkState::LandedElsewhere(into) => Err(Failure::refused(
            "landed",
            format!("task {id} is on {into} already: another machine landed it"),
        )
        .with_hint("create a task that says what is to change")),
        WorkState::Landed(landing) => Err(Failure::refused(
            "landed",
            format!("task {id} is on {} already", landing.into),
        )
        .with_hint(format!(
            "take it back first: `ccb undo L{}`; then reject it",
            landing.id
        ))),
        _ => Ok(()),
    }
}

/// The run that did it; a resumed run has the number of its life appended.
fn done_by(result: &TaskResult) -> Option<String> {
    let run = result.run.as_deref()?;
    Some(run.split('#').next().unwrap_or(run).to_owned())
}

/// The last run that worked on the task.
fn run_of(task: &Task, agents: &Agents) -> Option<String> {
    let (all, _) = agents.list().ok()?;
    let id = task.id.to_string();
    let list = agents.board().name().as_str();
    let of_it = |meta: &swarm::run::Meta| meta.list == list && meta.task_id.as_ref() == Some(&id);
    let found = all.into_iter().rev().find(|one| of_it(&one.meta))?;
    Some(found.meta.agent_id)
}
