//! The options of a director, and its final report.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use landing::{Lander, Landings};
use runs::fleet::{self, Fleet};
use runs::{AgentError, Agents};
use store::name::Name;
use store::{Category, Explain, Facts};
use taskboard::{Board, BoardError, TaskId};
use worktrees::TreeError;

use super::base::{BaseOf, Remote};
use super::crew::{Crew, Seat};
use super::inputs::Limits;
use super::schedule::Stand;

/// The reason why nothing may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// Starts will be possible again.
    ForNow(String),
    /// A budget is exhausted: running agents may finish, nothing else starts.
    ForGood(String),
}

impl Closed {
    /// The limit of the team or its provider that prevents starts now, if there is one. The rate of
    /// starts is checked at each start.
    pub fn by(fleet: &Fleet) -> Option<Self> {
        match fleet.gate() {
            Ok(fleet::Gate::Paused { reason, .. }) => {
                Some(Self::ForNow(format!("the provider refuses: {reason}")))
            }
            Ok(fleet::Gate::Spent { what }) => Some(Self::ForGood(what)),
            Ok(_) => None,
            Err(error) => Some(Self::ForNow(error.to_string())),
        }
    }
}

/// Returns the reason why nothing may start, if there is one.
pub type Gate = Box<dyn Fn() -> Option<Closed> + Send + Sync>;

/// The options of a director.
pub struct Setup {
    /// The agents of the team whose board the director runs.
    pub agents: Agents,
    /// Makes the agents.
    pub crew: Box<dyn Crew>,
    /// The slots.
    pub seats: Vec<Seat>,
    /// The limits to keep.
    pub limits: Limits,
    /// The base of the work.
    pub base: BaseOf,
    /// The branch that results land on when they are done; if `None`, worktrees are kept as they
    /// are.
    pub landings: Option<Landings>,
    /// The agent that is notified of an agent's end.
    pub parent: Name,
    /// True if the caller of the director passes on the results, so that no agent is notified.
    pub quiet: bool,
    /// True if the director waits for more tasks when nothing is left to do.
    pub linger: bool,
    /// Time limit of a check.
    pub verify_timeout: Duration,
    /// Maximum grace period of an agent that is stopped; overrides the settings.
    pub most_grace: Option<Duration>,
    /// Maximum attempts of a task.
    pub max_attempts: usize,
    /// Asked before each start.
    pub gate: Option<Gate>,
    /// The labels of this machine that not every machine has.
    pub labels: BTreeSet<String>,
    /// True if the director does not give up when nothing can start for long: a server may come
    /// back.
    pub patient: bool,
    /// The remote that takes branches and results to other machines, if there is one.
    pub remote: Option<Remote>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").finish_non_exhaustive()
    }
}

/// The labels that every machine has by default.
pub fn usual_labels() -> BTreeSet<String> {
    let os = format!("os={}", std::env::consts::OS);
    let arch = format!("arch={}", std::env::consts::ARCH);
    BTreeSet::from([os, arch])
}

impl Setup {
    /// The board that the director runs.
    pub(super) fn board(&self) -> &Arc<Board> {
        self.agents.board()
    }

    /// Lands finished work.
    pub(super) fn lander(&self) -> Lander<'_> {
        Lander {
            agents: &self.agents,
            verify_timeout: self.verify_timeout,
            reopen: Some(self.max_attempts),
        }
    }
}

/// The reason why a director could not continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectorError {
    /// Another process directs the team.
    #[error("team {team} is directed by another process ({who})")]
    Taken {
        /// The team.
        team: String,
        /// A description of that process.
        who: String,
    },
    /// The board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// Agents.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Worktrees.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Files.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}

impl Explain for DirectorError {
    fn facts(&self) -> Facts {
        match self {
            Self::Taken { .. } => {
                Facts::new(Category::Refused, "directed").hint("wait for it, or end it")
            }
            Self::Board(error) => error.facts(),
            Self::Agent(error) => error.facts(),
            Self::Tree(error) => error.facts(),
            Self::Store(error) => error.facts(),
        }
    }
}

/// The final report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The overall state.
    pub stand: Stand,
    /// The exhausted budget, if that ended the director.
    pub spent: Option<String>,
    /// The reason for a stop from outside, if there was one.
    pub stopped: Option<String>,
    /// Tasks that are done but not on the branch.
    pub not_landed: Vec<TaskId>,
}
