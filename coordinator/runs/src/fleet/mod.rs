//! The fleet governor: the usage of all agents of a team, the rate at which they start, and the
//! pause for all of them when a provider refuses.
//!
//! One small file per team, `.ccb/fleet.json`, changed under its lock by hosts and by the processes
//! that start agents. One refusal pauses all of them. When the pause is over one agent tries; if
//! the model answers it, the pause ends for all agents, else it begins again and is twice as long.
//!
//! After a power cut, or if the file is damaged otherwise, ccb rebuilds the account from the usage
//! that the runs record; it loses only a pause and an earlier reset.
//!
//! No agent polls: the process that ends or changes a pause rings the bells of all runs, and each
//! event without a bell (the end of a pause, an agent that tries and dies) has a time at which it
//! is checked.
//!
//! # When a provider refuses
//!
//! A turn that ends with `Quota` makes its host write a pause into the team's `.ccb/fleet.json` and ring the bells of all runs. Hosts ask before
//! each turn (`HostServices::may_begin`) and hold it back; a start of an agent is refused or waits. When the pause's time is over the first
//! host that asks under the lock becomes the one that tries; the model's first word ends the pause, another refusal makes it twice as long, and an agent that
//! dies while trying is replaced (its `alive.lock` says so). A pause is never longer than its own length, whatever the clock does. The usage of each
//! life is *set* in the same file, never added, so that a repeated report counts once; lives that are settled are added up.

mod state;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use store::atomic::{self, Durability};
use store::clock::{Clock, SystemClock, rfc3339};
use store::fault::reached;
use store::home::create_private_dir;
use store::lock::{DEFAULT_TIMEOUT, FileLock};
use store::watch::DirWatch;
use store::{Category, Explain, Facts};
use swarm::run::{RunDir, active};
use swarm::runtime::Usage;

use crate::fault;

pub use state::FleetState;
pub use state::Gate;
use state::VERSION;
pub use swarm::run::FleetOptions;

/// The errors of the governor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FleetError {
    /// The governor's file cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// A run's files.
    #[error(transparent)]
    Run(#[from] swarm::run::RunError),
    /// The file cannot be written.
    #[error("{}: {why}", path.display())]
    Corrupt { path: PathBuf, why: String },
    /// A later version wrote it.
    #[error("{}: written by a newer ccb (format {found})", path.display())]
    Newer { path: PathBuf, found: u64 },
}

impl Explain for FleetError {
    fn facts(&self) -> Facts {
        match self {
            Self::Store(error) => error.facts(),
            Self::Run(error) => error.facts(),
            Self::Newer { .. } => Facts::new(Category::Invalid, "newer_version"),
            Self::Corrupt { .. } => Facts::new(Category::Failed, "agent_failed"),
        }
    }
}

/// The usage of a team's agents, and the pause that holds them back.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// The usage since the account was opened.
    pub used: Usage,
    /// The start of the work, RFC 3339; `None` before that.
    pub since: Option<String>,
    /// The end of the pause, RFC 3339, and its reason; `None` without a pause.
    pub paused: Option<(String, String)>,
}

/// The governor of one team.
#[derive(Debug, Clone)]
pub struct Fleet {
    dir: PathBuf,
    runs: PathBuf,
    options: FleetOptions,
    clock: Arc<dyn Clock>,
    lock_timeout: Duration,
}

