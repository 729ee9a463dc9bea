//! Why something with an agent did not work.

use store::clock::rfc3339;
use store::{Category, Explain, Facts};
use swarm::run::{RunError, ServiceError};
use team::TeamError;

use mailbox::MailError;
use taskboard::BoardError;
use worktrees::TreeError;

use crate::binding::BindingError;
use crate::fleet::{FleetError, Gate};
use crate::hooks::TreeHookError;

/// The errors of agents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AgentError {
    /// No agent has that name.
    #[error("there is no agent {given:?} in team {team}")]
    NotFound {
        given: String,
        team: String,
        /// The names the caller may have meant; `None` without a similar one.
        nearest: Option<String>,
    },
    /// Several are called that.
    #[error("{given:?} could be any of {}", candidates.join(", "))]
    Ambiguous {
        given: String,
        candidates: Vec<String>,
    },
    /// Another agent has the name.
    #[error("the name {name:?} is taken by agent {by}, which is running")]
    NameTaken { name: String, by: String },
    /// The maximum number of agents is running.
    #[error("{} running, and no more than {most} may run", store::counted(*running, "agent"))]
    TooMany { running: usize, most: usize },
    /// Too many were started within a minute.
    #[error("{} started within a minute, and no more may be", store::counted(usize::try_from(*most).unwrap_or(usize::MAX), "agent"))]
    TooFast {
        most: u32,
        /// The time of the next possible start, RFC 3339.
        until: String,
    },
    /// The team has used up what it may.
    #[error("{what}")]
    Spent {
        /// The limit, in words.
        what: String,
    },
    /// A provider refuses, and all agents wait.
    #[error("all agents are paused until {until}, because the provider refuses: {reason}")]
    Paused {
        /// The end of the pause, RFC 3339.
        until: String,
        /// The provider's words.
        reason: String,
    },
    /// A worker may not start agents.
    #[error("agent {id} is a worker, and a worker starts no agents")]
    Worker { id: String },
    /// The agent's definition does not let it start others.
    #[error("agent {id} may not start agents: its definition does not allow the tool Agent")]
    NoAgent { id: String },
    /// An agent that is not running cannot be stopped.
    #[error("agent {id} is not running: it is {state}")]
    NotRunning { id: String, state: &'static str },
    /// A request that makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// Hooks, setup and runtimes of a repository do not run until the user trusts them.
    #[error("{0}")]
    NotTrusted(String),
    /// It is still there.
    #[error("agent {id} does not end")]
    WillNotEnd { id: String },
    /// The agent's guard did not start.
    #[error("agent {id} could not be started: {why}")]
    NotStarted { id: String, why: String },
    /// A run's files.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An error of the board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// An error of a worktree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// An error of the mail.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// An error of the roster.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// A task and its worktree.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// The team's account.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// An error of a file.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}

impl AgentError {
    /// True if it says nothing about what was asked, only about the moment: something of the
    /// engine's was killed, or a file could not be read or written.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Tree(error) | Self::Binding(BindingError::Tree(error)) => error.is_passing(),
            Self::Board(error) | Self::Binding(BindingError::Board(error)) => error.is_passing(),
            Self::Run(_) | Self::Store(_) => true,
            Self::Mail(_) | Self::Team(_) | Self::Fleet(_) => true,
            Self::NotStarted { .. } => true,
            _ => false,
        }
    }

    /// True if a file could not be read or written, which concerns all agents and not only this
    /// one.
    pub fn is_broken(&self) -> bool {
        match self {
            Self::Board(error) => error.is_passing(),
            Self::Store(_)
            | Self::Run(RunError::Store(_))
            | Self::Tree(TreeError::Store(_) | TreeError::RemoteUnreachable { .. }) => true,
            _ => false,
        }
    }

    /// True if agents can start again later without help, but not now.
    pub(super) fn is_for_now(&self) -> bool {
        matches!(self, Self::Paused { .. } | Self::TooFast { .. })
    }

    /// Fails if no agent can start.
    pub(super) fn check(gate: Gate) -> Result<(), Self> {
        match gate {
            Gate::Open => Ok(()),
            Gate::Paused { until, reason } => Err(Self::Paused {
                until: rfc3339(until),
                reason,
            }),
            Gate::Crowded { until, most } => Err(Self::TooFast {
                most,
                until: rfc3339(until),
            }),
            Gate::Spent { what } => Err(Self::Spent { what }),
        }
    }
}

impl Explain for AgentError {
    fn facts(&self) -> Facts {
        use Category::{Budget, Failed, Invalid, NotFound, Quota, Refused, TimedOut};
        match self {
            Self::Run(error) => error.facts(),
            Self::Board(error) => error.facts(),
            Self::Tree(error) => error.facts(),
            Self::Mail(error) => error.facts(),
            Self::Team(error) => error.facts(),
            Self::Binding(error) => error.facts(),
            Self::Fleet(error) => error.facts(),
            Self::Store(error) => error.facts(),
            Self::NotFound { nearest, .. } => {
                Facts::new(NotFound, "agent_not_found").hint(match nearest {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => "`ccb agent list` shows the agents there are".into(),
                })
            }
            Self::Ambiguous { .. } => Facts::new(Invalid, "ambiguous"),
            Self::NameTaken { .. } => Facts::new(Refused, "name_taken")
                .hint("choose another name, or stop that one first"),
            Self::TooMany { .. } => Facts::new(Refused, "too_many_agents")
                .hint("wait for one to end, or raise agents.maxAgents in the settings"),
            Self::Worker { .. } => Facts::new(Refused, "worker")
                .hint("it does its piece itself, and reports what else there is to do"),
            Self::NoAgent { .. } => Facts::new(Refused, "no_agent_tool")
                .hint("it does the work itself, or says in its report what is left"),
            Self::TooFast { until, .. } => Facts::new(Refused, "too_fast").hint(format!(
                "the next can be started at {until}; limits.team.spawnsPerMinute in the settings \
                 says how many"
            )),
            Self::Spent { .. } => Facts::new(Budget, "budget").hint(
                "raise the limit under limits.team in the settings, or open a new account with \
                 `ccb team limits --reset`",
            ),
            Self::Paused { .. } => Facts::new(Quota, "quota")
                .hint("agents continue then; without --background the command waits"),
            Self::NotRunning { .. } => {
                Facts::new(Refused, "not_running").hint("`ccb agent resume` lets it go on")
            }
            Self::Invalid(_) => Facts::new(Invalid, "invalid"),
            Self::NotTrusted(_) => {
                Facts::new(Refused, "not_trusted").hint("`ccb trust --show` shows what there is")
            }
            Self::WillNotEnd { .. } => Facts::new(TimedOut, "will_not_end"),
            Self::NotStarted { .. } => Facts::new(Failed, "agent_failed"),
        }
    }
}

impl From<AgentError> for ServiceError {
    fn from(error: AgentError) -> Self {
        Self {
            passing: error.is_passing(),
            why: error.to_string(),
        }
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
