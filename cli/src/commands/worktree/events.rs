use clap::Args;
use serde_json::{Value, json};
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, RED, clean_line};

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// How many, counted from the newest
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

pub(crate) fn run(args: &EventsArgs, context: &mut Context) -> Result<Exit, Failure> {
    let events = context.trees()?.events(args.limit)?;
    let json = || json!({ "events": events });
    let text = || {
        let lines: Vec<String> = events.iter().map(describe).collect();
        if lines.is_empty() {
            "nothing has happened yet".to_owned()
        } else {
            lines.join("\n")
        }
    };
    context.out.done(json, text)
}

fn describe(event: &Value) -> String {
    let text = |pointer: &str| {
        clean_line(
            event
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or("?"),
        )
    };
    let mut line = format!(
        "{DIM}{}{DIM:#} {BOLD}{}{BOLD:#} {}",
        text("/ts"),
        text("/event"),
        text("/worktree/name")
    );
    if let Some(task) = event.pointer("/task/id").and_then(Value::as_str) {
        line.push_str(&format!(" (task {})", clean_line(task)));
    }
    if let Some(error) = event.get("error").and_then(Value::as_str) {
        line.push_str(&format!(" {RED}{}{RED:#}", clean_line(error)));
    }
    line
}
