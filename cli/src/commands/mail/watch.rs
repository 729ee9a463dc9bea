use clap::Args;
use mailbox::Message;
use store::Failure;

use super::in_short;
use crate::commands::watch::{self, Seen, Until};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, clean_line};

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Begin after this message instead of now; 0 begins with the oldest that is kept
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    #[command(flatten)]
    until: Until,
}

pub(crate) fn run(args: &WatchArgs, context: &mut Context) -> Result<Exit, Failure> {
    let inbox = context.mailbox()?.inbox(context.agent_name())?;
    let mut follow = inbox.follow(args.since)?;
    watch::print(&args.until, follow.last(), context, |wait| {
        follow.wait(wait);
        let messages = follow.poll()?;
        Ok(messages.iter().map(seen).collect())
    })
}

fn seen(message: &Message) -> Seen {
    let time = message.sent_at.get(11..19).unwrap_or_default();
    let (seq, from) = (message.seq, clean_line(&message.from));
    let words = in_short(message);
    Seen {
        seq,
        json: message.to_json(),
        text: format!("{DIM}{time} #{seq}{DIM:#} {BOLD}{from}{BOLD:#} {words}"),
    }
}
