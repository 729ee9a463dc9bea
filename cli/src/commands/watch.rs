//! Prints events as they happen, for `task watch` and `mail watch`.

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

/// Poll interval for a signal.
const LOOK: Duration = Duration::from_millis(200);

/// One event to print.
pub(super) struct Seen {
    pub(super) seq: u64,
    pub(super) json: Value,
    pub(super) text: String,
}

/// Prints the events that `next` returns; its argument is how long to wait for one. `shown` is the
/// number of the last event that was printed before.
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
