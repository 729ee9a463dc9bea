//! A machine that helps with a board several machines share: it takes tasks it can do, does them as
//! a session does, and sends each result to the remote before the task counts as done.
//!
//! All lasting state is on the board and at the remote. A killed worker resumes when it is started
//! again; otherwise other machines get its tasks when their leases expire.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use director::{
    BaseOf, Closed, Control, Director, Level, Limits, Remote, Seat, Setup, usual_labels,
};
use director::{Interrupted, Verdict};
use landing::Landings;
use project::workplace::Workplace;
use runs::{Agents, KnownWorker, Prove, host_name};
use store::Failure;
use store::agent_id::LEAD;
use store::name::Name;
use worktrees::branch_of_remote;

use crate::agent::{self, Role, TaskCrew, definitions};
pub use director::{DirectorEvent, Stand, TaskEnd, Why};

/// Default number of agents of a worker at the same time.
pub const SLOTS: usize = 4;

/// The options of a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerRequest {
    /// Its name on the board; `None` means the machine's name.
    pub name: Option<String>,
    /// Maximum number of its agents at the same time.
    pub slots: usize,
    /// The runtime of tasks without a command.
    pub runtime: Option<String>,
    /// The model they use.
    pub model: Option<String>,
    /// The permission mode of its agents.
    pub permission_mode: Option<String>,
    /// The labels of this machine that not every machine has.
    pub labels: Vec<String>,
    /// The base branch of the work; `None` means the remote's default one.
    pub branch: Option<String>,
    /// The branch of the remote that finished work lands on; `None` leaves the work on its own
    /// branch.
    pub into: Option<String>,
    /// A command that must pass on everything that lands.
    pub check: Option<String>,
    /// Maximum attempts of a task.
    pub attempts: Option<u16>,
    /// Time limit of a check.
    pub verify_timeout: Option<Duration>,
    /// True if it ends when nothing is left to do on the board.
    pub until_done: bool,
}

/// A worker that is ready to begin.
#[derive(Debug)]
pub struct Worker {
    /// Its workplace.
    pub workplace: Workplace,
    /// Its name on the board.
    pub name: Name,
    /// The base branch of the work.
    pub branch: String,
    /// The remote that takes results to other machines.
    pub remote: String,
    /// Its labels that not every machine has.
    pub labels: BTreeSet<String>,
    request: WorkerRequest,
    commands_only: bool,
    runtime: String,
}

/// Makes the clone a worker uses of the repository at `address`, or updates it. An existing
/// repository with a remote is used as it is.
pub fn repository(
    address: &str,
    branch: Option<&str>,
    workplace: &Workplace,
) -> Result<PathBuf, Failure> {
    let place = workplace.directory.join(address);
    if place.join(".git").exists() {
        return Ok(place);
    }
    let key = store::fingerprint(address.as_bytes());
    let name = address.trim_end_matches('/').rsplit(['/', ':']).next();
    let name = name.unwrap_or_default().trim_end_matches(".git");
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.chars().filter(|c| plain(*c)).take(40).collect();
    let clones = workplace.home().ours().join("clones");
    store::home::create_private_dir(&clones)?;
    let dir = clones.join(format!("{name}-{key:016x}"));
    // A path is relative to the caller's directory, wherever the clone is.
    let address = match place.exists() {
        true => place.to_string_lossy().into_owned(),
        false => address.to_owned(),
    };
    worktrees::clone_or_update(&address, branch, &dir)?;
    Ok(dir)
}

impl Worker {
    /// Checks everything a worker needs, and refuses a setup that cannot work.
    pub fn prepare(request: &WorkerRequest, workplace: &Workplace) -> Result<Self, Failure> {
        if !workplace.is_in_database() {
            return Err(Failure::usage(
                "board_in_files",
                "a worker needs a board in PostgreSQL, which other machines can reach",
            )
            .with_hint("name it with --board postgres://USER@HOST/DATABASE or $CCB_BOARD"));
        }
        let name = match &request.name {
            Some(name) => Name::new("worker", name)?,
            None => Name::new("worker", &plain(&host_name()))?,
        };
        let agents = workplace.agents()?;
        let remote = agents.shared().and_then(|place| place.remote.clone());
        workplace.check_shared()?;
        let remote = remote.unwrap_or_default();
        workplace.check_isolation(None, "use a repository without submodules")?;
        let trees = agents.trees()?;
        let branch = match &request.branch {
            Some(branch) => branch.clone(),
            None => trees.default_branch(&remote)?,
        };
        trees.fetch_branch(&remote, &branch)?;
        if let Some(into) = &request.into {
            trees.fetch_branch(&remote, into)?;
        }
        let lands = request.into.as_deref().map(KnownWorker::lands_on);
        let spec = agent::session_runtime(request.runtime.as_deref(), workplace)?;
        let mut labels = usual_labels();
        labels.extend(request.labels.iter().cloned());
        labels.insert(format!("runtime={}", spec.name));
        labels.extend(lands);
        if let Some(url) = workplace.remote_address(&remote) {
            labels.insert(format!("repo={url}"));
        }
        Ok(Self {
            workplace: workplace.clone(),
            name,
            branch,
            remote,
            labels,
            request: request.clone(),
            commands_only: !spec.kind.has_model(),
            runtime: spec.name,
        })
    }

