use clap::Args;
use mailbox::{Consumer, MailError, Message, MessageState};
use serde_json::{Value, json};
use store::Failure;
use term::table::{self, Cell};

use super::{in_full, in_short};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{CYAN, DIM, GREEN, PLAIN, RED, YELLOW, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// Also show acknowledged and expired messages
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Only the message with this number
    #[arg(value_name = "SEQ")]
    seq: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct AckArgs {
    /// Acknowledge every message up to this number
    #[arg(value_name = "SEQ")]
    seq: u64,
}

pub(crate) fn list(args: &InboxArgs, context: &mut Context) -> Result<Exit, Failure> {
    let inbox = context.mailbox()?.inbox(context.agent_name())?;
    let listing = inbox.list(args.all)?;
    let json = || {
        let messages: Vec<Value> = listing
            .messages
            .iter()
            .map(|(message, state)| {
                let mut json = message.to_json();
                json["state"] = state.as_str().into();
                json
            })
            .collect();
        let mut answer = json!({"messages": messages, "acked": listing.acked});
        if listing.rejected > 0 {
            answer["rejected"] = listing.rejected.into();
        }
        answer
    };
    let text = || {
        if listing.messages.is_empty() {
            return "no messages".to_owned();
        }
        let rows: Vec<[Cell; 5]> = listing.messages.iter().map(row).collect();
        let heads = ["SEQ", "STATE", "FROM", "SENT", "MESSAGE"];
        table::render(heads, &rows, 4, terminal_width())
    };
    context.out.answer(json, text)?;
    report_rejected(listing.rejected, context);
    Ok(Exit::Done)
}

fn row((message, state): &(Message, MessageState)) -> [Cell; 5] {
    let (word, style) = match state {
        MessageState::Queued => ("● new", CYAN),
        MessageState::Delivered => ("○ read", YELLOW),
        MessageState::Acknowledged => ("✔ done", DIM),
    };
    let time = message.sent_at.get(..19).unwrap_or_default();
    [
        Cell::new(message.seq.to_string(), PLAIN),
        Cell::new(word, style),
        Cell::new(&message.from, PLAIN),
        Cell::new(time.replace('T', " "), DIM),
        Cell::new(in_short(message), PLAIN),
    ]
}

/// The right to read the inbox; `None` if there is no inbox. A mistyped name must not create one.
fn reader(context: &Context) -> Result<Option<Consumer>, Failure> {
    let mailbox = context.mailbox()?;
    // This sends notices that may be missing, which can create the inbox.
    mailbox.requests()?;
    let inbox = mailbox.inbox(context.agent_name())?;
    inbox.list(false)?;
    Ok(match inbox.exists() {
        true => Some(inbox.consumer()?),
        false => None,
    })
}

fn nothing_there(seq: u64, context: &Context) -> Failure {
    Failure::from(MailError::NoSuchMessage {
        inbox: context.agent().to_owned(),
        seq,
        last: 0,
    })
}

pub(crate) fn read(args: &ReadArgs, context: &mut Context) -> Result<Exit, Failure> {
    let Some(mut reader) = reader(context)? else {
        if let Some(seq) = args.seq {
            return Err(nothing_there(seq, context));
        }
        let json = || json!({"messages": [], "acked": 0});
        return context.out.done(json, || "no messages".to_owned());
    };
    let batch = match args.seq {
        Some(seq) => {
            let batch = reader.take_one(seq)?;
            if batch.messages.is_empty() {
                return Err(Failure::refused(
                    "already_acknowledged",
                    format!("message {seq} is acknowledged or has expired"),
                )
                .with_hint("`ccb mail inbox --all` shows what is still kept"));
            }
            batch
        }
        None => reader.take(usize::MAX)?,
    };
    let messages = &batch.messages;
    let last = messages.iter().map(|message| message.seq).max();
    let ack = last.map(|last| context.out.command(&format!("mail ack {last}")));
    let json = || {
        let all: Vec<Value> = messages.iter().map(Message::to_json).collect();
        let mut answer = json!({"messages": all, "acked": reader.acked()});
        if !batch.expired.is_empty() {
            answer["expired"] = batch.expired.len().into();
        }
        if batch.rejected > 0 {
            answer["rejected"] = batch.rejected.into();
        }
        answer
    };
    let text = || match &ack {
        Some(ack) => {
            let mut blocks: Vec<String> = messages.iter().map(in_full).collect();
            if args.seq.is_none() {
                blocks.push(format!("{DIM}when this is dealt with: {ack}{DIM:#}"));
            }
            blocks.join("\n\n")
        }
        None => "no messages".to_owned(),
    };
    context.out.answer(json, text)?;
    if !batch.expired.is_empty() && !context.out.is_json() {
        let count = batch.expired.len();
        context.out.note(&format!(
            "{DIM}{count} expired before they were read{DIM:#}"
        ));
    }
    report_rejected(batch.rejected, context);
    // Only printed messages count as delivered.
    let seqs: Vec<u64> = messages.iter().map(|message| message.seq).collect();
    reader.delivered(&seqs)?;
    Ok(Exit::Done)
}

pub(crate) fn ack(args: &AckArgs, context: &mut Context) -> Result<Exit, Failure> {
    let Some(mut reader) = reader(context)? else {
        return Err(nothing_there(args.seq, context));
    };
    let acked = reader.ack_up_to(args.seq)?;
    let (count, unread) = (acked.new.len(), acked.unread.len());
    let json = || json!({"acked": acked.acked, "acknowledged": acked.new, "unread": acked.unread});
    let text = || {
        let unread = match unread {
            0 => String::new(),
            unread => format!(", {RED}{unread} of them unread{RED:#}"),
        };
        format!("{GREEN}✔{GREEN:#} {count} acknowledged{unread}")
    };
    context.out.done(json, text)
}

fn report_rejected(count: usize, context: &mut Context) {
    if count > 0 && !context.out.is_json() {
        let noun = if count == 1 { "line" } else { "lines" };
        let warning = format!("{count} damaged {noun}; see rejected.jsonl in the inbox");
        context.out.warn(warning);
    }
}
