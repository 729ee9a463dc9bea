//! Where somebody works: home, settings, repository, team, list, and who it is.
//!
//! What flags, environment and settings files say together is found out once; board, mail,
//! roster, trees and agents are made from it.

mod board;
pub mod hooks;
mod names;
mod new_tree;
mod own;
mod teams;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mailbox::{MailOptions, Mailbox};
use store::Failure;
use store::home::Home;
use store::name::Name;
use store::settings::{AgentSettings, MatesIn, RuntimeSettings, Settings, WorktreeSettings};
use swarm::redact::{Secrets, secret_values};
use swarm::run::RunOptions;
use swarm::run::SharedPlace;
use swarm::starter::Starter;
use swarm::trust::{Item, Places, Trust};
use taskboard::{Board, BoardOptions, Caller, LeaseTerm};
use team::{Team, TeamError, Teams};
use worktrees::{Repository, Trees};

use self::names::{Here, agent_name, home_path, led_team, list_name, own_name, working_directory};
pub use self::new_tree::{SetUpWish, TreeWish};
use self::own::Own;
pub use crate::who::Who;
use runs::env;
use runs::{Agents, Backends, Surroundings, mail_options, tree_options};

/// What was said for this one call, by flags.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The team, and its list.
    pub team: Option<String>,
    /// The task list.
    pub list: Option<String>,
    /// Who acts.
    pub agent: Option<String>,
    /// Where state is kept.
    pub home: Option<PathBuf>,
    /// Where to work.
    pub directory: Option<PathBuf>,
    /// The database the board is in, or `files`.
    pub board: Option<String>,
    /// It is about repairs: a roster that nobody can read keeps nobody out.
    pub repairs: bool,
}

/// Where somebody works, and who it is.
#[derive(Debug, Clone)]
pub struct Workplace {
    /// The directory the command works in.
    pub directory: PathBuf,
    home: Home,
    settings: Settings,
    backends: Backends,
    teams: Teams,
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
    /// What the claims of a client from outside are known by.
    outside: Option<String>,
}

/// The files that say how things are done here; later ones win.
fn settings_files(home: &Home, repository: Option<&Repository>) -> Vec<PathBuf> {
    let mut files = vec![home.settings()];
    if let Some(tree) = repository.and_then(|repo| repo.main_tree.as_deref()) {
        files.push(tree.join(".claude/ccb.json"));
        files.push(tree.join(".claude/ccb.local.json"));
    }
    files
}

/// The database at this address, as these settings and this repository use it.
fn place_at(board: String, settings: &Settings, repository: Option<&Repository>) -> SharedPlace {
    let name = &settings.worktree.remote;
    let url = repository.and_then(|repository| worktrees::remote_url(repository, name));
    SharedPlace {
        board,
        lease_ms: u64::try_from(settings.lease.as_millis()).unwrap_or(u64::MAX),
        // The git remote that carries results to other machines, if the repository has it.
        remote: url.map(|_| name.clone()),
    }
}

impl Workplace {
    /// What flags, environment and settings say together.
    pub fn open(asked: &Asked) -> Result<Self, Failure> {
        let directory = working_directory(asked.directory.as_deref())?;
        let (home, own) = own::find(asked, || Ok(Home::new(home_path(asked, &directory)?)?))?;
        let repository = Repository::discover(&directory);
        let settings = Settings::load(&settings_files(&home, repository.as_ref()))?;
        let address = board::address(asked, &settings, &home, own.is_some())?;
        let place = |board| place_at(board, &settings, repository.as_ref());
        let variable = swarm::starter::own_variable;
        let (place, lock_timeout) = (address.clone().map(place), settings.lock_timeout);
        let backends = Backends::open(&home, place, lock_timeout, variable)?;
        if let (Some(address), Some(_)) = (&address, &asked.board) {
            backends.check_argument(address)?;
        }
        let teams = backends.teams(repository.as_ref(), lock_timeout);
        let here = Here {
            repository: repository.as_ref(),
            name: teams.repository(),
        };
        let team = match own.as_ref().map(|own| own.team(asked)).transpose()? {
            Some(Some(team)) => Some(team.to_string()),
            _ => asked.team.clone().or_else(|| env::var(env::TEAM)),
        };
        let led = if team.is_none() {
            led_team(&teams)
        } else {
            None
        };
        let alone = match (own.as_ref().and_then(|own| own.place.as_ref()), &asked.list) {
            (Some(place), None) => place.list.clone(),
            _ => list_name(asked, None, here)?,
        };
        let list = match &led {
            Some(led) => list_name(asked, Some(led), here)?,
            None => alone.clone(),
        };
        let agent = match &own {
            Some(own) => own.agent(asked)?,
            None => agent_name(asked)?,
        };
        let agent_named = own.is_some() || asked.agent.is_some() || env::var(env::AGENT).is_some();
        let workplace = Self {
            directory,
            home,
            settings,
            backends,
            teams,
            list,
            list_named: asked.list.is_some() || env::var(env::TASK_LIST).is_some(),
            leads: led.is_some(),
            alone,
            team: team.or(led),
            team_is_explicit: asked.team.is_some(),
            repository,
            agent,
            agent_named,
            own,
            outside: None,
        };
        workplace.check_team(asked)?;
        Ok(workplace)
    }

