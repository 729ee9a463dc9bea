use clap::Subcommand;
use coordinator::workplace::SetUpWish;
use serde_json::{Value, json};
use store::Failure;
use worktrees::CreateRequest;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, GREEN, clean_line, short_commit};

/// What can be done with the pool.
#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// Make worktrees until there are as many as worktree.pool says
    Fill {
        /// As many as this instead
        #[arg(value_parser = clap::value_parser!(u16).range(0..=64))]
        count: Option<u16>,
    },
    /// Show the worktrees that are ready to be handed out
    #[command(visible_alias = "ls")]
    List,
}

pub(crate) fn run(command: &PoolCommand, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        PoolCommand::Fill { count } => fill(*count, context),
        PoolCommand::List => list(context),
    }
}

fn fill(count: Option<u16>, context: &mut Context) -> Result<Exit, Failure> {
    let trees = context.trees()?;
    let want = count.map_or(context.worktree_settings().pool, usize::from);
    let directory = trees.main_tree().to_owned();
    let request = CreateRequest {
        base: context.tree_base(None),
        set_up: context.set_up(&SetUpWish::Nothing)?,
        ..CreateRequest::new(None, &directory)
    };
    let filled = trees.fill_pool(want, &request)?;
    let json = || {
        json!({"pool": {
            "made": filled.made,
            "retired": filled.retired,
            "ready": filled.ready,
            "why": filled.why_not,
        }})
    };
    let text = || {
        let mut text = format!(
            "{GREEN}✔{GREEN:#} {BOLD}{}{BOLD:#} ready ({} made, {} retired)",
            filled.ready, filled.made, filled.retired
        );
        if let Some(why) = &filled.why_not {
            text.push_str(&format!("\n  not more: {}", clean_line(why)));
        }
        text
    };
    context.out.done(json, text)
}

fn list(context: &mut Context) -> Result<Exit, Failure> {
    let pool = context.trees()?.pool()?;
    let json = || {
        let rows: Vec<Value> = pool
            .iter()
            .map(|tree| {
                json!({
                    "name": tree.name,
                    "path": tree.path,
                    "base": tree.base,
                    "createdAt": tree.created_at,
                })
            })
            .collect();
        json!({ "pool": rows })
    };
    let text = || {
        if pool.is_empty() {
            return format!("the pool is empty; {CYAN}`ccb worktree pool fill`{CYAN:#} fills it");
        }
        let line = |tree: &worktrees::PoolTree| {
            let base = short_commit(&tree.base);
            format!("{} {base}", clean_line(&tree.path))
        };
        pool.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    context.out.done(json, text)
}
