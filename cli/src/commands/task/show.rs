use std::path::Path;

use clap::Args;
use coordinator::actions::task as actions;
use runs::failure_text::log_of_task;
use serde_json::json;
use store::Failure;
use store::clock::rfc3339;
use taskboard::{Snapshot, Task};

use super::list::state;
use super::{id, join};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, clean_line, failure_lines, quoted};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The task's id
    #[arg(allow_negative_numbers = true)]
    id: String,
}

pub(crate) fn run(args: &ShowArgs, context: &mut Context) -> Result<Exit, Failure> {
    let id = id(&args.id)?;
    let snapshot = actions::show(id, context)?;
    let task = snapshot.require(id)?;
    let agents = context.agents().ok();
    let log = agents.and_then(|agents| log_of_task(&agents, task));
    let ccb = context.ccb();
    let warning = actions::warning(task, context.board().name().as_str());
    if let Some(warning) = warning {
        context.out.warn(clean_line(&warning));
    }
    context.out.done(
        || json!({ "task": actions::to_json(task) }),
        || describe(&snapshot, task, log.as_deref(), &ccb),
    )
}

/// The task as text. `log` has the whole output of its last failure.
fn describe(snapshot: &Snapshot, task: &Task, log: Option<&Path>, ccb: &str) -> String {
    let (word, style) = state(snapshot, task);
    let unchecked = task.unchecked();
    let why = unchecked.map(|why| format!(": {}", clean_line(&why.to_string())));
    let mut lines = vec![
        format!("{BOLD}{} {}{BOLD:#}", task.id, clean_line(&task.subject)),
        format!("{style}{word}{style:#}{}", why.unwrap_or_default()),
    ];
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{DIM}{name:<12}{DIM:#}{value}"));
        }
    };
    field(
        "owner",
        task.owner.as_deref().map(clean_line).unwrap_or_default(),
    );
    field("waits for", join(&snapshot.open_blockers(task.id)));
    field("blocked by", join(&snapshot.blockers(task.id)));
    field("blocks", join(&snapshot.dependents(task.id)));
    if task.priority() != 0 {
        field("priority", task.priority().to_string());
    }
    field(
        "run",
        task.run_command().map(clean_line).unwrap_or_default(),
    );
    field(
        "verify",
        task.verify_command().map(clean_line).unwrap_or_default(),
    );
    let again = format!("{ccb} task retry {}", task.id);
    if let Some(why) = task.parked() {
        field("parked", failure_lines(why, log, Some(&again)));
    } else if let Some(last) = task.attempts().last() {
        let (number, why) = (task.attempts().len(), failure_lines(&last.why, log, None));
        field("attempts", format!("{number}, the last one: {why}"));
    }
    if let Some(lease) = task.lease() {
        let until = lease
            .expires_at
            .map(|end| format!(", until {}", rfc3339(end)));
        let run = lease.run.map(|run| format!(", run {run}"));
        let more = [run, until].into_iter().flatten().collect::<String>();
        field("lease", format!("token {}{more}", lease.token));
    }
    let other: Vec<String> = task
        .other_metadata()
        .map(|(key, value)| format!("{}={}", clean_line(key), clean_line(&value.to_string())))
        .collect();
    field("metadata", other.join(" "));
    if !task.description.is_empty() {
        lines.push(String::new());
        lines.push(quoted(&task.description));
    }
    lines.join("\n")
}