    /// The branch finished work lands on, in the form for people.
    pub fn lands_on(&self) -> Option<String> {
        let into = self.request.into.as_ref()?;
        Some(format!("{}/{into}", self.remote))
    }

    /// Runs until a person ends it, or, if requested, until nothing is left to do.
    pub fn run(
        &self,
        interrupted: &Interrupted,
        tell: &mut dyn FnMut(&DirectorEvent),
    ) -> Result<Verdict, Failure> {
        let agents = self.workplace.agents()?;
        let _known = agents.be_worker(&self.name, &self.labels)?;
        let control = Arc::new(Control::default());
        let mut director = Director::new(self.setup(agents)?, Arc::clone(&control))?;
        let mut signal = None;
        let (mut failed, mut over) = (0_usize, false);
        let ending = director.run(&mut |event: DirectorEvent| {
            if let Some(number) = interrupted() {
                signal = Some(number);
                let text = match drain(&control) {
                    Level::Finish => {
                        "no more tasks are begun; what runs may finish (again: stop it)"
                    }
                    Level::Stop => "agents are asked to stop (again: end them at once)",
                    _ => "agents are ended",
                };
                tell(&DirectorEvent::Note { text: text.into() });
            }
            match &event {
                DirectorEvent::Ended {
                    end: TaskEnd::Parked { .. },
                    ..
                } => failed += 1,
                DirectorEvent::AtRest { stand } => over = self.is_over(stand),
                DirectorEvent::Tick => {
                    if std::mem::take(&mut over) {
                        control.want(Level::Finish, "nothing is left to do");
                    }
                    return;
                }
                _ => {}
            }
            tell(&event);
        })?;
        let stopped = control.level() >= Level::Stop;
        Ok(match signal {
            Some(number) if stopped => Verdict::Interrupted(number),
            _ if failed > 0 => Verdict::Failed,
            Some(_) => Verdict::Done,
            None => match ending.stand {
                Stand::Stuck(_) if self.request.until_done => Verdict::Failed,
                _ if !ending.not_landed.is_empty() => Verdict::Conflicts,
                _ => Verdict::Done,
            },
        })
    }

    /// True if a worker that does not wait for more has nothing left to do.
    fn is_over(&self, stand: &Stand) -> bool {
        self.request.until_done
            && !matches!(stand, Stand::Working | Stand::Waiting(_) | Stand::Elsewhere)
    }

    fn setup(&self, agents: Agents) -> Result<Setup, Failure> {
        let request = &self.request;
        let (_, set_up) = self.workplace.usual_tree()?;
        let landings = request.into.as_ref().map(|into| Landings {
            into: branch_of_remote(&self.remote, into),
            strategy: self.workplace.worktree_settings().merge_strategy,
            check: request.check.clone(),
            set_up: set_up.clone(),
            conflicts_become_tasks: false,
            only: None,
        });
        let seat = |number: usize| -> Result<Seat, Failure> {
            Ok(Seat {
                name: Some(Name::new("agent", &format!("{}-{number}", self.name))?),
                commands_only: self.commands_only,
                runtime: None,
            })
        };
        let fleet = agents.fleet();
        Ok(Setup {
            crew: Box::new(TaskCrew {
                workplace: self.workplace.clone(),
                definitions: definitions::load(None, &self.workplace)?,
                runtime: Some(self.runtime.clone()),
                model: request.model.clone(),
                permission_mode: request.permission_mode.clone(),
                set_up,
                role: Role::Worker,
                env: Vec::new(),
            }),
            seats: (1..=request.slots).map(seat).collect::<Result<_, _>>()?,
            limits: Limits {
                at_once: request.slots,
                ..Limits::default()
            },
            base: BaseOf::Remote(self.branch.clone()),
            landings,
            parent: Name::new("agent", LEAD)?,
            quiet: true,
            linger: true,
            verify_timeout: request.verify_timeout.unwrap_or(Prove::TIMEOUT),
            most_grace: None,
            max_attempts: request.attempts.map_or(Prove::ATTEMPTS, usize::from),
            gate: Some(Box::new(move || Closed::by(&fleet))),
            labels: self.labels.clone(),
            patient: true,
            remote: Remote::of(&agents),
            agents,
        })
    }
}

/// The level after one more signal: first nothing new starts, then agents stop, then all end at
/// once.
fn drain(control: &Control) -> Level {
    let level = match control.level() {
        Level::GoOn => Level::Finish,
        Level::Finish => Level::Stop,
        Level::Stop | Level::Force => Level::Force,
    };
    control.want(level, "interrupted");
    level
}

/// The name of a machine in a form that the board allows.
fn plain(host: &str) -> String {
    let good = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name: String = host.chars().filter(good).take(50).collect();
    let name = name.trim_matches(['.', '-', '_']);
    match name.is_empty() {
        true => "worker".into(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_any_machine_makes_the_name_of_a_worker() {
        for (host, name) in [
            ("ci-7.example.org", "ci-7.example.org"),
            ("büro", "bro"),
            ("-.", "worker"),
            ("", "worker"),
        ] {
            assert_eq!(plain(host), name);
            assert!(Name::new("worker", name).is_ok());
        }
        assert!(plain(&"x".repeat(200)).len() <= 50);
    }

    #[test]
    fn signals_drain_then_stop_then_end() {
        let control = Control::default();
        let levels = [drain(&control), drain(&control), drain(&control)];
        assert_eq!(levels, [Level::Finish, Level::Stop, Level::Force]);
    }
}
