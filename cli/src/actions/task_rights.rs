//! Which changes of a task are whose.
//!
//! A person and the lead decide about tasks. Other agents work on them: they change their own,
//! and leave alone what says when a task is done.

use store::Failure;
use taskboard::{Caller, Status, TaskId, Update};

use crate::context::Context;
use crate::rights::{Who, not_for, not_yours};

/// Refuses a change that is not the caller's to make.
pub(super) fn may_update(
    id: TaskId,
    update: &Update,
    caller: &Caller,
    context: &Context,
) -> Result<(), Failure> {
    if context.who().decides() {
        return Ok(());
    }
    if caller.force {
        return Err(not_for(context, "--force", true));
    }
    if let Some(key) = update.first_fact() {
        let what = format!("changing what {key} of task {id} is");
        return Err(not_for(context, &what, true));
    }
    let other = |owner: &String| owner != context.agent();
    if let (Some(Status::InProgress), Some(Some(owner))) = (update.status, &update.owner)
        && other(owner)
    {
        return Err(not_yours(
            format!("{} cannot claim task {id} for {owner}", context.agent()),
            "assign it without a status; whoever works on it claims it",
        ));
    }
    let task = context.board().get(id)?;
    if context.who() == Who::Worker && task.owner.as_ref().is_none_or(other) {
        return Err(not_for(context, &format!("changing task {id}"), true));
    }
    if update.status == Some(Status::Pending) && task.parked().is_some() {
        return Err(not_for(
            context,
            &format!("opening task {id}, which is parked,"),
            true,
        ));
    }
    Ok(())
}

/// Refuses a deletion that is not the caller's to make.
pub(super) fn may_delete(id: TaskId, caller: &Caller, context: &Context) -> Result<(), Failure> {
    if context.who().decides() {
        return Ok(());
    }
    if caller.force {
        return Err(not_for(context, "--force", true));
    }
    let task = context.board().get(id)?;
    if task.is_judged() {
        let what = format!("deleting task {id}, which has a check or a history,");
        return Err(not_for(context, &what, true));
    }
    Ok(())
}
