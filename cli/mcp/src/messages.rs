//! `SendMessage`.

use coordinator::actions::mail::{self, Letter, Reached};
use coordinator::agent::service::{AgentService, Messaged};
use mailbox::{Mode, Question, Shutdown};
use project::workplace::Workplace;
use serde_json::{Map, Value, json};
use store::Failure;
use store::agent_id::AgentId;

use super::answer::Answer;
use super::arguments::Arguments;

pub(super) fn send(
    arguments: &Arguments,
    context: &Workplace,
    service: &dyn AgentService,
) -> Result<Answer, Failure> {
    let to = arguments.text("to");
    if let Some(message) = arguments.object("message") {
        return structured(&to, message, context);
    }
    let Some(summary) = arguments
        .optional("summary")
        .filter(|text| !text.trim().is_empty())
    else {
        let message = "SendMessage: the argument \"summary\" is missing";
        let error = Failure::usage("invalid_arguments", message);
        return Err(error.with_hint("say in 5 to 10 words what the text is about"));
    };
    let priority = arguments.optional("priority");
    let letter = Letter {
        to,
        text: arguments.text("message"),
        summary: Some(summary),
        priority: priority.as_deref().map(str::parse).transpose()?,
        in_reply_to: None,
    };
    // An agent that ccb runs may have ended, and then resumes.
    if letter.to != "*"
        && let Some(messaged) = service.message(&letter, context)?
    {
        return Ok(went_to_agent(&letter, &messaged, context));
    }
    let sent = mail::send(letter, context)?;
    let text = match sent.reached() {
        Reached::One(_) => format!("Sent to {}.", sent.to()),
        Reached::All { recipients, .. } => {
            let names: Vec<&str> = recipients.iter().map(|name| name.as_str()).collect();
            format!("Sent to {}.", names.join(", "))
        }
    };
    Ok(Answer::new(text, sent.to_json()))
}

/// The answer if the text went to an agent that ccb runs.
fn went_to_agent(letter: &Letter, messaged: &Messaged, context: &Workplace) -> Answer {
    let to = &messaged.to;
    let words = match messaged.resumed {
        true => format!("Sent to {to}. It had ended and resumes in the background."),
        false => format!("Sent to {to}."),
    };
    let json = json!({"message": {
        "id": messaged.posted.id.to_string(),
        "from": context.agent(),
        "to": to,
        "kind": "message",
        "priority": messaged.priority.as_str(),
        "text": letter.text,
        "summary": letter.summary,
        "seq": messaged.posted.seq,
        "resumed": messaged.resumed,
    }});
    Answer::new(words, json)
}

/// A request, or the answer to one.
fn structured(
    to: &str,
    message: &Map<String, Value>,
    context: &Workplace,
) -> Result<Answer, Failure> {
    let field = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = field("type").unwrap_or_default();
    if to == "*" {
        let message = format!("a {kind} cannot be sent to everyone");
        let error = Failure::usage("invalid", message);
        return Err(error.with_hint("send it to each one by name"));
    }
    let question = match kind.as_str() {
        "shutdown_request" => Question::Shutdown(Shutdown {
            reason: field("reason"),
        }),
        "mode_set_request" => {
            let mode = field("mode").ok_or_else(|| missing("mode", &kind))?;
            Question::Mode(Mode { mode })
        }
        _ => return respond(to, &kind, message, context),
    };
    let request = mail::ask(to, question, context)?;
    let text = format!(
        "Asked {} to {} (request {}). The answer comes as a message.",
        request.to,
        mailbox::in_short(&request.question),
        request.id
    );
    Ok(Answer::new(text, json!({"request": request.to_json()})))
}

fn respond(
    to: &str,
    kind: &str,
    message: &Map<String, Value>,
    context: &Workplace,
) -> Result<Answer, Failure> {
    let text = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
    let id = text("request_id").ok_or_else(|| missing("request_id", kind))?;
    let approve = message.get("approve").and_then(Value::as_bool);
    let approve = approve.ok_or_else(|| missing("approve", kind))?;
    let asked = context.mailbox()?.request(&id)?;
    let expected = format!(
        "{}_response",
        asked.question.kind().trim_end_matches("_request")
    );
    if expected != kind {
        let message = format!("request {id} is a {}", asked.question.kind());
        let error = Failure::usage("invalid", message);
        return Err(error.with_hint(format!("answer it with type {expected:?}")));
    }
    // The caller that asks need not be a member of the team.
    let to = AgentId::name_in(to, context.team()?.as_str()).to_owned();
    if !asked.from.eq_ignore_ascii_case(&to) {
        let message = format!("request {id} was asked by {}, not by {to}", asked.from);
        let error = Failure::usage("invalid", message);
        return Err(error.with_hint(format!("send the answer to {:?}", asked.from)));
    }
    let request = mail::answer(&id, approve, text("feedback").or(text("reason")), context)?;
    let text = format!(
        "{}: {}. {} is told.",
        match approve {
            true => "Approved",
            false => "Rejected",
        },
        mailbox::in_short(&request.question),
        request.from
    );
    Ok(Answer::new(text, json!({"request": request.to_json()})))
}

fn missing(name: &str, kind: &str) -> Failure {
    let message = format!(
        "SendMessage: a {kind} needs {:?}",
        format!("message.{name}")
    );
    let error = Failure::usage("invalid_arguments", message);
    error.with_hint("requests and answers are objects: {type, request_id, approve, feedback}")
}
