use clap::Args;
use coordinator::actions::team;
use store::Failure;

use crate::ask::{self, Unattended};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, GREEN, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The team's name
    name: String,
    /// Even if members are alive or tasks are in progress; stops running agents first
    #[arg(long)]
    force: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: &DeleteArgs, context: &mut Context) -> Result<Exit, Failure> {
    // The command reports a missing team without asking first.
    if team::team(&args.name, context)?.enter().is_ok() {
        let name = clean_line(&args.name);
        let question =
            format!("Delete team {name:?} with its tasks, mail and agents' logs for good?");
        ask::confirm(&question, args.yes, Unattended::GoesOn, context)?;
    }
    let deleted = team::delete(&args.name, args.force, context)?;
    let json = || team::deleted_json(&deleted);
    let text = || {
        let (name, tasks) = (&deleted.roster.name, deleted.tasks);
        let noun = if tasks == 1 { "task" } else { "tasks" };
        format!("{GREEN}✔{GREEN:#} deleted team {BOLD}{name}{BOLD:#} with {tasks} {noun}")
    };
    context.out.answer(json, text)?;
    for tree in deleted.trees.iter().filter(|tree| !tree.removed) {
        let (path, why) = (
            clean_line(&tree.path),
            tree.why.as_deref().unwrap_or_default(),
        );
        let why = clean_line(why);
        let note = format!("{YELLOW}note:{YELLOW:#} the worktree {path} stays: {why}");
        context.out.note(&note);
    }
    for name in &deleted.stopped {
        let name = clean_line(name);
        let note = format!("{YELLOW}note:{YELLOW:#} {name} was running and has been stopped");
        context.out.note(&note);
    }
    for one in &deleted.living {
        let (name, why) = (&one.name, one.why.in_words());
        context
            .out
            .warn(format!("{name} was alive {why}; it has not been stopped"));
    }
    Ok(Exit::Done)
}
