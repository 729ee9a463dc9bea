//! What the directory, the home, the list, the team and the caller are called.

use std::path::{Path, PathBuf};

use runs::env;
use store::Failure;
use store::name::Name;
use team::Teams;
use uuid::Uuid;
use worktrees::Repository;

use super::Asked;

pub(super) fn working_directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let current = swarm::scope::dir()
        .map_err(|error| Failure::failed("io", format!("no working directory: {error}")))?;
    let Some(given) = given else {
        return Ok(current);
    };
    let directory = current.join(given);
    if !directory.is_dir() {
        let message = format!("-C {}: there is no such directory", given.display());
        return Err(Failure::usage("bad_directory", message));
    }
    Ok(directory)
}

pub(super) fn home_path(asked: &Asked, directory: &Path) -> Result<PathBuf, Failure> {
    let given = asked.home.clone().or_else(|| env::path(env::HOME));
    let given = given.or_else(|| env::path(env::CLAUDE_CONFIG_DIR));
    let path = match (given, env::path("HOME")) {
        (Some(path), _) => directory.join(path),
        (None, Some(home)) => home.join(".claude"),
        (None, None) => {
            return Err(
                Failure::usage("no_home", "neither $HOME nor $CCB_HOME is set")
                    .with_hint("say where to keep state with --home DIR"),
            );
        }
    };
    if path.to_str().is_none() {
        let message = format!("{}: the home's path is not valid UTF-8", path.display());
        return Err(Failure::usage("bad_path", message)
            .with_hint("say where to keep state with --home DIR"));
    }
    Ok(path)
}

/// The task list to use; the first source that says anything wins.
pub(super) fn list_name(
    asked: &Asked,
    team: Option<&str>,
    here: Here<'_>,
) -> Result<Name, Failure> {
    if let Some(name) = &asked.list {
        return Ok(Name::new("list", name)?);
    }
    if let Some(name) = &asked.team {
        return Ok(Name::new("team", name)?);
    }
    let named_by = |variable: &str| {
        let name = env::var(variable)?;
        Some(Name::new("list", &name).map_err(|error| {
            let message = format!("${variable}: {error}");
            Failure::usage("bad_name", message).with_hint("unset it or give --list NAME")
        }))
    };
    if let Some(name) = named_by(env::TASK_LIST).or_else(|| named_by(env::TEAM)) {
        return name;
    }
    if let Some(team) = team {
        return Ok(Name::new("team", team)?);
    }
    named_by(env::SESSION).unwrap_or_else(|| own_name(here))
}

/// The repository a command works in, if it works in one.
#[derive(Clone, Copy)]
pub(super) struct Here<'w> {
    pub(super) repository: Option<&'w Repository>,
    /// What teams record of it.
    pub(super) name: Option<&'w str>,
}

/// The team that the session this is part of made and leads.
pub(super) fn led_team(teams: &Teams) -> Option<String> {
    let session = env::var(env::SESSION)?;
    let teams = teams.list().ok()?;
    let leads = |team: &team::Listed| {
        let roster = team.roster.as_ref().ok();
        roster.is_some_and(|roster| roster.lead_session_id.as_ref() == Some(&session))
    };
    teams.into_iter().find(leads).map(|team| team.name)
}

/// What the list and the team of this place are called when nobody says.
pub(super) fn own_name(here: Here<'_>) -> Result<Name, Failure> {
    match (here.repository, here.name) {
        (Some(repository), Some(name)) => Ok(repository_list(repository, name)),
        (Some(repository), None) => {
            let place = repository.common_dir.display();
            let message = format!("{place}: the path is not valid UTF-8");
            Err(Failure::usage("bad_path", message))
        }
        (None, _) => Ok(Name::new("list", "default")?),
    }
}

/// `<directory>-<8 hex digits of what teams record of the repository>`. That is the path of the
/// shared git directory, or an address whose last part stands for the directory: clones on other
/// machines may be called otherwise.
fn repository_list(repository: &Repository, name: &str) -> Name {
    let is_place = repository.common_dir.to_str() == Some(name);
    let main_tree = repository.main_tree.as_deref();
    let named_after = match is_place {
        true => main_tree.unwrap_or(&repository.common_dir),
        false => Path::new(name.strip_suffix(".git").unwrap_or(name)),
    };
    let directory = named_after
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("repo");
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes());
    Name::derived(directory, &id.simple().to_string()[..8])
}

pub(super) fn agent_name(asked: &Asked) -> Result<Name, Failure> {
    let named = asked.agent.clone().or_else(|| env::var(env::AGENT));
    let name = named.unwrap_or_else(|| "user".into());
    Ok(Name::new("agent", &name)?)
}
