use clap::Args;
use serde_json::json;
use store::Failure;
use taskboard::Task;
use worktrees::{Entry, Slug};

use super::{NameArgs, binder, to_json};
use crate::commands::task::{id, line};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, GREEN};

#[derive(Debug, Args)]
pub(crate) struct BindArgs {
    /// The worktree's name
    name: String,
    /// The task's id
    #[arg(allow_negative_numbers = true)]
    task: String,
}

pub(crate) fn bind(args: &BindArgs, context: &mut Context) -> Result<Exit, Failure> {
    let slug = Slug::new(&args.name)?;
    let task = id(&args.task)?;
    let (board, trees) = (context.board(), context.trees()?);
    let binder = binder(&board, &trees);
    let (entry, task) = binder.bind(&slug, task, context.named_agent())?;
    answer(&entry, &task, "bound to", context)
}

pub(crate) fn unbind(args: &NameArgs, context: &mut Context) -> Result<Exit, Failure> {
    let slug = Slug::new(&args.name)?;
    let (board, trees) = (context.board(), context.trees()?);
    let binder = binder(&board, &trees);
    let (entry, task) = binder.unbind(&slug)?;
    answer(&entry, &task, "no longer bound to", context)
}

fn answer(entry: &Entry, task: &Task, how: &str, context: &mut Context) -> Result<Exit, Failure> {
    let json = || json!({"worktree": to_json(entry), "task": task.to_json()});
    let name = &entry.name;
    let text = || {
        format!(
            "{GREEN}✔{GREEN:#} {BOLD}{name}{BOLD:#} is {how} {}",
            line(task)
        )
    };
    context.out.done(json, text)
}
