//! Printing things as they happen, which `task watch` and `mail watch` share.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
use crate::signals::Signals;

/// When it ends.
#[derive(Debug, Args)]
pub(super) struct Until {
    /// End after N of them
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print what there is and end
    #[arg(long)]
    no_follow: bool,
}

/// How soon a signal is noticed.
const LOOK: Duration = Duration::from_millis(200);

/// One thing that happened.
pub(super) struct Seen {
    pub(super) seq: u64,
    pub(super) json: Value,
    pub(super) text: String,
}

/// Prints what `next` returns, which waits so long for something; the last before was `shown`.
pub(super) fn print(
    until: &Until,
    mut shown: u64,
    context: &mut Context,
    mut next: impl FnMut(Duration) -> Result<Vec<Seen>, Failure>,
) -> Result<Exit, Failure> {
    let signals = Signals::catch()?;
    let mut left = until.count.unwrap_or(u64::MAX);
    let mut wait = Duration::ZERO;
    let exit = loop {
        for seen in next(wait)? {
            if left == 0 {
                break;
            }
            context.out.answer(|| seen.json, || seen.text)?;
            shown = seen.seq;
            left -= 1;
        }
        if left == 0 || until.no_follow {
            break Exit::Done;
        }
        if let Some(exit) = signals.came() {
            break exit;
        }
        wait = LOOK;
    };
    if context.out.is_json() {
        context.out.json(&json!({"event": "end", "seq": shown}))?;
    }
    Ok(exit)
}
