//! The agents of one team.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mailbox::{MailOptions, Mailbox};
use store::atomic::Durability;
use store::home::Home;
use store::name::Name;
use store::settings::{LockMode, Settings};
use swarm::run::{self, Child, Exit, Meta, RunDir, RunError, RunOptions, RunState, SharedPlace};
use swarm::sandbox::{self, Confinement};
use swarm::starter::Starter;
use taskboard::{Board, BoardOptions, LeaseTerm};
use team::Team;
use worktrees::{Repository, TreeOptions, Trees};

use super::error::AgentError;
use super::guards::Guards;
use super::heartbeat::Heartbeat;
use crate::backends::Backends;
use crate::fleet::Fleet;
use crate::hooks::HookSource;

/// Where agents are started from.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// All state.
    pub home: Home,
    /// The team runs belong to.
    pub team: Name,
    /// The list tasks are on.
    pub list: Name,
    /// The directory the caller works in.
    pub directory: PathBuf,
    /// The run the caller is part of, which it cannot see to itself.
    pub own_run: Option<String>,
}

/// The agents of one team.
#[derive(Debug, Clone)]
pub struct Agents {
    pub(super) at: Surroundings,
    pub(super) options: RunOptions,
    pub(super) runs: PathBuf,
    /// Whoever starts agents here, and whose secrets are not written down.
    pub(super) starter: Starter,
    /// One for all who use these agents: it keeps the board in memory.
    board: Arc<Board>,
    /// The repository the caller works in, once it was found.
    repository: Arc<OnceLock<Repository>>,
    /// Guards that stay for the next run, if this process starts many.
    pub(super) guards: Option<Arc<Guards>>,
    pub(super) backends: Backends,
}

/// An agent as it is now.
#[derive(Debug, Clone)]
pub struct Listed {
    /// What is known about it.
    pub meta: Meta,
    /// Somebody supervises it.
    pub alive: bool,
}

impl Agents {
    /// The agents of the team `surroundings` name.
    pub fn new(surroundings: Surroundings, settings: &Settings, backends: Backends) -> Self {
        let options = RunOptions {
            shared: backends.place().cloned(),
            ..RunOptions::from(settings)
        };
        let starter = Starter::this_process(&settings.agents.redact);
        Self::with_options(surroundings, options, starter, backends)
    }

    fn with_options(
        surroundings: Surroundings,
        options: RunOptions,
        starter: Starter,
        backends: Backends,
    ) -> Self {
        let board = board_options(&options, &starter);
        Self {
            board: Arc::new(backends.board(surroundings.list.clone(), board)),
            runs: surroundings.home.team(&surroundings.team).join("runs"),
            at: surroundings,
            options,
            starter,
            repository: Arc::default(),
            guards: None,
            backends,
        }
    }

    /// Where board and mail are, if several machines share them.
    pub fn shared(&self) -> Option<&SharedPlace> {
        self.backends.place()
    }

    /// What ends a claim for the run `id`.
    pub(super) fn lease_of(&self, id: &str) -> LeaseTerm {
        self.backends.lease_of(id)
    }

    /// Keeps what `holder` has claimed its own, until the result is dropped; nothing where the
    /// kernel sees to that.
    pub fn heartbeat(&self, holder: &str) -> Option<Heartbeat> {
        let lease = self.shared()?.lease();
        Some(Heartbeat::start(self.board(), holder, lease))
    }

    /// The same for a process that starts one agent after another: guards stay for the next one.
    #[must_use]
    pub fn keeping_guards(mut self) -> Self {
        self.guards = Some(Arc::default());
        self
    }

    /// Lets guards go that have had nothing to do for a while.
    pub fn rest_guards(&self) {
        if let Some(guards) = &self.guards {
            guards.rest();
        }
    }

    /// The same for a caller that is part of a hook: no hooks run on its behalf, nor for the
    /// agents it starts, or a hook that starts agents would never come to an end.
    #[must_use]
    pub fn called_from_hook(mut self, in_hook: bool) -> Self {
        self.options.in_hook = in_hook;
        self
    }

    /// Where hooks come from for what is done in the name of `agent`.
    pub(super) fn hook_source(&self, agent: &str, run: Option<&str>) -> HookSource {
        HookSource {
            home: self.at.home.clone(),
            directory: self.at.directory.clone(),
            session: None,
            team: self.at.team.to_string(),
            agent: agent.to_owned(),
            run: run.map(str::to_owned),
            lock_timeout: self.lock_timeout(),
            in_hook: self.options.in_hook,
            starter: self.starter.clone(),
        }
    }

