use clap::Args;
use coordinator::actions::trees;
use store::Failure;
use taskboard::Task;
use worktrees::{Entry, Slug};

use super::NameArgs;
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
    let (slug, task) = (Slug::new(&args.name)?, id(&args.task)?);
    let (entry, task) = trees::bind(&slug, task, trees::beginner(context), context)?;
    answer(&entry, &task, "bound to", context)
}

pub(crate) fn unbind(args: &NameArgs, context: &mut Context) -> Result<Exit, Failure> {
    let (entry, task) = trees::unbind(&Slug::new(&args.name)?, context)?;
    answer(&entry, &task, "no longer bound to", context)
}

fn answer(entry: &Entry, task: &Task, how: &str, context: &mut Context) -> Result<Exit, Failure> {
    let json = || trees::bound_json(entry, task);
    let name = &entry.name;
    let text = || {
        format!(
            "{GREEN}✔{GREEN:#} {BOLD}{name}{BOLD:#} is {how} {}",
            line(task)
        )
    };
    context.out.done(json, text)
}
