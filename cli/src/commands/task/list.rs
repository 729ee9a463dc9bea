use clap::Args;
use coordinator::actions::task as actions;
use store::Failure;
use taskboard::{Snapshot, Status, Task, Unchecked};
use term::table::{self, Cell};

use super::join;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{CYAN, DIM, GREEN, PLAIN, RED, YELLOW, clean_line, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only tasks with this status (pending, in_progress, completed)
    #[arg(long)]
    status: Option<String>,
    /// Only tasks of this owner
    #[arg(long, value_name = "AGENT")]
    owner: Option<String>,
    /// Only tasks that can be claimed now
    #[arg(long)]
    ready: bool,
    /// Also tasks that are marked as internal
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &ListArgs, context: &mut Context) -> Result<Exit, Failure> {
    let status: Option<Status> = args.status.as_deref().map(str::parse).transpose()?;
    let listing = actions::list(context)?;
    let snapshot = &listing.snapshot;
    let tasks: Vec<&Task> = snapshot
        .tasks()
        .filter(|task| args.all || !task.is_internal())
        .filter(|task| status.is_none_or(|status| task.status == status))
        .filter(|task| args.owner.is_none() || task.owner == args.owner)
        .filter(|task| !args.ready || snapshot.is_ready(task))
        .collect();
    let json = || listing.to_json(&tasks);
    let create = context.out.command("task create SUBJECT");
    let doctor = context.out.command("doctor");
    let text = || {
        if tasks.is_empty() && snapshot.unreadable().is_empty() {
            return format!("no tasks yet. Add one: {create}");
        }
        let mut rows: Vec<[Cell; 5]> = tasks.iter().map(|task| row(snapshot, task)).collect();
        for id in snapshot.unreadable().keys() {
            let empty = || Cell::new("", PLAIN);
            let state = Cell::new("✘ unreadable", RED);
            rows.push([
                Cell::new(id.to_string(), PLAIN),
                state,
                empty(),
                empty(),
                empty(),
            ]);
        }
        let heads = ["ID", "STATE", "SUBJECT", "OWNER", "WAITS FOR"];
        format!(
            "{}\n\n{}",
            table::render(heads, &rows, 2, terminal_width()),
            counts(snapshot)
        )
    };
    context.out.answer(json, text)?;
    for (id, bad) in snapshot.unreadable() {
        let detail = &bad.detail;
        let warning = format!("task {id} is unreadable ({detail}); see: {doctor}");
        context.out.warn(warning);
    }
    let list = context.board().name().to_string();
    for warning in tasks
        .iter()
        .filter_map(|task| actions::warning(task, &list))
    {
        context.out.warn(clean_line(&warning));
    }
    for cycle in &listing.cycles {
        let ids = join(cycle);
        context.out.warn(format!("tasks {ids} wait for each other"));
    }
    Ok(Exit::Done)
}

/// A task's state in one word for people, with its style.
pub(super) fn state(snapshot: &Snapshot, task: &Task) -> (&'static str, anstyle::Style) {
    match task.status {
        Status::Completed if task.unchecked().is_some() => (Unchecked::MARK, YELLOW),
        Status::Completed => ("✔ done", GREEN),
        Status::InProgress => ("● in progress", YELLOW),
        Status::Pending if task.parked().is_some() => ("‖ parked", RED),
        Status::Pending if !snapshot.open_blockers(task.id).is_empty() => ("◌ blocked", DIM),
        Status::Pending if task.owner.is_some() => ("◐ assigned", CYAN),
        Status::Pending => ("○ ready", CYAN),
    }
}

fn row(snapshot: &Snapshot, task: &Task) -> [Cell; 5] {
    let (word, style) = state(snapshot, task);
    let faded = if task.status == Status::Completed {
        DIM
    } else {
        PLAIN
    };
    let waits_for = match task.status {
        Status::Completed => String::new(),
        _ => join(&snapshot.open_blockers(task.id)),
    };
    [
        Cell::new(task.id.to_string(), faded),
        Cell::new(word, style),
        Cell::new(&task.subject, faded),
        Cell::new(task.owner.as_deref().unwrap_or_default(), faded),
        Cell::new(waits_for, PLAIN),
    ]
}

fn counts(snapshot: &Snapshot) -> String {
    let mut words: Vec<(&str, usize)> = Vec::new();
    let shown = snapshot.tasks().filter(|task| !task.is_internal());
    let mut total = 0;
    for task in shown {
        total += 1;
        let word = state(snapshot, task)
            .0
            .split_once(' ')
            .map_or("", |(_, word)| word);
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    let parts: Vec<String> = words
        .iter()
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    let noun = if total == 1 { "task" } else { "tasks" };
    format!("{total} {noun}: {}", parts.join(", "))
}
