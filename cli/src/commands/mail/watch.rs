use std::time::Duration;

use clap::Args;
use serde_json::json;
use store::Failure;

use super::in_short;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, clean_line};
use crate::signals::Signals;

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Begin after this message instead of now; 0 begins with the oldest that is kept
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// End after this many messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after the messages there are
    #[arg(long)]
    no_follow: bool,
}

/// How soon a signal is noticed.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &WatchArgs, context: &mut Context) -> Result<Exit, Failure> {
    let signals = Signals::catch()?;
    let inbox = context.mailbox()?.inbox(context.agent_name())?;
    let mut follow = inbox.follow(args.since)?;
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut shown = follow.last();
    let exit = loop {
        for message in follow.poll()? {
            if left == 0 {
                break;
            }
            let text = || {
                let time = message.sent_at.get(11..19).unwrap_or_default();
                format!(
                    "{DIM}{time} #{}{DIM:#} {BOLD}{}{BOLD:#} {}",
                    message.seq,
                    clean_line(&message.from),
                    in_short(&message)
                )
            };
            context.out.answer(|| message.to_json(), text)?;
            shown = message.seq;
            left -= 1;
        }
        if left == 0 || args.no_follow {
            break Exit::Done;
        }
        match signals.came() {
            None => follow.wait(LOOK),
            Some(exit) => break exit,
        }
    };
    if context.out.is_json() {
        context.out.json(&json!({"event": "end", "seq": shown}))?;
    }
    Ok(exit)
}
