use clap::Args;
use coordinator::delete_team;
use serde_json::{Value, json};

use super::team;
use crate::context::Context;
use crate::error::{CommandError, Exit};
use crate::output::{BOLD, GREEN, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The team's name
    name: String,
    /// Even if members are alive or tasks are in progress
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &DeleteArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let team = team(&args.name, context)?;
    let deleted = delete_team(&team, &context.team_board(&team), args.force)?;
    let json = || {
        let living = deleted.living.iter();
        let living: Vec<Value> = living
            .map(|one| json!({"name": one.name, "why": one.why.as_str()}))
            .collect();
        json!({
            "team": deleted.roster.to_json(),
            "deleted": true,
            "tasks": deleted.tasks,
            "alive": living,
        })
    };
    let text = || {
        let (name, tasks) = (&deleted.roster.name, deleted.tasks);
        let noun = if tasks == 1 { "task" } else { "tasks" };
        format!("{GREEN}✔{GREEN:#} deleted team {BOLD}{name}{BOLD:#} with {tasks} {noun}")
    };
    context.out.answer(json, text)?;
    for one in &deleted.living {
        let name = clean_line(&one.name);
        let note = format!(
            "{YELLOW}warning:{YELLOW:#} {name} was alive {}; it has not been stopped",
            one.why.in_words()
        );
        context.out.note(&note);
    }
    Ok(Exit::Done)
}
