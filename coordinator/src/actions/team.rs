//! Teams: made and deleted.

use project::rights::not_yours;
use project::workplace::{Who, Workplace};
use runs::env;
use runs::{Deleted, Force, delete_team};
use serde_json::{Value, json};
use store::Failure;
use store::name::Name;
use team::{NewTeam, Roster, Team};

/// The existing team of this name.
pub fn team(name: &str, workplace: &Workplace) -> Result<Team, Failure> {
    Ok(workplace.team_named(Name::new("team", name)?))
}

/// Makes a team.
pub fn create(
    name: &str,
    description: Option<String>,
    workplace: &Workplace,
) -> Result<Roster, Failure> {
    let new = NewTeam {
        description: description.filter(|text| !text.is_empty()),
        cwd: Some(directory(workplace)?),
        lead_session_id: env::var(env::SESSION),
    };
    Ok(team(name, workplace)?.create(&new)?)
}

/// Deletes a team with its tasks, mail and runs.
pub fn delete(name: &str, force: bool, workplace: &Workplace) -> Result<Deleted, Failure> {
    let team = team(name, workplace)?;
    if workplace.who() != Who::Person && *team.name() != workplace.team()? {
        let message = format!("{} does not lead team {name}", workplace.agent());
        return Err(not_yours(message, "an agent can delete its own team only"));
    }
    let lock = fanout::lock_of(&workplace.home().team(team.name()));
    if !force && lock.exists() && store::lock::is_held(&lock)? {
        let message = format!("a plan runs on the board of team {name}");
        let hint = "wait until it has ended, or stop it with Ctrl-C where it runs";
        return Err(Failure::refused("in_use", message).with_hint(hint));
    }
    // Outside of a repository there are no worktrees.
    let trees = workplace.trees().ok();
    let board = workplace.team_board(&team);
    let force = force.then(|| Force {
        by: workplace.agent(),
        own_run: workplace.run(),
        grace: workplace.agent_settings().stop_grace,
    });
    Ok(delete_team(&team, &board, trees.as_ref(), force.as_ref())?)
}

/// The reply to the deletion of a team.
pub fn deleted_json(deleted: &Deleted) -> Value {
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
        "stopped": deleted.stopped,
        "alive": living,
        "worktrees": worktrees,
    })
}

/// The command's directory, as text: it goes into a JSON file.
pub fn directory(workplace: &Workplace) -> Result<String, Failure> {
    let directory = &workplace.directory;
    directory.to_str().map(str::to_owned).ok_or_else(|| {
        let message = format!("{}: the path is not valid UTF-8", directory.display());
        Failure::usage("bad_path", message)
    })
}
