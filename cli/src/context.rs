//! What the flags, the environment and the settings files say together.

use std::path::{Path, PathBuf};

use store::home::Home;
use store::name::Name;
use store::settings::{Settings, WorktreeSettings};
use taskboard::{Board, BoardOptions, Caller};
use uuid::Uuid;
use worktrees::{Repository, TreeOptions, Trees};

use crate::args::{Cli, Global};
use crate::env;
use crate::error::{CommandError, Exit};
use crate::output::Output;

/// Everything a command needs to know about its surroundings.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) out: Output,
    /// The directory the command works in.
    pub(crate) directory: PathBuf,
    home: Home,
    settings: Settings,
    list: Name,
    /// As on the command line.
    team: Option<String>,
    agent: Name,
    agent_named: bool,
}

impl Context {
    pub(crate) fn new(cli: &Cli, out: Output) -> Result<Self, CommandError> {
        let global = &cli.global;
        let directory = working_directory(global.directory.as_deref())?;
        let home = Home::new(home_path(global, &directory)?)?;
        let repository = Repository::discover(&directory);
        let list = list_name(global, repository.as_ref())?;
        let agent = agent_name(global)?;
        let agent_named = global.agent.is_some() || env::var(env::AGENT).is_some();
        let mut files = vec![home.settings()];
        if let Some(tree) = repository
            .as_ref()
            .and_then(|repo| repo.main_tree.as_deref())
        {
            files.push(tree.join(".claude/ccb.json"));
            files.push(tree.join(".claude/ccb.local.json"));
        }
        let settings = Settings::load(&files)?;
        Ok(Self {
            out,
            directory,
            home,
            settings,
            list,
            team: global.team.clone(),
            agent,
            agent_named,
        })
    }

    pub(crate) fn board(&self) -> Board {
        Board::new(
            &self.home,
            self.list.clone(),
            BoardOptions::from(&self.settings),
        )
    }

    /// The worktrees of the repository the command works in.
    pub(crate) fn trees(&self) -> Result<Trees, CommandError> {
        let worktree = &self.settings.worktree;
        let options = TreeOptions {
            trash_days: worktree.trash_days,
            gc_days: worktree.gc_days,
            rescue_max_bytes: worktree.rescue_max_bytes,
            ..TreeOptions::default()
        };
        Ok(Trees::discover(&self.directory, options)?)
    }

    pub(crate) fn worktree_settings(&self) -> &WorktreeSettings {
        &self.settings.worktree
    }

    /// The settings file that is the user's own, not a repository's.
    pub(crate) fn own_settings(&self) -> PathBuf {
        self.home.settings()
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The session this command is part of, if something says so.
    pub(crate) fn session_id() -> Option<String> {
        env::var(env::SESSION)
    }

    /// The team: the one named, a session's own, or the repository's.
    pub(crate) fn team(&self) -> Result<Name, CommandError> {
        if let Some(name) = self.team.clone().or_else(|| env::var(env::TEAM)) {
            return Ok(Name::new("team", &name)?);
        }
        if let Some(id) = Self::session_id() {
            let start: String = id.chars().take(8).collect();
            return Ok(Name::new("team", &format!("session-{start}"))?);
        }
        match Repository::discover(&self.directory) {
            Some(repository) => repository_list(&repository),
            None => Ok(Name::new("team", "default")?),
        }
    }

    /// Whether somebody said who is acting.
    pub(crate) fn named_agent(&self) -> Option<&str> {
        self.agent_named.then_some(self.agent.as_str())
    }

    /// Who is acting.
    pub(crate) fn agent(&self) -> &str {
        self.agent.as_str()
    }

    pub(crate) fn caller(&self, token: Option<u64>, force: bool) -> Caller {
        Caller {
            agent: self.agent.to_string(),
            token,
            force,
        }
    }
}

fn working_directory(given: Option<&Path>) -> Result<PathBuf, CommandError> {
    let current = std::env::current_dir()
        .map_err(|error| CommandError::failed("io", format!("no working directory: {error}")))?;
    let Some(given) = given else {
        return Ok(current);
    };
    let directory = current.join(given);
    if !directory.is_dir() {
        let message = format!("-C {}: there is no such directory", given.display());
        return Err(CommandError::usage("bad_directory", message));
    }
    Ok(directory)
}

fn home_path(global: &Global, directory: &Path) -> Result<PathBuf, CommandError> {
    let given = global.home.clone().or_else(|| env::path(env::HOME));
    let given = given.or_else(|| env::path(env::CLAUDE_CONFIG_DIR));
    let path = match (given, env::path("HOME")) {
        (Some(path), _) => directory.join(path),
        (None, Some(home)) => home.join(".claude"),
        (None, None) => {
            return Err(
                CommandError::usage("no_home", "neither $HOME nor $CCB_HOME is set")
                    .with_hint("say where to keep state with --home DIR"),
            );
        }
    };
    if path.to_str().is_none() {
        let message = format!("{}: the home's path is not valid UTF-8", path.display());
        return Err(CommandError::usage("bad_path", message)
            .with_hint("say where to keep state with --home DIR"));
    }
    Ok(path)
}

/// The task list to use; the first source that says anything wins.
fn list_name(global: &Global, repository: Option<&Repository>) -> Result<Name, CommandError> {
    if let Some(name) = &global.list {
        return Ok(Name::new("list", name)?);
    }
    if let Some(name) = &global.team {
        return Ok(Name::new("team", name)?);
    }
    for variable in [env::TASK_LIST, env::TEAM, env::SESSION] {
        if let Some(name) = env::var(variable) {
            return Name::new("list", &name).map_err(|error| {
                let message = format!("${variable}: {error}");
                CommandError::usage("bad_name", message).with_hint("unset it or give --list NAME")
            });
        }
    }
    match repository {
        Some(repository) => repository_list(repository),
        None => Ok(Name::new("list", "default")?),
    }
}

/// `<directory>-<8 hex digits of the shared git directory's path>`.
fn repository_list(repository: &Repository) -> Result<Name, CommandError> {
    let Some(common_dir) = repository.common_dir.to_str() else {
        let message = format!(
            "{}: the path is not valid UTF-8",
            repository.common_dir.display()
        );
        return Err(CommandError::usage("bad_path", message));
    };
    let named_after = repository
        .main_tree
        .as_deref()
        .unwrap_or(&repository.common_dir);
    let directory = named_after
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("repo");
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, common_dir.as_bytes());
    Ok(Name::derived(directory, &id.simple().to_string()[..8]))
}

fn agent_name(global: &Global) -> Result<Name, CommandError> {
    let fixed = env::var(env::AGENT);
    if let (Some(fixed), Some(given), true) =
        (&fixed, &global.agent, env::var(env::RUN_ID).is_some())
        && fixed != given
    {
        return Err(CommandError::Other {
            exit: Exit::Refused,
            kind: "not_yours",
            message: format!("this agent is {fixed} and cannot act as {given}"),
            hint: Some("leave out --as".into()),
        });
    }
    let name = global
        .agent
        .clone()
        .or(fixed)
        .unwrap_or_else(|| "user".into());
    Ok(Name::new("agent", &name)?)
}
