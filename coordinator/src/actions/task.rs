//! Tasks: the actions on them, and their JSON.

use mailbox::{Body, Draft, Protocol, TaskAssignment};
use project::workplace::Workplace;
use project::workplace::hooks::{self, BeforeDone};
use runs::identity::Standing;
use serde_json::{Value, json};
use store::Failure;
use store::agent_id::LEAD;
use store::name::Name;
use swarm::run::RunError;
use taskboard::{
    Caller, Completed, Graph, LeaseTerm, NewTask, Refusal, Snapshot, Status, Task, TaskId, Update,
};
use team::TeamError;

use super::task_rights::{may_delete, may_update};

/// The present tasks, with problems among them.
#[derive(Debug)]
pub struct Listing {
    /// The tasks.
    pub snapshot: Snapshot,
    /// Tasks that wait for each other.
    pub cycles: Vec<Vec<TaskId>>,
}

/// Puts one task on the board.
pub fn create(new: NewTask, workplace: &Workplace) -> Result<Task, Failure> {
    let hooks = hooks::before_create(workplace);
    let mut created = workplace
        .board()
        .create(&[new], hooks::asked(hooks.as_ref()))?;
    created
        .pop()
        .ok_or_else(|| Failure::internal("the board made no task"))
}

/// Everything on the board.
pub fn list(workplace: &Workplace) -> Result<Listing, Failure> {
    let snapshot = workplace.board().snapshot()?;
    let cycles = Graph::new(&snapshot).cycles();
    Ok(Listing { snapshot, cycles })
}

/// A task as JSON for programs: as in its file, and for a completed one whether it is proven.
/// `warning` names the parts of its metadata that ccb cannot read.
pub fn to_json(task: &Task) -> Value {
    let mut json = task.to_json();
    if task.status == Status::Completed {
        let unchecked = task.unchecked();
        json["checked"] = unchecked.is_none().into();
        if let Some(why) = unchecked {
            json["unchecked"] = why.to_string().into();
        }
    }
    if let Some(trouble) = task.trouble() {
        json["warning"] = trouble.words.into();
    }
    json
}

/// A warning about metadata of a task that ccb cannot read, with the remedy.
pub fn warning(task: &Task, list: &str) -> Option<String> {
    let trouble = task.trouble()?;
    let ways_out = trouble.ways_out(list, task.id);
    Some(format!("task {}: {}. {ways_out}", task.id, trouble.words))
}

impl Listing {
    /// `{"tasks":[…]}`, with problems if there are any.
    pub fn to_json(&self, tasks: &[&Task]) -> Value {
        let tasks: Vec<Value> = tasks.iter().map(|task| to_json(task)).collect();
        let mut answer = json!({ "tasks": tasks });
        let unreadable: Vec<Value> = self
            .snapshot
            .unreadable()
            .iter()
            .map(|(id, bad)| json!({"id": id, "path": bad.path, "detail": bad.detail}))
            .collect();
        if !unreadable.is_empty() {
            answer["unreadable"] = unreadable.into();
        }
        if !self.cycles.is_empty() {
            answer["cycles"] = json!(self.cycles);
        }
        answer
    }
}

/// An existing task, and its neighbours.
pub fn show(id: TaskId, workplace: &Workplace) -> Result<Snapshot, Failure> {
    let snapshot = workplace.board().around(id)?;
    snapshot.require(id)?;
    Ok(snapshot)
}

/// Changes a task, and notifies the new owner or the lead.
pub fn update(
    id: TaskId,
    update: &Update,
    caller: &Caller,
    workplace: &Workplace,
) -> Result<Completed, Failure> {
    if let Some(Some(owner)) = &update.owner {
        Name::new("agent", owner)?;
    }
    may_update(id, update, caller, workplace)?;
    let (caller, lease) = in_run(id, caller, workplace)?;
    let mut update = Update {
        one_at_a_time: (update.one_at_a_time || is_workers(workplace)?)
            && !workplace.settings().many_tasks_per_agent,
        lease: lease.or(update.lease.clone()),
        ..update.clone()
    };
    let reported = match update.status {
        Some(Status::Completed) => reported(id, workplace)?,
        _ => None,
    };
    if reported.is_some() {
        update.status = None;
    }
    let before = owner(id, workplace);
    let completes = update.status == Some(Status::Completed);
    let before_done = completes.then(|| BeforeDone::new(workplace, None));
    let asked = before_done.as_ref().and_then(BeforeDone::asked);
    let mut updated = workplace.board().update(id, &update, &caller, asked)?;
    updated.nudge = reported.or(updated.nudge);
    if updated.task.status != Status::Completed {
        tell_owner(before.as_deref(), &updated.task, workplace);
    }
    Ok(updated)
}

