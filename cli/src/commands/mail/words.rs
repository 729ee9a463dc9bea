//! Messages between machines, in words for people.

use mailbox::in_short;
use mailbox::{
    Answered, Body, IdleReason, Message, Protocol, Question, RunStatus, TaskNotification,
};

/// The content of a message as lines: the first says what happened.
pub(super) fn lines(message: &Message) -> Vec<String> {
    match &message.body {
        Body::Text(text) => text.lines().map(str::to_owned).collect(),
        Body::Protocol(protocol) => of_protocol(protocol),
        Body::Unknown { kind, body } => vec![format!("{kind}: {body}")],
    }
}

fn of_protocol(protocol: &Protocol) -> Vec<String> {
    match protocol {
        Protocol::TaskNotification(told) => of_notification(told),
        Protocol::IdleNotification(idle) => {
            let why = match idle.idle_reason {
                IdleReason::Available => "has nothing to do",
                IdleReason::Interrupted => "was interrupted",
                IdleReason::Failed => "could not continue",
            };
            let mut lines = vec![why.to_owned()];
            if !idle.finished_tasks.is_empty() {
                lines.push(format!("finished: {}", idle.finished_tasks.join(", ")));
            }
            lines.extend(idle.failure_reason.clone());
            lines
        }
        Protocol::TaskAssignment(given) => {
            let (id, subject, by) = (&given.task_id, &given.subject, &given.assigned_by);
            let mut lines = vec![format!(
                "{by} assigned task {id} to {}: {subject}",
                given.owner
            )];
            lines.extend(given.description.lines().map(str::to_owned));
            lines
        }
        Protocol::TeammateTerminated(gone) => {
            let why = gone.reason.as_ref().map(|why| format!(": {why}"));
            let mut lines = vec![format!(
                "{} has ended{}",
                gone.teammate,
                why.unwrap_or_default()
            )];
            if !gone.returned_tasks.is_empty() {
                lines.push(format!("free again: {}", gone.returned_tasks.join(", ")));
            }
            lines
        }
        Protocol::ShutdownRequest(asked) => question(
            &Question::Shutdown(asked.question.clone()),
            &asked.request_id,
        ),
        Protocol::PlanApprovalRequest(asked) => {
            let mut lines = question(&Question::Plan(asked.question.clone()), &asked.request_id);
            lines.extend(asked.question.plan.lines().skip(1).map(str::to_owned));
            let file = asked.question.plan_file_path.as_ref();
            lines.extend(file.map(|file| format!("the plan is in {file}")));
            lines
        }
        Protocol::PermissionRequest(asked) => question(
            &Question::Permission(asked.question.clone()),
            &asked.request_id,
        ),
        Protocol::ModeSetRequest(asked) => {
            question(&Question::Mode(asked.question.clone()), &asked.request_id)
        }
        Protocol::ShutdownApproved(answer) => answered("it will stop", answer),
        Protocol::ShutdownRejected(answer) => answered("it will not stop", answer),
        Protocol::PlanApprovalResponse(answer) => answered(yes_or_no("the plan", answer), answer),
        Protocol::PermissionResponse(answer) => answered(yes_or_no("the tool", answer), answer),
        Protocol::ModeSetResponse(answer) => answered(yes_or_no("the new mode", answer), answer),
    }
}

/// The lines that say how an agent ended.
fn of_notification(told: &TaskNotification) -> Vec<String> {
    let how = match told.status {
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Killed => "was stopped",
        RunStatus::Lost => "failed: its process ended without a result",
    };
    let mut lines = vec![format!(
        "agent {} {how}: {}",
        told.task_id, told.description
    )];
    lines.extend(
        told.result
            .iter()
            .flat_map(|text| text.lines())
            .map(str::to_owned),
    );
    if let Some(tree) = &told.worktree {
        lines.push(format!("its work is in {}", tree.worktree_path));
    }
    lines.push(format!("its output is in {}", told.output_file));
    lines
}

fn question(question: &Question, id: &str) -> Vec<String> {
    vec![
        format!("asks to {}", in_short(question)),
        format!("request {id}"),
    ]
}

fn yes_or_no(what: &str, answer: &Answered) -> String {
    let said = match (answer.approved, answer.expired) {
        (true, _) => "is approved",
        (false, true) => "is not approved: nobody answered in time",
        (false, false) => "is rejected",
    };
    format!("{what} {said}")
}

fn answered(said: impl Into<String>, answer: &Answered) -> Vec<String> {
    let mut lines = vec![said.into()];
    lines.extend(
        answer
            .feedback
            .iter()
            .flat_map(|text| text.lines())
            .map(str::to_owned),
    );
    if let Some(plan) = &answer.plan {
        lines.push("the plan was edited:".into());
        lines.extend(plan.lines().map(str::to_owned));
    }
    lines.push(format!("request {}", answer.request_id));
    lines
}
