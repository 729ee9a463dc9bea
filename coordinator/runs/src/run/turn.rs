//! What only one process on one machine does at a time, where several share a board.

use std::collections::BTreeSet;
use std::time::Duration;

use super::agents::Agents;
use super::error::AgentError;

/// How often is asked whether it is our turn.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long a turn is held by one that says nothing more.
const TERM: Duration = Duration::from_secs(30);

/// Somebody's turn, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    #[cfg(feature = "postgres")]
    held: Option<database::Turn>,
}

impl Turn {
    /// Lets it end by itself after a while: until then nobody else does the same.
    pub fn let_run_out(self) {
        #[cfg(feature = "postgres")]
        if let Some(held) = self.held {
            held.let_run_out();
        }
    }
}

impl Agents {
    /// Takes the turn `name` on this list, unless somebody else has it. Where no other machine can
    /// be at it, it is always ours.
    pub fn turn(&self, name: &str) -> Result<Option<Turn>, AgentError> {
        self.take_turn(name, TERM)
    }

    #[cfg(feature = "postgres")]
    fn take_turn(&self, name: &str, term: Duration) -> Result<Option<Turn>, AgentError> {
        let Some(database) = self.database() else {
            return Ok(Some(Turn { held: None }));
        };
        let name = format!("{} {name}", self.board().name().as_str().to_lowercase());
        let who = format!("{} (process {})", host_name(), std::process::id());
        let claimant = database::Claimant {
            who: &who,
            holder: uuid::Uuid::new_v4(),
            labels: &[],
        };
        let taken = database::Turn::take(database, &name, claimant, term)
            .map_err(taskboard::BoardError::from)?;
        Ok(taken.ok().map(|turn| Turn { held: Some(turn) }))
    }

    /// Waits for the turn `name`, as long as `go_on` says so. Whoever has it and is silent for a lease
    /// loses it, like a task.
    pub fn wait_for_turn(
        &self,
        name: &str,
        go_on: impl Fn() -> bool,
    ) -> Result<Option<Turn>, AgentError> {
        let term = self.shared().map_or(TERM, |place| place.lease().min(TERM));
        loop {
            if let Some(turn) = self.take_turn(name, term)? {
                return Ok(Some(turn));
            }
            if !go_on() {
                return Ok(None);
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Where no other machine can be at it, it is always ours.
    #[cfg(not(feature = "postgres"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "as with databases"
    )]
    fn take_turn(&self, _: &str, _: Duration) -> Result<Option<Turn>, AgentError> {
        Ok(Some(Turn {}))
    }
}

impl Agents {
    /// Is the worker `name` of this list from now on; refused if another machine, or another home,
    /// has one of that name. One that was killed takes its own place again. `labels` say what it
    /// can do.
    #[cfg(feature = "postgres")]
    pub fn be_worker(
        &self,
        name: &store::name::Name,
        labels: &BTreeSet<String>,
    ) -> Result<Turn, store::Failure> {
        let (Some(database), Some(place)) = (self.database(), self.shared()) else {
            return Ok(Turn { held: None });
        };
        let machine = format!("{} {}", machine_id(), self.home().path().display());
        let holder = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, machine.as_bytes());
        let list = self.board().name().as_str().to_lowercase();
        let turn = format!("{}{}", worker_turns(&list), name.as_str().to_lowercase());
        let who = format!("{} (process {})", host_name(), std::process::id());
        let labels: Vec<String> = labels.iter().cloned().collect();
        let claimant = database::Claimant {
            who: &who,
            holder,
            labels: &labels,
        };
        let taken = database::Turn::take(database, &turn, claimant, place.lease())?;
        taken
            .map(|turn| Turn { held: Some(turn) })
            .map_err(|taken| {
                let message = format!(
                    "a worker named {name} works on list {list} already: {}",
                    taken.who
                );
                store::Failure::refused("worker_exists", message).with_hint(format!(
                    "choose another name with --name; if that worker is gone, its name is free in {} s",
                    taken.left.as_secs() + 1
                ))
            })
    }

    /// There are no workers without databases.
    #[cfg(not(feature = "postgres"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "as with databases"
    )]
    pub fn be_worker(
        &self,
        _: &store::name::Name,
        _: &BTreeSet<String>,
    ) -> Result<Turn, store::Failure> {
        Ok(Turn {})
    }

    /// Every worker of this list that is there now.
    #[cfg(feature = "postgres")]
    pub fn workers(&self) -> Result<Vec<KnownWorker>, AgentError> {
        let Some(database) = self.database() else {
            return Ok(Vec::new());
        };
        let list = self.board().name().as_str().to_lowercase();
        let prefix = worker_turns(&list);
        let turns = database::turns(database, &prefix).map_err(taskboard::BoardError::from)?;
        let known = |(turn, taken): (String, database::Taken)| KnownWorker {
            name: turn.strip_prefix(&prefix).unwrap_or_default().to_owned(),
            labels: BTreeSet::from_iter(taken.labels),
        };
        Ok(turns.into_iter().map(known).collect())
    }

    /// There are no workers without databases.
    #[cfg(not(feature = "postgres"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "as with databases"
    )]
    pub fn workers(&self) -> Result<Vec<KnownWorker>, AgentError> {
        Ok(Vec::new())
    }
}

/// A worker on the same board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownWorker {
    /// In lower case.
    pub name: String,
    /// What its machine has that not every machine has.
    pub labels: BTreeSet<String>,
}

impl KnownWorker {
    /// The label of a worker that lands what it does on this branch.
    pub fn lands_on(branch: &str) -> String {
        format!("into={branch}")
    }

    /// Whether whoever has this name is one of its agents, and it lands what they do on `branch`.
    pub fn lands_for(&self, agent: &str, branch: &str) -> bool {
        let agent = agent.to_lowercase();
        let number = agent.strip_prefix(&self.name);
        let ours = number.is_some_and(|rest| {
            let digits = rest.strip_prefix('-').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        ours && self.labels.contains(&Self::lands_on(branch))
    }
}

/// What the names of the turns begin with that the workers of a list hold.
#[cfg(feature = "postgres")]
fn worker_turns(list: &str) -> String {
    format!("{list} worker ")
}

/// What tells this machine from others of the same name.
#[cfg(feature = "postgres")]
fn machine_id() -> String {
    let read = |path| std::fs::read_to_string(path).ok();
    let id = read("/etc/machine-id").filter(|id| !id.trim().is_empty());
    id.map_or_else(host_name, |id| id.trim().to_owned())
}

/// The name of this machine.
pub fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    match name.is_empty() {
        true => "localhost".into(),
        false => name,
    }
}
