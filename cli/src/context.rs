//! What the flags, the environment and the settings files say together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use coordinator::run::{Agents, Surroundings};
use mailbox::{MailOptions, Mailbox};
use store::Failure;
use store::atomic::Durability;
use store::home::Home;
use store::name::Name;
use store::settings::{AgentSettings, RuntimeSettings, Settings, WorktreeSettings};
use swarm::starter::Starter;
use swarm::trust::{Item, Places, Trust};
use swarm::{Team, TeamError, TeamOptions};
use taskboard::{Board, BoardOptions, Caller};
use uuid::Uuid;
use worktrees::{Repository, TreeOptions, Trees};

use crate::args::{Cli, Global};
use crate::commands::Command;
use crate::env;
use crate::output::Output;
use crate::own::{self, Own};
use crate::rights::Who;

/// Everything a command needs to know about its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) out: Output,
    /// The directory the command works in.
    pub(crate) directory: PathBuf,
    home: Home,
    settings: Settings,
    list: Name,
    /// Somebody said which list, and not by naming a team.
    list_named: bool,
    /// The list to use without a team that is led.
    alone: Name,
    /// The team as it was named; checked when a command needs it.
    team: Option<String>,
    /// It was not named: the session leads it.
    leads: bool,
    /// Whether it was named for this very command.
    team_is_explicit: bool,
    /// What a team is named after that nobody named, and what teams belong to.
    repository: Option<Repository>,
    agent: Name,
    agent_named: bool,
    /// The agent this is part of.
    own: Option<Own>,
}

impl Context {
    pub(crate) fn new(cli: &Cli, out: Output) -> Result<Self, Failure> {
        let global = &cli.global;
        let directory = working_directory(global.directory.as_deref())?;
        let (home, own) = own::find(global, || Ok(Home::new(home_path(global, &directory)?)?))?;
        let repository = Repository::discover(&directory);
        let team = match own.as_ref().map(|own| own.team(global)).transpose()? {
            Some(Some(team)) => Some(team.to_string()),
            _ => global.team.clone().or_else(|| env::var(env::TEAM)),
        };
        let led = if team.is_none() {
            led_team(&home)
        } else {
            None
        };
        let alone = match (
            own.as_ref().and_then(|own| own.place.as_ref()),
            &global.list,
        ) {
            (Some(place), None) => place.list.clone(),
            _ => list_name(global, None, repository.as_ref())?,
        };
        let list = match &led {
            Some(led) => list_name(global, Some(led), repository.as_ref())?,
            None => alone.clone(),
        };
        let agent = match &own {
            Some(own) => own.agent(global)?,
            None => agent_name(global)?,
        };
        let agent_named = own.is_some() || global.agent.is_some() || env::var(env::AGENT).is_some();
        let mut files = vec![home.settings()];
        if let Some(tree) = repository
            .as_ref()
            .and_then(|repo| repo.main_tree.as_deref())
        {
            files.push(tree.join(".claude/ccb.json"));
            files.push(tree.join(".claude/ccb.local.json"));
        }
        let settings = Settings::load(&files)?;
        let context = Self {
            out,
            directory,
            home,
            settings,
            list,
            list_named: global.list.is_some() || env::var(env::TASK_LIST).is_some(),
            leads: led.is_some(),
            alone,
            team: team.or(led),
            team_is_explicit: global.team.is_some(),
            repository,
            agent,
            agent_named,
            own,
        };
        let repairs = matches!(cli.command, Some(Command::Doctor(_)));
        context.check_team(global, repairs)?;
        Ok(context)
    }

    /// One for unit tests, whatever the environment says: a team in an empty home.
    #[cfg(test)]
    pub(crate) fn for_tests(home: &Path, team: &str, agent: &str) -> Self {
        Self {
            out: Output::new(false),
            directory: home.to_owned(),
            home: Home::new(home.to_owned()).unwrap(),
            settings: Settings::default(),
            list: Name::new("list", team).unwrap(),
            list_named: false,
            alone: Name::new("list", "default").unwrap(),
            team: Some(team.to_owned()),
            leads: false,
            team_is_explicit: true,
            repository: None,
            agent: Name::new("agent", agent).unwrap(),
            agent_named: true,
            own: None,
        }
    }

