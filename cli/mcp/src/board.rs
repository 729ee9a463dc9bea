//! The board's tools.

use coordinator::actions::task;
use coordinator::agent::Role;
use project::workplace::Workplace;
use serde_json::json;
use store::Failure;
use taskboard::{NewTask, Reference, Snapshot, Status, Task, TaskId, Unchecked, Update};

use super::answer::Answer;
use super::arguments::Arguments;
use super::task_lines::{ids, line};

pub(super) fn create(arguments: &Arguments, context: &Workplace) -> Result<Answer, Failure> {
    let waits_for = all_ids(&arguments.texts("addBlockedBy"))?;
    let new = NewTask {
        // Set with the creation: a task that waits for nothing may be claimed at once.
        blocked_by: waits_for.into_iter().map(Reference::Id).collect(),
        subject: arguments.text("subject"),
        description: arguments.text("description"),
        active_form: arguments.optional("activeForm"),
        metadata: arguments.object("metadata").cloned().unwrap_or_default(),
        ..NewTask::default()
    };
    let task = task::create(new, context)?;
    let text = format!("Task #{} created: {}", task.id, task.subject);
    Ok(Answer::new(text, json!({ "task": task::to_json(&task) })))
}

pub(super) fn get(arguments: &Arguments, context: &Workplace) -> Result<Answer, Failure> {
    let id = id(&arguments.text("taskId"))?;
    let snapshot = task::show(id, context)?;
    let task = snapshot.require(id)?;
    let json = json!({ "task": task::to_json(task) });
    let answer = Answer::new(
        describe(&snapshot, task, context.board().name().as_str()),
        json,
    );
    Ok(answer.printed_by(&format!("ccb task show {id}")))
}

pub(super) fn update(
    arguments: &Arguments,
    role: Role,
    context: &Workplace,
) -> Result<Answer, Failure> {
    let id = id(&arguments.text("taskId"))?;
    let caller = context.caller(None, false);
    if arguments.only("taskId") {
        let error = Failure::usage("invalid_arguments", "TaskUpdate: nothing is to change");
        return Err(error.with_hint("give status, owner or another field besides taskId"));
    }
    let status = arguments.optional("status");
    if status.as_deref() == Some("deleted") {
        let task = task::delete(id, &caller, context)?;
        let text = format!("Task #{id} deleted: {}", task.subject);
        return Ok(Answer::new(text, json!({ "task": task::to_json(&task) })));
    }
    let given = |text: String| (!text.is_empty()).then_some(text);
    let update = Update {
        subject: arguments.optional("subject"),
        description: arguments.optional("description"),
        active_form: arguments.optional("activeForm").map(given),
        owner: arguments.optional("owner").map(given),
        status: status.as_deref().map(str::parse).transpose()?,
        metadata: arguments.object("metadata").cloned().unwrap_or_default(),
        add_blocks: all_ids(&arguments.texts("addBlocks"))?,
        add_blocked_by: all_ids(&arguments.texts("addBlockedBy"))?,
        lease: None,
        one_at_a_time: !role.leads(),
    };
    let updated = task::update(id, &update, &caller, context)?;
    let task = &updated.task;
    if update.status == Some(Status::Completed) {
        let mut text = format!("Task #{id} completed: {}", task.subject);
        if !updated.unblocked.is_empty() {
            text.push_str(&format!("\nNow ready: {}", ids(&updated.unblocked)));
        }
        match &updated.nudge {
            Some(nudge) => text.push_str(&format!("\n{nudge}")),
            None => text.push_str("\nCall TaskList to find your next task."),
        }
        return Ok(Answer::new(text, task::completed_json(&updated)));
    }
    let owner = task.owner.as_deref();
    let owner = owner.map(|owner| format!(", {owner}")).unwrap_or_default();
    let text = format!(
        "Task #{id} updated: {} ({}{owner})",
        task.subject, task.status
    );
    Ok(Answer::new(text, json!({ "task": task::to_json(task) })))
}

/// A task with all its details.
fn describe(snapshot: &Snapshot, task: &Task, list: &str) -> String {
    let mut lines = vec![line(snapshot, task)];
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{name}: {value}"));
        }
    };
    field("Description", task.description.clone());
    field("Blocked by", ids(&snapshot.blockers(task.id)));
    field("Blocks", ids(&snapshot.dependents(task.id)));
    field(
        "Check",
        task.verify_command().unwrap_or_default().to_owned(),
    );
    let unchecked = task.unchecked().map(|why| why.to_string());
    field(Unchecked::MARK, unchecked.unwrap_or_default());
    let warning = task::warning(task, list);
    field("Warning", warning.unwrap_or_default());
    field("Parked", task.parked().unwrap_or_default().to_owned());
    let metadata: Vec<String> = task
        .other_metadata()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    field("Metadata", metadata.join(" "));
    lines.join("\n")
}

/// A task's id. Models write ids as they read them.
fn id(text: &str) -> Result<TaskId, Failure> {
    Ok(text.strip_prefix('#').unwrap_or(text).parse()?)
}

fn all_ids(texts: &[String]) -> Result<Vec<TaskId>, Failure> {
    texts.iter().map(|text| id(text)).collect()
}