impl Fleet {
    /// The governor of the team with this directory.
    pub fn open(team: &Path, options: FleetOptions) -> Self {
        Self {
            dir: team.join(".ccb"),
            runs: team.join("runs"),
            options,
            clock: Arc::new(SystemClock),
            lock_timeout: DEFAULT_TIMEOUT,
        }
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The gate: says if an agent may start now. Takes no lock and promises nothing: starting an
    /// agent asks again, and admits it or not.
    pub fn gate(&self) -> Result<Gate, FleetError> {
        let (state, now) = (self.read()?, self.now());
        if state.is_ahead_of(now) {
            // The clock was set back: from here on the pause counts by the new time.
            return self.change(Durability::Ordered, |state, now| {
                state.gate(now, &self.options)
            });
        }
        Ok(state.gate(now, &self.options))
    }

    /// Waits until [`Self::gate`] says something else than that one has to wait, at most `limit`.
    pub fn wait(&self, limit: Duration) -> Result<Gate, FleetError> {
        create_private_dir(&self.dir)?;
        let begun = Instant::now();
        let mut watch = DirWatch::new(&self.dir);
        loop {
            let gate = self.gate()?;
            let left = limit.saturating_sub(begun.elapsed());
            let Some(until) = gate.until() else {
                return Ok(gate);
            };
            if left.is_zero() {
                return Ok(gate);
            }
            let wait = duration(until.saturating_sub(self.now()).max(1));
            watch.wait(wait.min(left));
        }
    }

    /// Asks to start the agent `id`, whose run is written down and taken. If the agent is admitted
    /// it counts as started, and if a pause has just ended it is the one that tries.
    ///
    /// `model` is true if it needs a model: a provider's pause does not hold back a command.
    pub fn admit(&self, id: &str, model: bool) -> Result<Gate, FleetError> {
        self.change(Durability::Ordered, |state, now| {
            state.forget_over(|life| RunDir::new(&self.runs, agent_of(life)).is_active());
            state.admit(id, model, now, &self.options, |by| self.is_alive(by))
        })
    }

    /// Asks if the agent `id` may begin a turn. If a pause has just ended, this agent tries first,
    /// and all others wait for its result.
    pub fn enter(&self, id: &str) -> Result<Gate, FleetError> {
        let (state, now) = (self.read()?, self.now());
        if !state.is_paused() {
            return Ok(state.gate(now, &self.options));
        }
        self.change(Durability::Ordered, |state, now| {
            match state.gate(now, &self.options) {
                Gate::Spent { what } => Gate::Spent { what },
                _ => state.enter(id, now, |by| self.is_alive(by)),
            }
        })
    }

    /// Notes what the life `life` of an agent has used so far, in all; says what the team has
    /// used up by that, if anything.
    pub fn spent(&self, life: &str, used: &Usage) -> Result<Option<String>, FleetError> {
        self.change(Durability::Ordered, |state, now| {
            state.used(life, used);
            state.spent(now, &self.options)
        })
    }

    /// The reason why the team's time is over; `None` if it is not. Takes no lock.
    pub fn late(&self) -> Result<Option<String>, FleetError> {
        Ok(match self.options.has_deadline() {
            true => self.read()?.late(self.now(), &self.options),
            false => None,
        })
    }

    /// Records that the provider refused agent `id`: all agents wait, at least as long as the
    /// provider says.
    pub fn quota(
        &self,
        id: &str,
        retry_after: Option<Duration>,
        reason: &str,
    ) -> Result<(), FleetError> {
        self.change(Durability::Full, |state, now| {
            state.refused(id, now, retry_after, reason, &self.options);
        })?;
        reached(fault::FLEET_PAUSED);
        self.ring_all();
        Ok(())
    }

    /// The model has answered the agent `id`. If this is the agent that tries, the pause is over.
    pub fn answered(&self, id: &str) -> Result<(), FleetError> {
        if !self.read()?.tries(id) {
            return Ok(());
        }
        let cleared = self.change(Durability::Full, |state, now| state.answered(id, now))?;
        reached(fault::FLEET_CLEARED);
        if cleared {
            self.ring_all();
        }
        Ok(())
    }

    /// Records the usage of a life that is over. If this agent was the one that tries, another
    /// agent tries instead.
    pub fn left(&self, id: &str, life: &str, used: &Usage) -> Result<(), FleetError> {
        let tried = self.change(Durability::Ordered, |state, _| {
            state.used(life, used);
            state.left(id)
        })?;
        if tried {
            self.ring_all();
        }
        Ok(())
    }

    /// Ends a pause, whatever its reason; for a caller who knows that it is over.
    pub fn cleared(&self) -> Result<(), FleetError> {
        self.change(Durability::Full, |state, _| state.clear())?;
        self.ring_all();
        Ok(())
    }

    /// Opens a new account: without usage and without a pause.
    pub fn reset(&self) -> Result<(), FleetError> {
        self.change(Durability::Full, |state, _| state.reset())?;
        self.ring_all();
        Ok(())
    }

    /// The usage, and the pause if there is one.
    pub fn account(&self) -> Result<Account, FleetError> {
        let state = self.read()?;
        let paused = match state.gate(self.now(), &FleetOptions::default()) {
            Gate::Paused { until, reason } => Some((rfc3339(until), reason)),
            _ => None,
        };
        Ok(Account {
            used: state.total(),
            since: state.since(),
            paused,
        })
    }

    /// The gate and the usage for a caller that only reads: takes no lock and writes nothing, also
    /// when the clock was set back.
    pub fn glance(&self) -> Result<(Gate, Usage), FleetError> {
        let state = self.read()?;
        Ok((state.gate(self.now(), &self.options), state.total()))
    }

    fn now(&self) -> i64 {
        self.clock.now_ms()
    }

    /// The file with the account.
    pub fn path(&self) -> PathBuf {
        self.dir.join("fleet.json")
    }

    fn read(&self) -> Result<FleetState, FleetError> {
        Ok(self.look()?.unwrap_or_else(|| self.rebuilt()))
    }

    /// The content of the file; `None` if it cannot be read.
    fn look(&self) -> Result<Option<FleetState>, FleetError> {
        let path = self.path();
        let Some(bytes) = atomic::read(&path)? else {
            return Ok(Some(FleetState::default()));
        };
        let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
            return Ok(None);
        };
        // A newer version may have another shape; that is no damage.
        let version = value.get("v").and_then(Value::as_u64).unwrap_or(0);
        match serde_json::from_value(value) {
            Ok(state) => Ok(Some(state)),
            Err(_) if version > VERSION => Err(FleetError::Newer {
                path,
                found: version,
            }),
            Err(_) => Ok(None),
        }
    }

