use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use store::Failure;
use taskboard::Change;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, clean_line};
use crate::signals::Signals;

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Begin after this change instead of now; 0 begins with the first one
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// End after this many changes
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after the changes there are
    #[arg(long)]
    no_follow: bool,
}

/// How soon a signal is noticed.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &WatchArgs, context: &mut Context) -> Result<Exit, Failure> {
    let signals = Signals::catch()?;
    let board = context.board();
    let mut watch = board.watch(args.since)?;
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut shown = watch.last();
    let exit = loop {
        for change in watch.poll()? {
            if left == 0 {
                break;
            }
            context
                .out
                .answer(|| change.to_json(), || describe(&change))?;
            shown = change.seq;
            left -= 1;
        }
        if left == 0 || args.no_follow {
            break Exit::Done;
        }
        match signals.came() {
            None => watch.wait(LOOK),
            Some(exit) => break exit,
        }
    };
    if context.out.is_json() {
        context.out.json(&json!({"event": "end", "seq": shown}))?;
    }
    Ok(exit)
}

fn describe(change: &Change) -> String {
    let field = |key: &str| {
        let text = change
            .task
            .as_ref()
            .and_then(|task| task.get(key))
            .and_then(Value::as_str);
        text.map(clean_line).unwrap_or_default()
    };
    let time = change.ts.get(11..19).unwrap_or_default();
    let owner = field("owner");
    let owner = if owner.is_empty() {
        owner
    } else {
        format!(" {DIM}@{owner}{DIM:#}")
    };
    let foreign = if change.foreign {
        format!(" {DIM}(another tool){DIM:#}")
    } else {
        String::new()
    };
    format!(
        "{DIM}{time} #{}{DIM:#} {:<9} {BOLD}{}{BOLD:#} {}{owner}{foreign}",
        change.seq,
        change.op,
        change.id,
        field("subject"),
    )
}
