use std::io::Read;

use clap::Args;
use coordinator::actions::mail::{self, Letter, Reached};
use mailbox::MAX_TEXT;
use store::Failure;
use store::name::Name;
use uuid::Uuid;

use crate::context::Context;
use crate::exit::Exit;
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

pub(crate) fn run(args: &SendArgs, context: &mut Context) -> Result<Exit, Failure> {
    let text = match args.text.as_str() {
        "-" => read_stdin()?,
        text => text.to_owned(),
    };
    let sent = mail::send(
        Letter {
            to: args.to.clone(),
            text,
            summary: args.summary.clone(),
            priority: args.priority.as_deref().map(str::parse).transpose()?,
            in_reply_to: args.reply_to.as_deref().map(message_id).transpose()?,
        },
        context,
    )?;
    let text = || match sent.reached() {
        Reached::One(seq) => {
            let to = clean_line(sent.to().as_str());
            format!("{GREEN}✔{GREEN:#} sent to {to} as message {seq}")
        }
        Reached::All { recipients, .. } => {
            let names: Vec<&str> = recipients.iter().map(Name::as_str).collect();
            format!("{GREEN}✔{GREEN:#} sent to {}", names.join(", "))
        }
    };
    context.out.done(|| sent.to_json(), text)
}

fn message_id(text: &str) -> Result<Uuid, Failure> {
    Uuid::parse_str(text).map_err(|_| {
        Failure::usage("bad_id", format!("--reply-to {text:?}: not a message id"))
            .with_hint("`ccb mail inbox --json` shows the ids of messages")
    })
}

/// Standard input without the newline at its end, read to just above the maximum length of a
/// message.
fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_TEXT as u64 * 16)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage("invalid", format!("standard input: {error}")))?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
