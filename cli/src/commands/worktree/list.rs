use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use store::Failure;
use worktrees::{Changes, Entry, TreeStatus, Trees};

use super::{binder, style, to_json};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{CYAN, DIM, PLAIN, age, terminal_width};
use crate::table::{self, Cell};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Also worktrees that were removed
    #[arg(long)]
    all: bool,
    /// Do not look into the worktrees (faster)
    #[arg(long)]
    quick: bool,
}

/// A tree with what was found in it.
struct Row {
    entry: Entry,
    changes: Option<Changes>,
    size: Option<u64>,
}

/// How many trees are looked into at the same time.
const AT_ONCE: usize = 4;

pub(crate) fn run(args: &ListArgs, context: &mut Context) -> Result<Exit, Failure> {
    let trees = context.trees()?;
    let board = context.board();
    binder(&board, &trees);
    let entries = trees.list()?;
    let shown: Vec<Entry> = entries
        .into_iter()
        .filter(|entry| args.all || entry.status != TreeStatus::Removed)
        .collect();
    let rows = look(&trees, &shown, args.quick);
    let json = || {
        let rows: Vec<Value> = rows
            .iter()
            .map(|row| {
                let mut json = to_json(&row.entry);
                if let Some(changes) = &row.changes {
                    json["changes"] = changes.to_json();
                }
                if let Some(size) = row.size {
                    json["size"] = size.into();
                }
                json
            })
            .collect();
        json!({ "worktrees": rows })
    };
    let text = || {
        if rows.is_empty() {
            return format!("no worktrees; {CYAN}`ccb worktree create NAME`{CYAN:#} makes one");
        }
        let cells: Vec<_> = rows.iter().map(cells).collect();
        let heads = [
            "NAME", "STATUS", "CHANGES", "AGE", "TASK", "AGENT", "SIZE", "BRANCH",
        ];
        table::render(heads, &cells, 2, terminal_width())
    };
    context.out.done(json, text)
}

fn look(trees: &Trees, entries: &[Entry], quick: bool) -> Vec<Row> {
    let one = |entry: Entry| {
        let there = !quick && entry.is_live() && Path::new(&entry.path).is_dir();
        let changes = (!quick && entry.is_live()).then(|| trees.changes_of(&entry));
        let size = there.then(|| store::tree::size(Path::new(&entry.path)).ok());
        Row {
            entry,
            changes,
            size: size.flatten(),
        }
    };
    let mut rows = Vec::new();
    for some in entries.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let looking: Vec<_> = some
                .iter()
                .map(|entry| scope.spawn(|| one(entry.clone())))
                .collect();
            rows.extend(looking.into_iter().filter_map(|row| row.join().ok()));
        });
    }
    rows
}

fn cells(row: &Row) -> [Cell; 8] {
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
