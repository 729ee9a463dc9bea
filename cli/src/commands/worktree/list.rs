use clap::Args;
use coordinator::actions::trees::{self, ListOptions, ListedTree};
use store::Failure;
use term::table::{self, Cell};

use super::style;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{CYAN, DIM, PLAIN, age, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Also worktrees that were removed
    #[arg(long)]
    all: bool,
    /// Do not look into the worktrees (faster)
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &ListArgs, context: &mut Context) -> Result<Exit, Failure> {
    let options = ListOptions {
        removed: args.all,
        quick: args.quick,
    };
    let rows = trees::list(options, context)?;
    let json = || trees::list_json(&rows);
    let text = || {
        if rows.is_empty() {
            return format!("no worktrees. Create one: {CYAN}ccb worktree create NAME{CYAN:#}");
        }
        let cells: Vec<_> = rows.iter().map(cells).collect();
        let heads = [
            "NAME", "STATUS", "CHANGES", "AGE", "TASK", "AGENT", "SIZE", "BRANCH",
        ];
        table::render(heads, &cells, 2, terminal_width())
    };
    context.out.done(json, text)
}

fn cells(row: &ListedTree) -> [Cell; 8] {
    let entry = &row.entry;
    let status = entry.under_way().unwrap_or(entry.status.as_str());
    let (changes, style) = match &row.changes {
        None => (String::new(), PLAIN),
        Some(changes) => (changes.describe(), style(changes)),
    };
    [
        Cell::new(&entry.name, PLAIN),
        Cell::new(status, DIM),
        Cell::new(changes, style),
        Cell::new(age(&entry.created_at), DIM),
        Cell::new(entry.task_id.as_deref().unwrap_or_default(), PLAIN),
        Cell::new(entry.agent.as_deref().unwrap_or_default(), PLAIN),
        Cell::new(row.size.map(bytes).unwrap_or_default(), DIM),
        Cell::new(entry.branch.as_deref().unwrap_or_default(), DIM),
    ]
}

fn bytes(size: u64) -> String {
    let units = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")];
    match units.iter().find(|(length, _)| size >= *length) {
        Some((length, name)) => format!("{} {name}", size / length),
        None => format!("{size} B"),
    }
}