    /// The same team as a run of it sees it: with the list and the settings it was started
    /// with. `starter` is whoever acts.
    pub(crate) fn of_run(home: Home, meta: &Meta, starter: Starter) -> Result<Self, AgentError> {
        let surroundings = Surroundings {
            home,
            team: Name::new("team", &meta.team)?,
            list: Name::new("list", &meta.list)?,
            directory: meta.repository.clone().unwrap_or_else(|| meta.cwd.clone()),
            own_run: None,
        };
        let options = meta.options.clone();
        let variable = |wanted: &str| {
            let mut all = starter.environment().into_iter();
            all.find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        let lock_timeout = Duration::from_millis(options.lock_timeout_ms);
        let place = options.shared.clone();
        let backends = Backends::open(&surroundings.home, place, lock_timeout, variable)
            .map_err(|error| AgentError::Invalid(error.in_a_line()))?;
        Ok(Self::with_options(surroundings, options, starter, backends))
    }

    /// How a run ended, as it may be written down.
    pub(super) fn without_secrets(&self, exit: &Exit) -> Exit {
        let (mut exit, filter) = (exit.clone(), self.starter.secret_filter());
        let check = exit.proof.as_mut().and_then(|proof| proof.check.as_mut());
        let how = check.and_then(|check| check.how.as_mut());
        let texts = [exit.result.as_mut(), exit.error.as_mut(), how];
        texts
            .into_iter()
            .flatten()
            .for_each(|text| filter.text(text));
        exit
    }

    /// The team.
    pub fn team_name(&self) -> &Name {
        &self.at.team
    }

    /// The file whose lock the process holds that directs the team.
    pub fn director_lock(&self) -> PathBuf {
        self.runs.with_file_name(".ccb").join("engine.lock")
    }

    /// Whether a process directs the team.
    pub fn are_directed(&self) -> Result<bool, AgentError> {
        Ok(store::lock::is_held(&self.director_lock())?)
    }

    /// Who says whether another one may be started, and what all have used.
    pub fn fleet(&self) -> Fleet {
        Fleet::open(
            &self.at.home.team(&self.at.team),
            self.options.fleet.clone(),
        )
    }

    /// Where the caller is.
    pub fn directory(&self) -> &Path {
        &self.at.directory
    }

    /// All state.
    pub fn home(&self) -> &Home {
        &self.at.home
    }

    /// Where its runs are.
    pub fn runs_dir(&self) -> &Path {
        &self.runs
    }

    /// The run with this id, which need not exist.
    pub fn run(&self, id: &str) -> RunDir {
        RunDir::new(&self.runs, id)
    }

    /// All agents there are and were, oldest first, and what could not be read.
    pub fn list(&self) -> Result<(Vec<Listed>, Vec<RunError>), AgentError> {
        let (metas, problems) = run::all(&self.runs)?;
        let mut listed = Vec::new();
        for meta in metas {
            let alive = !meta.state.is_terminal() && self.run(&meta.agent_id).is_alive()?;
            listed.push(Listed { meta, alive });
        }
        Ok((listed, problems))
    }

    /// The agents that the agent of `meta` has started and that still run.
    pub(super) fn running_children(&self, meta: &Meta) -> Result<Vec<Child>, AgentError> {
        let mut children = Vec::new();
        for id in run::active(&self.runs)? {
            let run = self.run(&id);
            let Ok(child) = run.meta() else { continue };
            let own = child.parent.eq_ignore_ascii_case(meta.address());
            if !own || child.agent_id == meta.agent_id {
                continue;
            }
            // One that nobody sees to any more is finished, so that its parent hears of it.
            self.reconcile_one(&run)?;
            if run.is_alive()? {
                children.push(Child {
                    id,
                    description: child.description,
                });
            }
        }
        Ok(children)
    }

    /// The agent `given` names, if there is one: by its id, its name, or `name@team`.
    pub fn addressed(&self, given: &str) -> Result<Option<Meta>, AgentError> {
        Ok(self.named(given, &self.list()?.0))
    }

    /// Of several with one name the one that runs, else the latest.
    fn named(&self, given: &str, all: &[Listed]) -> Option<Meta> {
        let name = store::agent_id::AgentId::name_in(given, self.at.team.as_str());
        let meant = |listed: &&Listed| {
            let own = listed.meta.name.as_deref();
            listed.meta.agent_id == given || own.is_some_and(|own| own.eq_ignore_ascii_case(name))
        };
        let meant: Vec<&Listed> = all.iter().filter(meant).collect();
        let found = meant.iter().rfind(|listed| listed.alive).or(meant.last());
        found.map(|listed| listed.meta.clone())
    }

    /// The agent `given` means: its id, the beginning of one, its name, or `name@team`. Of
    /// several with one name the one that runs, else the latest.
    pub fn find(&self, given: &str) -> Result<Meta, AgentError> {
        if store::agent_id::AgentId::parse(given).is_some_and(|id| id.as_str() == given)
            && let Ok(meta) = self.run(given).meta()
        {
            return Ok(meta);
        }
        let (all, _) = self.list()?;
        if let Some(found) = self.named(given, &all) {
            return Ok(found);
        }
        let begins = |listed: &&Listed| given.len() >= 4 && listed.meta.agent_id.starts_with(given);
        let begun: Vec<&Listed> = all.iter().filter(begins).collect();
        match begun.as_slice() {
            [one] => Ok(one.meta.clone()),
            [] => {
                let known = all.iter().flat_map(|listed| {
                    let meta = &listed.meta;
                    [Some(meta.agent_id.as_str()), meta.name.as_deref()]
                });
                Err(AgentError::NotFound {
                    given: given.to_owned(),
                    team: self.at.team.to_string(),
                    nearest: store::nearest(given, known.flatten()).map(str::to_owned),
                })
            }
            several => Err(AgentError::Ambiguous {
                given: given.to_owned(),
                candidates: several
                    .iter()
                    .map(|listed| listed.meta.agent_id.clone())
                    .collect(),
            }),
        }
    }

    /// Whether an agent is supervised by somebody.
    pub fn is_alive(&self, meta: &Meta) -> Result<bool, AgentError> {
        Ok(self.run(&meta.agent_id).is_alive()?)
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.options.stop_grace_ms)
    }

