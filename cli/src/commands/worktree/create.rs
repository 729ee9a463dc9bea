use clap::Args;
use coordinator::actions::trees;
use project::workplace::{SetUpWish, TreeWish};
use store::Failure;
use worktrees::Slug;

use crate::commands::task::{id, line};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, clean_line, short_commit};

/// The properties of a new worktree.
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
    /// The worktree's name [default: a generated one]
    #[arg(allow_hyphen_values = true)]
    name: Option<String>,
    /// Bind this task to it, and start the task if it is ready
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    task: Option<String>,
    #[command(flatten)]
    new: NewTree,
}

pub(crate) fn run(args: &CreateArgs, context: &mut Context) -> Result<Exit, Failure> {
    let task = args.task.as_deref().map(id).transpose()?;
    let name = args.name.as_deref().map(Slug::new).transpose()?;
    let task = task.map(|task| (task, trees::beginner(context)));
    let made = trees::create(name, task, &args.new.wish(), context)?;
    let json = || made.to_json();
    let text = || {
        let entry = &made.created.entry;
        let verb = match made.created.created {
            true => "created",
            false => "found",
        };
        let path = clean_line(&entry.path);
        let mut text = format!(
            "{GREEN}✔{GREEN:#} {verb} {BOLD}{}{BOLD:#} {path}",
            entry.name
        );
        if let (Some(branch), Some(base)) = (&entry.branch, &entry.base) {
            let base = short_commit(base);
            text.push_str(&format!("\n  {DIM}branch {branch}, from {base}{DIM:#}"));
        }
        if let Some(task) = &made.task {
            text.push_str(&format!("\n  {}", line(task)));
        }
        text
    };
    context.out.done(json, text)
}

impl NewTree {
    /// The request for the worktree, as the library takes it.
    pub(crate) fn wish(&self) -> TreeWish {
        TreeWish {
            base: self.base.clone(),
            sparse: self.sparse.clone(),
            set_up: self.set_up.wish(),
        }
    }
}

impl SetUpArgs {
    /// The request for the set-up, as the library takes it.
    pub(crate) fn wish(&self) -> SetUpWish {
        match &self.setup {
            _ if self.no_setup => SetUpWish::Nothing,
            Some(command) => SetUpWish::Command(command.clone()),
            None => SetUpWish::Usual,
        }
    }
}
