use clap::Subcommand;
use project::workplace::SetUpWish;
use serde_json::{Value, json};
use store::Failure;
use worktrees::{CreateRequest, GivenBack, Slug};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, GREEN, clean_line, short_commit};

/// The subcommands of `ccb worktree pool`.
#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// Create worktrees until the pool has as many as worktree.pool says
    Fill {
        /// This number instead of worktree.pool
        #[arg(value_parser = clap::value_parser!(u16).range(0..=64))]
        count: Option<u16>,
    },
    /// Return a worktree whose work is part of HEAD to the pool; its branch is deleted
    Return {
        /// The worktree
        #[arg(value_name = "WORKTREE")]
        name: String,
    },
    /// List the worktrees that are ready
    #[command(visible_alias = "ls")]
    List,
}

pub(crate) fn run(command: &PoolCommand, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        PoolCommand::Fill { count } => fill(*count, context),
        PoolCommand::Return { name } => give_back(name, context),
        PoolCommand::List => list(context),
    }
}

fn give_back(name: &str, context: &mut Context) -> Result<Exit, Failure> {
    let trees = context.trees()?;
    let slug = Slug::new(name)?;
    let changes = trees.changes(&slug)?;
    let head = trees.resolve("HEAD")?;
    let landed = match &changes.head {
        Some(commit) if trees.contains(&head, commit)? => commit,
        _ => {
            let why = format!("worktree {slug} has commits that are not part of HEAD");
            let hint = format!("`ccb worktree merge {slug}` lands them first");
            return Err(Failure::refused("has_changes", why).with_hint(hint));
        }
    };
    let set_up = context.set_up(&SetUpWish::Nothing)?;
    match trees.give_back(&slug, landed, &set_up)? {
        GivenBack::Yes => context.out.done(
            || json!({"returned": slug.as_str()}),
            || format!("{GREEN}✔{GREEN:#} {BOLD}{slug}{BOLD:#} is in the pool"),
        ),
        GivenBack::No(why) => {
            let why = format!("worktree {slug} cannot be used again: {why}");
            Err(Failure::refused("not_reusable", why))
        }
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