    /// Whoever names a team acts in it, and a team belongs to one repository. Only whoever
    /// `repairs` it gets past a roster that nobody can read.
    fn check_team(&self, global: &Global, repairs: bool) -> Result<(), Failure> {
        let other_list = global.list.is_some() || env::var(env::TASK_LIST).is_some();
        let surrounding = || env::var(env::TEAM).filter(|_| !other_list);
        let Some(name) = global.team.clone().or_else(surrounding) else {
            return Ok(());
        };
        let Ok(name) = Name::new("team", &name) else {
            // Not the name of a list either, which has been told where it matters.
            return Ok(());
        };
        match repairs {
            true => self.check_here_if_readable(name),
            false => self.check_here(name),
        }
    }

    /// Refuses a team of another repository, as far as anybody can tell.
    fn check_here_if_readable(&self, team: Name) -> Result<(), Failure> {
        match self.team_named(team).enter() {
            Ok(_) | Err(TeamError::NotFound { .. } | TeamError::Corrupt { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses a team of another repository. What has no roster belongs to none.
    fn check_here(&self, team: Name) -> Result<(), Failure> {
        match self.team_named(team).enter() {
            Ok(_) | Err(TeamError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The team of this name, as seen from where the command works.
    pub(crate) fn team_named(&self, name: Name) -> Team {
        let repository = self.repository.as_ref();
        let common_dir = repository.and_then(|repository| repository.common_dir.to_str());
        let options = TeamOptions {
            repository: common_dir.map(str::to_owned),
            lock_timeout: self.settings.lock_timeout,
            ..TeamOptions::default()
        };
        Team::new(&self.home, name, options)
    }

    /// The task list of a team.
    pub(crate) fn team_board(&self, team: &Team) -> Board {
        Board::new(&self.home, team.name().clone(), self.board_options())
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The team: the one named by flag or environment, a session's own, or the repository's.
    pub(crate) fn team(&self) -> Result<Name, Failure> {
        let team = match (&self.team, Self::session_id()) {
            (Some(name), _) => Name::new("team", name)?,
            (None, Some(id)) => {
                let start: String = id.chars().take(8).collect();
                Name::new("team", &format!("session-{start}"))?
            }
            (None, None) => own_name(self.repository.as_ref())?,
        };
        team.check_no_clash("team", &self.home.teams())?;
        Ok(team)
    }

    /// Whether the team was named for this very command.
    pub(crate) fn team_is_explicit(&self) -> bool {
        self.team_is_explicit
    }

    /// The agents of the team.
    pub(crate) fn agents(&self) -> Result<Agents, Failure> {
        let team = self.team()?;
        self.check_here(team.clone())?;
        Ok(self.agents_of(team))
    }

    /// The same for whoever repairs the team: a roster nobody can read keeps nobody out.
    pub(crate) fn agents_to_repair(&self) -> Result<Agents, Failure> {
        let team = self.team()?;
        self.check_here_if_readable(team.clone())?;
        Ok(self.agents_of(team))
    }

    fn agents_of(&self, team: Name) -> Agents {
        let surroundings = Surroundings {
            home: self.home.clone(),
            team,
            list: self.list.clone(),
            directory: self.directory.clone(),
            own_run: self.run().map(str::to_owned),
        };
        Agents::new(surroundings, &self.settings).called_from_hook(crate::hooks::in_hook())
    }

    /// Sees to runs whose guard and host are both gone, before anything else is done: their
    /// tasks are free again, their parents are told. What cannot be done now is done later.
    pub(crate) fn settle_dead_runs(&self) {
        let mut teams: Vec<Name> = self.team().into_iter().collect();
        if !teams.contains(&self.list) && self.home.team(&self.list).is_dir() {
            teams.push(self.list.clone());
        }
        for team in teams {
            match self.agents_of(team).reconcile() {
                Ok(settled) => {
                    for run in settled {
                        tracing::info!(id = run.id, "a run nobody saw to is settled");
                    }
                }
                Err(error) => tracing::warn!(%error, "runs that ended are not settled"),
            }
        }
    }

    /// Ways to run agents that the settings name.
    pub(crate) fn runtimes(&self) -> &BTreeMap<String, RuntimeSettings> {
        &self.settings.runtimes
    }

    /// The team's mail.
    pub(crate) fn mailbox(&self) -> Result<Mailbox, Failure> {
        self.mailbox_of(&self.team()?, self.mail_options())
    }

    /// What the settings say about mail.
    pub(crate) fn mail_options(&self) -> MailOptions {
        MailOptions {
            durability: Durability::of(self.settings.mail_durable),
            lock_timeout: self.settings.lock_timeout,
            secret_filter: self.starter().secret_filter(),
            ..MailOptions::default()
        }
    }

    /// The mail of a team; refused if that is another repository's.
    pub(crate) fn mailbox_of(&self, team: &Name, options: MailOptions) -> Result<Mailbox, Failure> {
        self.check_here(team.clone())?;
        Ok(Mailbox::new(&self.home, team, options))
    }

    /// Acts as this agent from now on.
    pub(crate) fn act_as(&mut self, agent: Name) {
        self.agent = agent;
        self.agent_named = true;
    }

    /// The same, but in this team and on its list.
    pub(crate) fn in_team(&self, team: &Name) -> Self {
        Self {
            list: team.clone(),
            team: Some(team.to_string()),
            leads: false,
            ..self.clone()
        }
    }

    /// Where the repository's own files are, as text; what belongs to it is named after it.
    pub(crate) fn common_dir(&self) -> Option<&str> {
        self.repository.as_ref()?.common_dir.to_str()
    }

    /// Leads this team from now on, and works on its list unless another was named.
    pub(crate) fn lead(&mut self, team: &Name) {
        if !self.list_named {
            self.list = team.clone();
        }
        if self.team.is_none() {
            self.leads = true;
            self.team = Some(team.to_string());
        }
    }

    /// Leads no team any more. One that was named stays.
    pub(crate) fn lead_none(&mut self) {
        if std::mem::replace(&mut self.leads, false) {
            self.team = None;
            self.list = self.alone.clone();
        }
    }

    /// The team that was named, by flag or environment.
    pub(crate) fn named_team(&self) -> Option<&str> {
        self.team.as_deref()
    }

    pub(crate) fn board(&self) -> Board {
        Board::new(&self.home, self.list.clone(), self.board_options())
    }

    fn board_options(&self) -> BoardOptions {
        BoardOptions {
            secret_filter: self.starter().secret_filter(),
            ..BoardOptions::from(&self.settings)
        }
    }

    /// This process, whose secrets are not written down.
    pub(crate) fn starter(&self) -> Starter {
        Starter::this_process(&self.settings.agents.redact)
    }

    /// The worktrees of the repository the command works in.
    pub(crate) fn trees(&self) -> Result<Trees, Failure> {
        let worktree = &self.settings.worktree;
        let options = TreeOptions {
            durability: Durability::of(worktree.durable),
            trash_days: worktree.trash_days,
            gc_days: worktree.gc_days,
            rescue_max_bytes: worktree.rescue_max_bytes,
            secret_filter: self.starter().secret_filter(),
            ..TreeOptions::default()
        };
        Ok(Trees::discover(&self.directory, options)?)
    }

    /// The settings under `agents`.
    pub(crate) fn agent_settings(&self) -> &AgentSettings {
        &self.settings.agents
    }

    /// All settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the user trusts of the repository the command works in.
    pub(crate) fn trust(&self) -> Option<Trust> {
        let repository = self.repository.as_ref()?.common_dir.to_str()?;
        Some(Trust::new(
            &self.home,
            repository,
            self.settings.lock_timeout,
        ))
    }

    /// Whether something that `file` says may be used: the file is the user's own, or the user
    /// trusts the thing, which `item` describes.
    pub(crate) fn may_use(
        &self,
        file: &Path,
        item: impl FnOnce(Places<'_>) -> Item,
    ) -> Result<bool, Failure> {
        if file == self.own_settings() {
            return Ok(true);
        }
        let (Some(trust), Some(root)) = (self.trust(), self.main_tree()) else {
            return Ok(false);
        };
        let id = item(Places::one(root)).id();
        Ok(trust.granted()?.contains(&id))
    }

    /// The main working tree of the repository the command works in.
    pub(crate) fn main_tree(&self) -> Option<&Path> {
        self.repository.as_ref()?.main_tree.as_deref()
    }

    pub(crate) fn worktree_settings(&self) -> &WorktreeSettings {
        &self.settings.worktree
    }

    /// The settings file that is the user's own, not a repository's.
    pub(crate) fn own_settings(&self) -> PathBuf {
        self.home.settings()
    }

    /// The session this command is part of, if something says so.
    pub(crate) fn session_id() -> Option<String> {
        env::var(env::SESSION)
    }

    /// The run of the engine this command is part of, if it is.
    pub(crate) fn run(&self) -> Option<&str> {
        self.own.as_ref().map(|own| own.run.as_str())
    }

    /// What the caller is, from which follows what it may do.
    pub(crate) fn who(&self) -> Who {
        self.own.as_ref().map_or(Who::Person, |own| own.who)
    }

    /// The list, if the caller is an agent whose tasks are on another one.
    pub(crate) fn foreign_list(&self) -> Option<&Name> {
        let place = self.own.as_ref()?.place.as_ref()?;
        (self.list != place.list && self.list != place.team).then_some(&self.list)
    }

    /// Whether somebody said who is acting.
    pub(crate) fn named_agent(&self) -> Option<&str> {
        self.agent_named.then_some(self.agent.as_str())
    }

    /// Who is acting.
    pub(crate) fn agent(&self) -> &str {
        self.agent.as_str()
    }

    /// Who is acting, as a name.
    pub(crate) fn agent_name(&self) -> &Name {
        &self.agent
    }

    pub(crate) fn caller(&self, token: Option<u64>, force: bool) -> Caller {
        Caller {
            agent: self.agent.to_string(),
            token,
            force,
        }
    }
}

fn working_directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let current = std::env::current_dir()
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

fn home_path(global: &Global, directory: &Path) -> Result<PathBuf, Failure> {
    let given = global.home.clone().or_else(|| env::path(env::HOME));
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
fn list_name(
    global: &Global,
    team: Option<&str>,
    repository: Option<&Repository>,
) -> Result<Name, Failure> {
    if let Some(name) = &global.list {
        return Ok(Name::new("list", name)?);
    }
    if let Some(name) = &global.team {
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
    named_by(env::SESSION).unwrap_or_else(|| own_name(repository))
}

/// The team that the session this is part of made and leads.
fn led_team(home: &Home) -> Option<String> {
    let session = env::var(env::SESSION)?;
    let teams = swarm::list(home).ok()?;
    let leads = |team: &swarm::Listed| {
        let roster = team.roster.as_ref().ok();
        roster.is_some_and(|roster| roster.lead_session_id.as_ref() == Some(&session))
    };
    teams.into_iter().find(leads).map(|team| team.name)
}

/// What the list and the team of this place are called when nobody says.
fn own_name(repository: Option<&Repository>) -> Result<Name, Failure> {
    match repository {
        Some(repository) => repository_list(repository),
        None => Ok(Name::new("list", "default")?),
    }
}

/// `<directory>-<8 hex digits of the shared git directory's path>`.
fn repository_list(repository: &Repository) -> Result<Name, Failure> {
    let Some(common_dir) = repository.common_dir.to_str() else {
        let message = format!(
            "{}: the path is not valid UTF-8",
            repository.common_dir.display()
        );
        return Err(Failure::usage("bad_path", message));
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

fn agent_name(global: &Global) -> Result<Name, Failure> {
    let named = global.agent.clone().or_else(|| env::var(env::AGENT));
    let name = named.unwrap_or_else(|| "user".into());
    Ok(Name::new("agent", &name)?)
}
