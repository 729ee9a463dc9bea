//! `ccb mail …`.

mod inbox;
mod requests;
mod send;
mod watch;
mod words;

use clap::Subcommand;
use mailbox::Message;
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, clean_line, quoted};

/// The subcommands of `ccb mail`.
#[derive(Debug, Subcommand)]
pub(crate) enum MailCommand {
    /// Send a message to a member of the team, or to everyone
    Send(send::SendArgs),
    /// List waiting messages without reading them
    Inbox(inbox::InboxArgs),
    /// Read waiting messages; they stay until they are acknowledged
    Read(inbox::ReadArgs),
    /// Acknowledge messages that are dealt with
    Ack(inbox::AckArgs),
    /// Print messages as they arrive, without reading them
    Watch(watch::WatchArgs),
    /// List requests that wait for an answer
    Requests(requests::RequestsArgs),
    /// Say yes to a request
    Approve(requests::ApproveArgs),
    /// Say no to a request
    Reject(requests::RejectArgs),
}

pub(crate) fn run(command: &MailCommand, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        MailCommand::Send(args) => send::run(args, context),
        MailCommand::Inbox(args) => inbox::list(args, context),
        MailCommand::Read(args) => inbox::read(args, context),
        MailCommand::Ack(args) => inbox::ack(args, context),
        MailCommand::Watch(args) => watch::run(args, context),
        MailCommand::Requests(args) => requests::list(args, context),
        MailCommand::Approve(args) => requests::approve(args, context),
        MailCommand::Reject(args) => requests::reject(args, context),
    }
}

/// A message in one line.
fn in_short(message: &Message) -> String {
    let text = message.summary.as_deref().or(message.text());
    match text {
        Some(text) => clean_line(text.lines().next().unwrap_or_default()),
        None => clean_line(words::lines(message).first().map_or("", String::as_str)),
    }
}

/// A message with all its content.
fn in_full(message: &Message) -> String {
    let time = message.sent_at.get(11..19).unwrap_or_default();
    let kind = match message.body.kind() {
        "message" => String::new(),
        kind => format!(": {}", clean_line(&kind.replace('_', " "))),
    };
    let again = if message.redelivered { ", again" } else { "" };
    let words = match message.text() {
        Some(text) => quoted(text),
        None => quoted(&words::lines(message).join("\n")),
    };
    format!(
        "{BOLD}{} from {}{kind}{BOLD:#} {DIM}({time}, {}{again}){DIM:#}\n{words}",
        message.seq,
        clean_line(&message.from),
        message.priority,
    )
}