    /// One for unit tests, whatever the environment says: a team in an empty home.
    #[doc(hidden)]
    pub fn for_tests(home: &Path, team: &str, agent: &str) -> Result<Self, Failure> {
        let directory = home.to_owned();
        let home = Home::new(directory.clone())?;
        let backends = Backends::files(&home);
        Ok(Self {
            directory,
            settings: Settings::default(),
            teams: backends.teams(None, Settings::default().lock_timeout),
            backends,
            home,
            list: Name::new("list", team)?,
            list_named: false,
            alone: Name::new("list", "default")?,
            team: Some(team.to_owned()),
            leads: false,
            team_is_explicit: true,
            repository: None,
            agent: Name::new("agent", agent)?,
            agent_named: true,
            own: None,
            outside: None,
        })
    }

    /// Whoever names a team acts in it, and a team belongs to one repository. Only whoever
    /// repairs it gets past a roster that nobody can read.
    fn check_team(&self, asked: &Asked) -> Result<(), Failure> {
        let other_list = asked.list.is_some() || env::var(env::TASK_LIST).is_some();
        let surrounding = || env::var(env::TEAM).filter(|_| !other_list);
        let Some(name) = asked.team.clone().or_else(surrounding) else {
            return Ok(());
        };
        let Ok(name) = Name::new("team", &name) else {
            // Not the name of a list either, which has been told where it matters.
            return Ok(());
        };
        self.check_here(name, asked.repairs)
    }

