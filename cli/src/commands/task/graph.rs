use clap::{Args, ValueEnum};
use store::Failure;
use taskboard::{Graph, Snapshot};

use super::join;
use super::list::state;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, RED, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// How to draw it [default: tree, or json with --json]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Tree,
    Json,
    Dot,
    Mermaid,
}

pub(crate) fn run(args: &GraphArgs, context: &mut Context) -> Result<Exit, Failure> {
    let snapshot = context.board().snapshot()?;
    let graph = Graph::new(&snapshot);
    let default = if context.out.is_json() {
        Format::Json
    } else {
        Format::Tree
    };
    match args.format.unwrap_or(default) {
        Format::Json => context.out.json(&graph.to_json())?,
        Format::Dot => context.out.text(graph.to_dot().trim_end())?,
        Format::Mermaid => context.out.text(graph.to_mermaid().trim_end())?,
        Format::Tree => context.out.text(&tree(&snapshot, &graph))?,
    }
    Ok(Exit::Done)
}

fn tree(snapshot: &Snapshot, graph: &Graph<'_>) -> String {
    let mut lines = Vec::new();
    for branch in graph.tree() {
        let prefix = format!("{DIM}{}{DIM:#}", branch.prefix);
        let id = branch.id;
        let Some(task) = snapshot.get(id) else {
            lines.push(format!(
                "{prefix}{RED}✘{RED:#} {BOLD}{id}{BOLD:#} unreadable"
            ));
            continue;
        };
        let (word, style) = state(snapshot, task);
        let mark = word.split_whitespace().next().unwrap_or_default();
        let owner = task
            .owner
            .as_ref()
            .map(|owner| format!(" {DIM}@{}{DIM:#}", clean_line(owner)));
        let again = if branch.repeated {
            format!(" {DIM}(see above){DIM:#}")
        } else {
            String::new()
        };
        lines.push(format!(
            "{prefix}{style}{mark}{style:#} {BOLD}{id}{BOLD:#} {}{}{again}",
            clean_line(&task.subject),
            owner.unwrap_or_default(),
        ));
    }
    if lines.is_empty() {
        return "no tasks".into();
    }
    let path = graph.critical_path();
    if path.len() > 1 {
        lines.push(format!(
            "\nlongest chain left: {}",
            join(&path).replace(", ", " → ")
        ));
    }
    for cycle in graph.cycles() {
        lines.push(format!(
            "{YELLOW}!{YELLOW:#} tasks {} wait for each other",
            join(&cycle)
        ));
    }
    for (blocker, dependent) in snapshot.half_edges() {
        lines.push(format!(
            "{YELLOW}!{YELLOW:#} only one of {blocker} and {dependent} says that {blocker} blocks {dependent}"
        ));
    }
    lines.join("\n")
}
