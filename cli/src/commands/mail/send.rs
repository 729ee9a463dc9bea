use std::io::Read;

use clap::Args;
use mailbox::{Body, Draft, MAX_TEXT, Posted};
use serde_json::{Value, json};
use store::name::Name;
use uuid::Uuid;

use super::recipients;
use crate::context::Context;
use crate::error::{CommandError, Exit};
use crate::output::{GREEN, clean_line};

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// A member's name, an agent id, or '*' for everyone
    to: String,
    /// What to say; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// What it says in one line [default: its first line]
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// How soon it is to be read: now, next or later [default: next]
    #[arg(long, value_name = "P")]
    priority: Option<String>,
    /// The id of the message this answers
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
}

/// How long a summary made of the first line may get, in characters.
const SUMMARY: usize = 100;

pub(crate) fn run(args: &SendArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let text = match args.text.as_str() {
        "-" => read_stdin()?,
        text => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(CommandError::usage("invalid", "the text is empty"));
    }
    let priority = args.priority.as_deref().map(str::parse).transpose()?;
    let in_reply_to = args.reply_to.as_deref().map(message_id).transpose()?;
    let summary = args.summary.clone().unwrap_or_else(|| first_line(&text));
    let from = context.agent_name().clone();
    // Of a broadcast the recipient does not matter; the sender is a name that is there.
    let everyone = args.to == "*";
    let to = if everyone {
        from.clone()
    } else {
        recipients::resolve(&args.to, context)?
    };
    let draft = Draft {
        priority,
        summary: Some(summary),
        in_reply_to,
        ..Draft::text(from, to, text)
    };
    let mailbox = context.mailbox()?;
    if everyone {
        let members = recipients::members(context)?;
        let names: Vec<Name> = members.into_iter().map(|member| member.name).collect();
        let sent = mailbox.broadcast(&draft, &names)?;
        let names: Vec<&str> = sent.recipients.iter().map(Name::as_str).collect();
        let json = || {
            let mut answer = json(&draft, sent.id);
            answer["to"] = "*".into();
            answer["broadcast"] = sent.number.into();
            answer["recipients"] = json!(names);
            json!({ "message": answer })
        };
        let text = || format!("{GREEN}✔{GREEN:#} sent to {}", names.join(", "));
        context.out.answer(json, text)?;
        return Ok(Exit::Done);
    }
    let Posted { id, seq, .. } = mailbox.send(&draft)?;
    let json = || {
        let mut answer = json(&draft, id);
        answer["seq"] = seq.into();
        json!({ "message": answer })
    };
    let text = || {
        let to = clean_line(draft.to.as_str());
        format!("{GREEN}✔{GREEN:#} sent to {to} as message {seq}")
    };
    context.out.answer(json, text)?;
    Ok(Exit::Done)
}

fn json(draft: &Draft, id: Uuid) -> Value {
    let mut answer = json!({
        "id": id.to_string(),
        "from": draft.from.as_str(),
        "to": draft.to.as_str(),
        "kind": draft.body.kind(),
        "priority": draft.priority.unwrap_or_default().as_str(),
    });
    if let Body::Text(text) = &draft.body {
        answer["text"] = text.as_str().into();
    }
    if let Some(summary) = &draft.summary {
        answer["summary"] = summary.as_str().into();
    }
    if let Some(id) = draft.in_reply_to {
        answer["inReplyTo"] = id.to_string().into();
    }
    answer
}

fn message_id(text: &str) -> Result<Uuid, CommandError> {
    Uuid::parse_str(text).map_err(|_| {
        CommandError::usage("bad_id", format!("--reply-to {text:?}: not a message id"))
            .with_hint("`ccb mail inbox --json` shows the ids of messages")
    })
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let mut short: String = line.chars().take(SUMMARY).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// Standard input without the newline at its end, and not much more than can be sent.
fn read_stdin() -> Result<String, CommandError> {
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_TEXT as u64 * 16)
        .read_to_string(&mut text)
        .map_err(|error| CommandError::usage("invalid", format!("standard input: {error}")))?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