    /// Refuses a team of another repository. What has no roster belongs to none, and for `repairs`
    /// neither does one whose roster nobody can read.
    fn check_here(&self, team: Name, repairs: bool) -> Result<(), Failure> {
        match self.team_named(team).enter() {
            Ok(_) | Err(TeamError::NotFound { .. }) => Ok(()),
            Err(TeamError::Corrupt { .. }) if repairs => Ok(()),
            // Whoever prepares a database, or finds out what is wrong with it, finds none ready.
            Err(TeamError::Backend(_)) if repairs => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The task list of a team.
    pub fn team_board(&self, team: &Team) -> Board {
        self.board_named(team.name().clone())
    }

    /// Where all state is.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The team: the one named by flag or environment, a session's own, or the repository's.
    pub fn team(&self) -> Result<Name, Failure> {
        let team = match (&self.team, Self::session_id()) {
            (Some(name), _) => Name::new("team", name)?,
            (None, Some(id)) => {
                let start: String = id.chars().take(8).collect();
                Name::new("team", &format!("session-{start}"))?
            }
            (None, None) => own_name(self.here())?,
        };
        team.check_no_clash("team", &self.home.teams())?;
        Ok(team)
    }

    /// Whether the team was named for this very command.
    pub fn team_is_explicit(&self) -> bool {
        self.team_is_explicit
    }

    /// The agents of the team.
    pub fn agents(&self) -> Result<Agents, Failure> {
        let team = self.team()?;
        self.check_here(team.clone(), false)?;
        Ok(self.agents_of(team))
    }

    /// The same for whoever repairs the team: a roster nobody can read keeps nobody out.
    pub fn agents_to_repair(&self) -> Result<Agents, Failure> {
        let team = self.team()?;
        self.check_here(team.clone(), true)?;
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
        let agents = Agents::new(surroundings, &self.settings, self.backends.clone());
        agents.called_from_hook(hooks::in_hook())
    }

    /// The address of a remote of the repository, in a form that is the same on every machine.
    pub fn remote_address(&self, name: &str) -> Option<String> {
        let url = worktrees::remote_url(self.repository.as_ref()?, name)?;
        Some(worktrees::plain_address(&url))
    }

    /// What the repository is known by on a board that several machines share.
    pub fn shared_repository(&self) -> Option<String> {
        let remote = &self.settings.worktree.remote;
        self.is_in_database().then(|| self.remote_address(remote))?
    }

    /// Refuses a board that several machines share where results could not get to the others.
    pub fn check_shared(&self) -> Result<(), Failure> {
        if !self.is_in_database() || self.shared_repository().is_some() {
            return Ok(());
        }
        let remote = &self.settings.worktree.remote;
        let message = format!(
            "{} has no remote {remote:?}, by which results get to other machines",
            self.directory.display()
        );
        Err(Failure::usage("no_remote", message).with_hint(
            "add one with `git remote add origin URL`, name another in `worktree.remote`, or use \
             the files of this machine with --board files",
        ))
    }

    /// The same board, list and person, seen from another repository.
    pub fn moved_to(&self, directory: &Path) -> Result<Self, Failure> {
        let repository = Repository::discover(directory);
        let settings = Settings::load(&settings_files(&self.home, repository.as_ref()))?;
        let place = |board| place_at(board, &settings, repository.as_ref());
        let backends = self.backends.with_place(place);
        Ok(Self {
            directory: directory.to_owned(),
            teams: backends.teams(repository.as_ref(), settings.lock_timeout),
            backends,
            repository,
            settings,
            ..self.clone()
        })
    }

    /// What ends a claim that is made here for `holder`, a run or a client.
    pub fn lease_of(&self, holder: &str) -> LeaseTerm {
        self.backends.lease_of(holder)
    }

    /// Sees to runs whose guard and host are both gone, before anything else is done: their
    /// tasks are free again, their parents are told. What cannot be done now is done later.
    pub fn settle_dead_runs(&self) {
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
    pub fn runtimes(&self) -> &BTreeMap<String, RuntimeSettings> {
        &self.settings.runtimes
    }

    /// The team's mail.
    pub fn mailbox(&self) -> Result<Mailbox, Failure> {
        self.mailbox_of(&self.team()?, self.mail_options())
    }

    /// What the settings say about mail.
    pub fn mail_options(&self) -> MailOptions {
        mail_options(&RunOptions::from(&self.settings), &self.starter())
    }

    /// The mail of a team; refused if that is another repository's.
    pub fn mailbox_of(&self, team: &Name, options: MailOptions) -> Result<Mailbox, Failure> {
        self.check_here(team.clone(), false)?;
        Ok(self.mailbox_to_look_at(team, options))
    }

    /// The mail of a team, whosever it is: where the board is, there is the mail.
    pub fn mailbox_to_look_at(&self, team: &Name, options: MailOptions) -> Mailbox {
        self.backends.mail(team, options)
    }

    /// Acts as this agent from now on.
    pub fn act_as(&mut self, agent: Name) {
        self.agent = agent;
        self.agent_named = true;
    }

    /// The same, but in this team and on its list.
    pub fn in_team(&self, team: &Name) -> Self {
        Self {
            list: team.clone(),
            team: Some(team.to_string()),
            leads: false,
            ..self.clone()
        }
    }

    /// Where the repository's own files are, as text; what belongs to it is named after it.
    pub fn common_dir(&self) -> Option<&str> {
        self.repository.as_ref()?.common_dir.to_str()
    }

    /// Leads this team from now on, and works on its list unless another was named.
    pub fn lead(&mut self, team: &Name) {
        if !self.list_named {
            self.list = team.clone();
        }
        if self.team.is_none() {
            self.leads = true;
            self.team = Some(team.to_string());
        }
    }

    /// Leads no team any more. One that was named stays.
    pub fn lead_none(&mut self) {
        if std::mem::replace(&mut self.leads, false) {
            self.team = None;
            self.list = self.alone.clone();
        }
    }

    /// The list that was named, by its own flag or by that of a team.
    pub fn named_list(&self) -> Option<Name> {
        let named = self.list_named || self.team.is_some();
        named.then(|| self.list.clone())
    }

    /// The team that was named, by flag or environment.
    pub fn named_team(&self) -> Option<&str> {
        self.team.as_deref()
    }

    /// The list's board.
    pub fn board(&self) -> Board {
        self.board_named(self.list.clone())
    }

    fn board_named(&self, list: Name) -> Board {
        let options = BoardOptions {
            secret_filter: self.starter().secret_filter(),
            ..BoardOptions::from(&self.settings)
        };
        self.backends.board(list, options)
    }

    /// Where board, mail and rosters are kept.
    pub fn backends(&self) -> &Backends {
        &self.backends
    }

    /// Whether the board is in a database.
    pub fn is_in_database(&self) -> bool {
        self.backends.place().is_some()
    }

    /// This process, whose secrets are not written down.
    pub fn starter(&self) -> Starter {
        Starter::this_process(&self.settings.agents.redact)
    }

    /// What may not be in any report.
    pub fn secrets(&self) -> Arc<Secrets> {
        let named = &self.settings.agents.redact;
        Arc::new(Secrets::new(secret_values(
            swarm::starter::own_environment(),
            named,
        )))
    }

    /// The worktrees of the repository the command works in.
    pub fn trees(&self) -> Result<Trees, Failure> {
        let options = tree_options(&RunOptions::from(&self.settings), &self.starter());
        Ok(Trees::discover(&self.directory, options)?)
    }

    /// The settings under `agents`.
    pub fn agent_settings(&self) -> &AgentSettings {
        &self.settings.agents
    }

    /// The same for a session that says where its mates run.
    #[must_use]
    pub fn with_mates_in(mut self, mates_in: MatesIn) -> Self {
        self.settings.agents.mates_in = mates_in;
        self
    }

    /// All settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the user trusts of the repository the command works in.
    pub fn trust(&self) -> Option<Trust> {
        let repository = self.repository.as_ref()?.common_dir.to_str()?;
        Some(Trust::new(
            &self.home,
            repository,
            self.settings.lock_timeout,
        ))
    }

    /// Whether something that `file` says may be used: the file is the user's own, or the user
    /// trusts the thing, which `item` describes.
    pub fn may_use(
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
    pub fn main_tree(&self) -> Option<&Path> {
        self.repository.as_ref()?.main_tree.as_deref()
    }

    /// The settings under `worktree`.
    pub fn worktree_settings(&self) -> &WorktreeSettings {
        &self.settings.worktree
    }

    /// The settings file that is the user's own, not a repository's.
    pub fn own_settings(&self) -> PathBuf {
        self.home.settings()
    }

    /// The session this command is part of, if something says so.
    pub fn session_id() -> Option<String> {
        env::var(env::SESSION)
    }

    /// The run of the engine this command is part of, if it is.
    pub fn run(&self) -> Option<&str> {
        self.own.as_ref().map(|own| own.run.as_str())
    }

    /// What holds the claims that are made here: the run, or the client that is served.
    pub fn holder(&self) -> Option<&str> {
        self.run().or(self.outside.as_deref())
    }

    /// Claims made here are held by this client.
    pub fn hold_claims_for(&mut self, client: &str) {
        self.outside = Some(client.to_owned());
    }

    /// What the caller is, from which follows what it may do.
    pub fn who(&self) -> Who {
        self.own.as_ref().map_or(Who::Person, |own| own.who)
    }

    /// The list, if the caller is an agent whose tasks are on another one.
    pub fn foreign_list(&self) -> Option<&Name> {
        let place = self.own.as_ref()?.place.as_ref()?;
        (self.list != place.list && self.list != place.team).then_some(&self.list)
    }

    /// The flag, and a blank, that a command needs to be about this list when it is given where
    /// this one was: `--team NAME `, `--list NAME `, or nothing.
    pub fn flag_for(&self, list: &str) -> String {
        let own = !self.leads && !self.list_named && self.team.is_none();
        if list == self.alone.as_str() && own {
            return String::new();
        }
        let team = Name::new("team", list).is_ok_and(|team| match self.is_in_database() {
            true => self.team_named(team).roster().is_ok(),
            false => self.home.team(&team).is_dir(),
        });
        match team {
            true => format!("--team {list} "),
            false => format!("--list {list} "),
        }
    }

    /// Whether somebody said who is acting.
    pub fn named_agent(&self) -> Option<&str> {
        self.agent_named.then_some(self.agent.as_str())
    }

    /// Who is acting.
    pub fn agent(&self) -> &str {
        self.agent.as_str()
    }

    /// Who is acting, as a name.
    pub fn agent_name(&self) -> &Name {
        &self.agent
    }

    /// Who is acting, as the board wants to know it.
    pub fn caller(&self, token: Option<u64>, force: bool) -> Caller {
        Caller {
            agent: self.agent.to_string(),
            token,
            force,
        }
    }
}
