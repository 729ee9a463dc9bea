use clap::Args;
use serde_json::Value;
use store::Failure;
use taskboard::Change;

use crate::commands::watch::{self, Seen, Until};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, clean_line};

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Begin after this change instead of now; 0 begins with the first one
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    #[command(flatten)]
    until: Until,
}

pub(crate) fn run(args: &WatchArgs, context: &mut Context) -> Result<Exit, Failure> {
    let board = context.board();
    let mut watch = board.watch(args.since)?;
    let seen = |change: &Change| Seen {
        seq: change.seq,
        json: change.to_json(),
        text: describe(change),
    };
    watch::print(&args.until, watch.last(), context, |wait| {
        watch.wait(wait);
        Ok(watch.poll()?.iter().map(seen).collect())
    })
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
