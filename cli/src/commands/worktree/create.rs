use clap::Args;
use coordinator::actions::worktree as actions;
use coordinator::binding::Binder;
use coordinator::workplace::hooks::TreeRemover;
use coordinator::workplace::{SetUpWish, TreeWish};
use serde_json::json;
use store::Failure;
use worktrees::{RemoveRequest, Slug, Trees};

use super::{fill_behind, to_json};
use crate::commands::task::{id, line};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, clean_line, short_commit};

/// What a new tree is to be like.
#[derive(Debug, Default, Args)]
pub(crate) struct NewTree {
    /// Start from this branch, tag or commit [default: your HEAD, or worktree.baseRef]
    #[arg(long, value_name = "REF", allow_hyphen_values = true)]
    base: Option<String>,
    /// Check out only this path (may be repeated) [default: worktree.sparsePaths]
    #[arg(long, value_name = "PATH")]
    sparse: Vec<String>,
    #[command(flatten)]
    set_up: SetUpArgs,
}

#[derive(Debug, Default, Args)]
pub(crate) struct SetUpArgs {
    /// Run this command in the new worktree [default: worktree.setup]
    #[arg(long, value_name = "CMD", conflicts_with = "no_setup")]
    setup: Option<String>,
    /// Run no set-up command
    #[arg(long)]
    no_setup: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name; one is made up if you give none
    #[arg(allow_hyphen_values = true)]
    name: Option<String>,
    /// Bind this task to it, and start the task if it can start
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    task: Option<String>,
    #[command(flatten)]
    new: NewTree,
}

pub(crate) fn run(args: &CreateArgs, context: &mut Context) -> Result<Exit, Failure> {
    let task = args.task.as_deref().map(id).transpose()?;
    let name = args.name.as_deref().map(Slug::new).transpose()?;
    let trees = context.trees()?;
    let board = context.board();
    if let Some(task) = task {
        // Before anything is made for it.
        board.snapshot()?.require(task)?;
    }
    let mut created = actions::create(name, &args.new.wish(), context)?;
    let mut bound = None;
    if let Some(task) = task {
        let (board, trees) = (&board, &trees);
        let slug = Slug::new(&created.entry.name)?;
        match (Binder { board, trees }).bind(&slug, task, context.named_agent()) {
            Ok((entry, task)) => {
                created.entry = entry;
                bound = Some(task);
            }
            Err(error) => {
                // It was made for this task alone, and nobody has seen it yet.
                if created.created {
                    take_back(&slug, created.entry.hook_based, trees, context)?;
                }
                return Err(error.into());
            }
        }
    }
    fill_behind(&created, context);
    for note in &created.notes {
        tracing::info!("{note}");
    }
    let json = || {
        let mut tree = to_json(&created.entry);
        tree["created"] = created.created.into();
        tree["durationMs"] = created.duration_ms.into();
        let mut answer = json!({ "worktree": tree });
        if let Some(task) = &bound {
            answer["task"] = task.to_json();
        }
        answer
    };
    let text = || {
        let verb = if created.created { "created" } else { "found" };
        let entry = &created.entry;
        let path = clean_line(&entry.path);
        let mut text = format!(
            "{GREEN}✔{GREEN:#} {verb} {BOLD}{}{BOLD:#} {path}",
            entry.name
        );
        if let (Some(branch), Some(base)) = (&entry.branch, &entry.base) {
            let base = short_commit(base);
            text.push_str(&format!("\n  {DIM}branch {branch}, from {base}{DIM:#}"));
        }
        if let Some(task) = &bound {
            text.push_str(&format!("\n  {}", line(task)));
        }
        text
    };
    context.out.done(json, text)
}

/// Removes a tree that has just been made and nobody has seen.
fn take_back(
    slug: &Slug,
    hook_based: bool,
    trees: &Trees,
    context: &Context,
) -> Result<(), Failure> {
    let remover = TreeRemover::new(hook_based, context)?;
    let hook = remover.hook();
    let request = RemoveRequest {
        discard: hook_based,
        hook: hook.as_ref().map(|hook| hook as _),
        ..RemoveRequest::default()
    };
    trees.remove(slug, &request)?;
    Ok(())
}

impl NewTree {
    /// As the library takes it.
    pub(crate) fn wish(&self) -> TreeWish {
        TreeWish {
            base: self.base.clone(),
            sparse: self.sparse.clone(),
            set_up: self.set_up.wish(),
        }
    }
}

impl SetUpArgs {
    /// As the library takes it.
    pub(crate) fn wish(&self) -> SetUpWish {
        match &self.setup {
            _ if self.no_setup => SetUpWish::Nothing,
            Some(command) => SetUpWish::Command(command.clone()),
            None => SetUpWish::Usual,
        }
    }
}