    pub(super) fn lock_timeout(&self) -> Duration {
        Duration::from_millis(self.options.lock_timeout_ms)
    }

    /// The board of their list.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// The board of another list, or this one's again, if there is such a list.
    pub fn board_of(&self, list: &str) -> Option<Board> {
        let list = Name::new("list", list).ok()?;
        let options = board_options(&self.options, &self.starter);
        let board = self.backends.board(list, options);
        board.exists().then_some(board)
    }

    /// The team's mail.
    pub fn mailbox(&self) -> Mailbox {
        let options = mail_options(&self.options, &self.starter);
        self.backends.mail(&self.at.team, options)
    }

    /// The team's roster.
    pub fn roster(&self) -> Team {
        let repository = self.repository();
        let teams = self
            .backends
            .teams(repository.as_ref(), self.lock_timeout());
        teams.team(self.at.team.clone())
    }

    /// The worktrees of the repository the caller works in.
    pub fn trees(&self) -> Result<Trees, AgentError> {
        let options = tree_options(&self.options, &self.starter);
        match self.repository() {
            Some(repository) => Ok(Trees::open(&repository, options)?),
            // What is there instead is in the error.
            None => Ok(Trees::discover(&self.at.directory, options)?),
        }
    }

    /// The repository the caller works in, looked for until there is one.
    fn repository(&self) -> Option<Repository> {
        if let Some(known) = self.repository.get().filter(|known| known.is_there()) {
            return Some(known.clone());
        }
        let found = Repository::discover(&self.at.directory)?;
        self.repository.set(found.clone()).ok();
        Some(found)
    }
}

/// What these settings say about mail.
pub fn mail_options(options: &RunOptions, starter: &Starter) -> MailOptions {
    MailOptions {
        durability: Durability::of(options.mail_durable),
        lock_timeout: Duration::from_millis(options.lock_timeout_ms),
        secret_filter: starter.secret_filter(),
        ..MailOptions::default()
    }
}

/// What they say about trees.
pub fn tree_options(options: &RunOptions, starter: &Starter) -> TreeOptions {
    TreeOptions {
        durability: Durability::of(options.trees_durable),
        trash_days: options.trash_days,
        gc_days: options.gc_days,
        rescue_max_bytes: options.rescue_max_bytes,
        secret_filter: starter.secret_filter(),
        reader: reader(),
        ..TreeOptions::default()
    }
}

/// The words before a program that may write nothing; none where the kernel cannot do that.
fn reader() -> Vec<OsString> {
    let nothing = Confinement::writing(Vec::new(), true);
    let words = sandbox::helper().map(|helper| nothing.words(helper));
    words.and_then(Result::ok).unwrap_or_default()
}

/// What they say about boards.
fn board_options(options: &RunOptions, starter: &Starter) -> BoardOptions {
    BoardOptions {
        lock_mode: match options.shared_locks {
            true => LockMode::Shared,
            false => LockMode::Flock,
        },
        durability: Durability::of(options.board_durable),
        lock_timeout: Duration::from_millis(options.lock_timeout_ms),
        secret_filter: starter.secret_filter(),
        ..BoardOptions::default()
    }
}

/// The word for an agent's state, in the light of whether it is alive.
pub(super) fn state_word(meta: &Meta, alive: bool) -> &'static str {
    match (meta.state.is_terminal(), alive) {
        (false, false) => RunState::Lost.as_str(),
        _ => meta.state.as_str(),
    }
}