    /// True if its file cannot be read and will be built again.
    pub fn is_damaged(&self) -> Result<bool, FleetError> {
        Ok(self.look()?.is_none())
    }

    /// Writes the account down again if its file cannot be read.
    pub fn repair(&self) -> Result<(), FleetError> {
        self.change(Durability::Full, |_, _| ())
    }

    /// The account as the runs have it.
    fn rebuilt(&self) -> FleetState {
        let path = self.path();
        tracing::warn!(path = %path.display(), "unreadable, built again from the runs");
        match swarm::run::all(&self.runs) {
            Ok((metas, _)) => FleetState::rebuilt(&metas),
            Err(error) => {
                tracing::warn!(%error, "the runs cannot be read either: a new account");
                FleetState::default()
            }
        }
    }

    /// Changes the file under its lock, if there is something to change.
    fn change<T>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut FleetState, i64) -> T,
    ) -> Result<T, FleetError> {
        create_private_dir(&self.dir)?;
        let lock = self.dir.join("fleet.lock");
        let lock = FileLock::exclusive(&lock, "the team's account", self.lock_timeout)?;
        let read = self.look()?;
        let damaged = read.is_none();
        let before = read.unwrap_or_else(|| self.rebuilt());
        if before.version() > VERSION {
            return Err(FleetError::Newer {
                path: self.path(),
                found: before.version(),
            });
        }
        let mut state = before.clone();
        let now = self.now();
        state.heed_clock(now);
        let answer = change(&mut state, now);
        if state != before || damaged {
            let corrupt = |error: serde_json::Error| FleetError::Corrupt {
                path: self.path(),
                why: error.to_string(),
            };
            let mut bytes = serde_json::to_vec_pretty(&state).map_err(corrupt)?;
            bytes.push(b'\n');
            let tmp = self.dir.join("tmp");
            create_private_dir(&tmp)?;
            atomic::replace(&tmp, &self.path(), &bytes, durability)?;
        }
        drop(lock);
        Ok(answer)
    }

    fn is_alive(&self, id: &str) -> bool {
        RunDir::new(&self.runs, id).is_alive().unwrap_or(false)
    }

    /// Wakes all agents, which then read the state again.
    fn ring_all(&self) {
        match active(&self.runs) {
            Ok(ids) => {
                for id in ids {
                    RunDir::new(&self.runs, &id).ring();
                }
            }
            // Agents check by themselves, only later.
            Err(error) => tracing::warn!(%error, "nobody is woken"),
        }
    }
}

/// The agent of a life.
fn agent_of(life: &str) -> &str {
    life.split_once('#').map_or(life, |(agent, _)| agent)
}

fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
