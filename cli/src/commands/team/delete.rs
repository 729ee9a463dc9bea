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
    // Outside a repository there are no trees.
    let trees = context.trees().ok();
    let board = context.team_board(&team);
    let deleted = delete_team(&team, &board, trees.as_ref(), args.force)?;
    let json = || {
        let living = deleted.living.iter();
        let living: Vec<Value> = living
            .map(|one| json!({"name": one.name, "why": one.why.as_str()}))
            .collect();
        let trees = deleted.trees.iter();
        let worktrees: Vec<Value> = trees
            .map(|tree| {
                json!({"name": tree.name, "path": tree.path, "removed": tree.removed, "why": tree.why})
            })
            .collect();
        json!({
            "team": deleted.roster.to_json(),
            "deleted": true,
            "tasks": deleted.tasks,
            "alive": living,
            "worktrees": worktrees,
        })
    };
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
        let note = format!("{YELLOW}note:{YELLOW:#} the tree {path} stays: {why}");
        context.out.note(&note);
    }
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
