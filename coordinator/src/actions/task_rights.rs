//! The rights to change a task.
//!
//! A person and the lead decide about tasks. Other agents work on them: they change their own,
//! except the parts that decide when a task is done.

use project::rights::{not_for, not_yours};
use project::workplace::{Who, Workplace};
use store::Failure;
use taskboard::{Caller, Status, TaskId, Update};

/// Refuses a change that the caller has no right to make.
pub(super) fn may_update(
    id: TaskId,
    update: &Update,
    caller: &Caller,
    workplace: &Workplace,
) -> Result<(), Failure> {
    if workplace.who().decides() {
        return Ok(());
    }
    if caller.force {
        return Err(not_for(workplace, "--force", true));
    }
    if let Some(key) = update.first_fact() {
        let what = format!("changing what {key} of task {id} is");
        return Err(not_for(workplace, &what, true));
    }
    let other = |owner: &String| owner != workplace.agent();
    if let (Some(Status::InProgress), Some(Some(owner))) = (update.status, &update.owner)
        && other(owner)
    {
        return Err(not_yours(
            format!("{} cannot claim task {id} for {owner}", workplace.agent()),
            "assign it without a status; whoever works on it claims it",
        ));
    }
    let task = workplace.board().get(id)?;
    if workplace.who() == Who::Worker && task.owner.as_ref().is_none_or(other) {
        return Err(not_for(workplace, &format!("changing task {id}"), true));
    }
    if update.status == Some(Status::Pending) && task.parked().is_some() {
        return Err(not_for(
            workplace,
            &format!("opening task {id}, which is parked,"),
            true,
        ));
    }
    Ok(())
}

/// Refuses a deletion that the caller has no right to make.
pub(super) fn may_delete(
    id: TaskId,
    caller: &Caller,
    workplace: &Workplace,
) -> Result<(), Failure> {
    if workplace.who().decides() {
        return Ok(());
    }
    if caller.force {
        return Err(not_for(workplace, "--force", true));
    }
    let task = workplace.board().get(id)?;
    if task.is_judged() {
        let what = format!("deleting task {id}, which has a check or a history,");
        return Err(not_for(workplace, &what, true));
    }
    Ok(())
}
