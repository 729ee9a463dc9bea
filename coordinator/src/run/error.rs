//! Why something with an agent did not work.

use swarm::TeamError;
use swarm::run::{PortError, RunError};

use mailbox::MailError;
use taskboard::BoardError;
use worktrees::TreeError;

use crate::binding::BindingError;
use crate::hooks::TreeHookError;

/// Why something with an agent did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Nobody is called that.
    #[error("there is no agent {given:?} in team {team}")]
    NotFound {
        /// What was asked for.
        given: String,
        /// Where.
        team: String,
        /// Who may have been meant.
        nearest: Option<String>,
    },
    /// Several are called that.
    #[error("{given:?} could be any of {}", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        given: String,
        /// Who it could be.
        candidates: Vec<String>,
    },
    /// A name somebody has.
    #[error("the name {name:?} is taken by agent {by}, which is running")]
    NameTaken {
        /// The name.
        name: String,
        /// Who has it.
        by: String,
    },
    /// As many run as may.
    #[error("{running} agents are running, and no more than {most} may")]
    TooMany {
        /// How many run.
        running: usize,
        /// How many may.
        most: usize,
    },
    /// What is not running cannot be stopped.
    #[error("agent {id} is not running: it is {state}")]
    NotRunning {
        /// Which.
        id: String,
        /// How far it is.
        state: &'static str,
    },
    /// A request that makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// What the repository brings along is not run unasked.
    #[error("{0}")]
    NotTrusted(String),
    /// It is still there.
    #[error("agent {id} does not end")]
    WillNotEnd {
        /// Which.
        id: String,
    },
    /// Its guard did not come up.
    #[error("agent {id} could not be started: {why}")]
    NotStarted {
        /// Which.
        id: String,
        /// What happened.
        why: String,
    },
    /// A run's files.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// A working tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The mail.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// The roster.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// A task and its tree.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// A file.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}

impl From<AgentError> for PortError {
    fn from(error: AgentError) -> Self {
        Self(error.to_string())
    }
}

impl From<TreeHookError> for AgentError {
    fn from(error: TreeHookError) -> Self {
        match error {
            TreeHookError::NotTrusted(why) => Self::NotTrusted(why),
            TreeHookError::Unreadable(why) => Self::Invalid(why),
        }
    }
}