/// The reply to an agent that reports its task as done, if the engine decides that: the engine
/// checks when the agent's turn has ended.
pub fn reported(id: TaskId, workplace: &Workplace) -> Result<Option<String>, Failure> {
    let Some(run) = workplace.run() else {
        return Ok(None);
    };
    let meta = match workplace.agents()?.run(run).meta() {
        Err(RunError::NotFound { .. }) => return Ok(None),
        meta => meta?,
    };
    let own = meta.task_id == Some(id.to_string());
    let Some(prove) = meta.launch.prove.filter(|_| own) else {
        return Ok(None);
    };
    let check = match prove.verify {
        Some(verify) => format!("`{verify}` has passed on what you leave in your tree"),
        None => "what you leave in your tree is committed".to_owned(),
    };
    Ok(Some(format!(
        "Noted. Task {id} counts as completed when you have ended your turn and {check}."
    )))
}

/// Deletes a task.
pub fn delete(id: TaskId, caller: &Caller, workplace: &Workplace) -> Result<Task, Failure> {
    may_delete(id, caller, workplace)?;
    let (caller, _) = in_run(id, caller, workplace)?;
    Ok(workplace.board().delete(id, &caller)?)
}

/// The reply to the completion of a task.
pub fn completed_json(completed: &Completed) -> Value {
    let mut answer = json!({"task": to_json(&completed.task), "unblocked": completed.unblocked});
    if let Some(nudge) = &completed.nudge {
        answer["nudge"] = nudge.clone().into();
    }
    answer
}

/// Inside a run, a claim ends with the run, and a claim of an earlier run of the same agent is no
/// longer its own.
fn in_run(
    id: TaskId,
    caller: &Caller,
    workplace: &Workplace,
) -> Result<(Caller, Option<LeaseTerm>), Failure> {
    let mut caller = caller.clone();
    let Some(run) = workplace.holder() else {
        return Ok((caller, None));
    };
    let lease = Some(workplace.lease_of(run));
    let snapshot = workplace.board().snapshot()?;
    let held = snapshot.get(id).and_then(Task::lease);
    let Some(held) = held.filter(|held| held.agent == caller.agent) else {
        return Ok((caller, lease));
    };
    if held.run.as_deref().is_some_and(|holder| holder != run) {
        let task = Box::new(snapshot.require(id)?.clone());
        let token = held.token;
        let reason = Refusal::LeaseLost { token };
        return Err(taskboard::BoardError::Refused { task, reason }.into());
    }
    caller.token = caller.token.or(Some(held.token));
    Ok((caller, lease))
}

/// True if the caller is an agent that does not lead.
fn is_workers(workplace: &Workplace) -> Result<bool, Failure> {
    let Some(run) = workplace.run() else {
        return Ok(false);
    };
    match workplace.agents()?.run(run).meta() {
        Ok(meta) => Ok(!Standing::of(&meta).leads()),
        Err(RunError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn owner(id: TaskId, workplace: &Workplace) -> Option<String> {
    let snapshot = workplace.board().snapshot().ok()?;
    snapshot.get(id)?.owner.clone()
}

/// Notifies the new owner if another caller decided, and the lead if the owner did so itself. The
/// task has its owner in any case, so a message that cannot be sent is only logged.
fn tell_owner(before: Option<&str>, task: &Task, workplace: &Workplace) {
    let Some(owner) = task.owner.as_deref().filter(|owner| before != Some(*owner)) else {
        return;
    };
    if let Err(error) = tell(owner, task, workplace) {
        tracing::warn!(id = %task.id, owner, error = error.message(), "nobody was told of its owner");
    }
}

fn tell(owner: &str, task: &Task, workplace: &Workplace) -> Result<(), Failure> {
    // Without a roster, or in another team's list, there is no recipient.
    let team = workplace.team()?;
    if team != *workplace.board().name() {
        return Ok(());
    }
    let roster = match workplace.team_named(team).enter() {
        Ok(roster) => roster,
        Err(TeamError::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let by = workplace.agent_name();
    let own = by.as_str().eq_ignore_ascii_case(owner);
    let to = if own { LEAD } else { owner };
    let itself = by.as_str().eq_ignore_ascii_case(to);
    if itself || roster.member(to).is_none() {
        return Ok(());
    }
    let assignment = TaskAssignment {
        task_id: task.id.to_string(),
        subject: task.subject.clone(),
        description: task.description.clone(),
        owner: owner.to_owned(),
        assigned_by: by.to_string(),
    };
    let body = Body::Protocol(Protocol::TaskAssignment(assignment));
    let draft = Draft::new(by.clone(), Name::new("agent", to)?, body);
    workplace.mailbox()?.send(&draft)?;
    Ok(())
}
