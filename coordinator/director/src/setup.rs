//! What a director is told, and what it says at the end.

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

/// Why nothing may be begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// It will be possible again.
    ForNow(String),
    /// What may be used is used up: what runs may finish, nothing else is begun.
    ForGood(String),
}

impl Closed {
    /// Why the team's limits, or its provider, let nothing be begun. How fast agents are started
    /// is seen to when one is.
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

/// Says why nothing may be begun, if so.
pub type Gate = Box<dyn Fn() -> Option<Closed> + Send + Sync>;

/// What a director needs to know.
pub struct Setup {
    /// The agents of the team whose board is worked off.
    pub agents: Agents,
    /// What agents are like.
    pub crew: Box<dyn Crew>,
    /// Who works.
    pub seats: Vec<Seat>,
    /// What must not be exceeded.
    pub limits: Limits,
    /// What work starts from.
    pub base: BaseOf,
    /// Where it goes as soon as it is done; without it trees stay as they are.
    pub landings: Option<Landings>,
    /// Who is told of an agent's end.
    pub parent: Name,
    /// The results are passed on by whoever runs the director, so nobody else has to be told.
    pub quiet: bool,
    /// It goes on when nothing is left to do, because there may be more later.
    pub linger: bool,
    /// How long a check may take.
    pub verify_timeout: Duration,
    /// So long an agent that is stopped may take at most, whatever the settings say.
    pub most_grace: Option<Duration>,
    /// How often a task is tried.
    pub max_attempts: usize,
    /// Asked before anything is begun.
    pub gate: Option<Gate>,
    /// What this machine has that not every machine has.
    pub labels: BTreeSet<String>,
    /// It is not given up when nothing can be begun for long: a server may come back.
    pub patient: bool,
    /// How branches and results get to other machines, if they do.
    pub remote: Option<Remote>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").finish_non_exhaustive()
    }
}

/// What every machine has as a label, without anybody saying so.
pub fn usual_labels() -> BTreeSet<String> {
    let os = format!("os={}", std::env::consts::OS);
    let arch = format!("arch={}", std::env::consts::ARCH);
    BTreeSet::from([os, arch])
}

impl Setup {
    /// What is worked off.
    pub(super) fn board(&self) -> &Arc<Board> {
        self.agents.board()
    }

    /// Lands what is done.
    pub(super) fn lander(&self) -> Lander<'_> {
        Lander {
            agents: &self.agents,
            verify_timeout: self.verify_timeout,
            reopen: Some(self.max_attempts),
        }
    }
}

/// Why a director could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectorError {
    /// There is one already.
    #[error("team {team} is directed by another process ({who})")]
    Taken {
        /// The team.
        team: String,
        /// What is known of that process.
        who: String,
    },
    /// The board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// Agents.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Trees.
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

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How things stand.
    pub stand: Stand,
    /// What was used up, if that ended it.
    pub spent: Option<String>,
    /// Why it was ended from outside, if it was.
    pub stopped: Option<String>,
    /// Tasks that are done but not on the branch.
    pub not_landed: Vec<TaskId>,
}
