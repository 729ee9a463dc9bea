//! Errors as the user sees them, and the only table of exit codes.

use std::error::Error;
use std::io;

use coordinator::DeleteError;
use coordinator::binding::BindingError;
use coordinator::engine::EngineError;
use coordinator::fanout::{FanoutError, Verdict};
use coordinator::fleet::FleetError;
use coordinator::run::AgentError;
use mailbox::MailError;
use serde_json::{Map, Value, json};
use store::StoreError;
use swarm::TeamError;
use swarm::definitions::DefinitionError;
use swarm::run::RunError;
use taskboard::{BoardError, Category};
use worktrees::TreeError;

/// The documented exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Usage,
    NotFound,
    Refused,
    TimedOut,
    /// A limit on turns, time, tokens or money; it can go on.
    Budget,
    /// The provider refuses for now; it can go on later.
    Quota,
    /// Something is left to land.
    Conflicts,
    Internal,
    /// What a command we ran for the user ended with.
    Of(u8),
    /// Ended by this signal; state is consistent.
    Signal(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Refused => 4,
            Self::TimedOut => 5,
            Self::Budget => 6,
            Self::Quota => 7,
            Self::Conflicts => 8,
            Self::Internal => 70,
            Self::Of(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Done => Self::Done,
            Verdict::Failed => Self::Failed,
            Verdict::Budget => Self::Budget,
            Verdict::Quota => Self::Quota,
            Verdict::Conflicts => Self::Conflicts,
            Verdict::Internal => Self::Internal,
            Verdict::Interrupted(signal) => Self::Signal(signal),
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The board said no.
    Board(BoardError),
    /// A team said no.
    Team(TeamError),
    /// A team was deleted only in part.
    Delete(DeleteError),
    /// The mailbox said no.
    Mail(MailError),
    /// The worktrees said no.
    Tree(TreeError),
    /// Something the command itself found.
    Other {
        exit: Exit,
        kind: &'static str,
        message: String,
        hint: Option<String>,
    },
    /// Nobody reads our output any more, which is fine.
    ClosedStdout,
}

impl CommandError {
    pub(crate) fn usage(kind: &'static str, message: impl Into<String>) -> Self {
        Self::Other {
            exit: Exit::Usage,
            kind,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn failed(kind: &'static str, message: impl Into<String>) -> Self {
        Self::Other {
            exit: Exit::Failed,
            kind,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::Other {
            exit: Exit::Internal,
            kind: "internal",
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Other {
                exit,
                kind,
                message,
                ..
            } => Self::Other {
                exit,
                kind,
                message,
                hint: Some(text.into()),
            },
            other => other,
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Board(error) => board_exit(error),
            Self::Mail(error) => mail_exit(error),
            Self::Team(error) => team_exit(error),
            Self::Delete(error) => delete_exit(error),
            Self::Tree(error) => tree_exit(error),
            Self::Other { exit, .. } => *exit,
            Self::ClosedStdout => Exit::Done,
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Board(error) => error.kind(),
            Self::Team(error) => error.kind(),
            Self::Delete(_) => "unfinished",
            Self::Mail(error) => error.kind(),
            Self::Tree(error) => error.kind(),
            Self::Other { kind, .. } => kind,
            Self::ClosedStdout => "closed_stdout",
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Board(error) => error.hint(),
            Self::Team(error) => error.hint(),
            Self::Delete(_) => Some("the same command finishes it".into()),
            Self::Mail(error) => error.hint(),
            Self::Tree(error) => error.hint(),
            Self::Other { hint, .. } => hint.clone(),
            Self::ClosedStdout => None,
        }
    }

    /// The message with what caused it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Board(error) => with_causes(error),
            Self::Team(error) => with_causes(error),
            Self::Delete(error) => with_causes(error),
            Self::Mail(error) => with_causes(error),
            Self::Tree(error) => with_causes(error),
            Self::Other { message, .. } => message.clone(),
            Self::ClosedStdout => "standard output was closed".into(),
        }
    }

    /// `{"error":{"kind","message","hint"?,…}}`.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("kind".into(), self.kind().into());
        error.insert("message".into(), self.message().into());
        if let Some(hint) = self.hint() {
            error.insert("hint".into(), hint.into());
        }
        match self {
            Self::Board(BoardError::Cycle { path }) => {
                error.insert("cycle".into(), json!(path));
            }
            Self::Board(BoardError::Refused { task, .. }) => {
                error.insert("task".into(), task.to_json());
            }
            Self::Team(
                TeamError::NotFound { nearest, .. } | TeamError::NoSuchMember { nearest, .. },
            ) => {
                error.insert("nearest".into(), json!(nearest));
            }
            Self::Team(TeamError::Alive { living, .. }) => {
                let each = living.iter();
                let each = each.map(|one| json!({"name": one.name, "why": one.why.as_str()}));
                error.insert("alive".into(), each.collect());
            }
            Self::Tree(
                TreeError::HasChanges { changes, .. } | TreeError::Uncommitted { changes, .. },
            ) => {
                error.insert("changes".into(), changes.to_json());
            }
            Self::Tree(TreeError::Conflicts { files, .. }) => {
                error.insert("files".into(), json!(files));
            }
            Self::Tree(
                TreeError::SetUp { log: Some(log), .. } | TreeError::CheckFailed { log, .. },
            ) => {
                error.insert("log".into(), log.to_string_lossy().into());
            }
            _ => {}
        }
        json!({ "error": error })
    }
}

fn board_exit(error: &BoardError) -> Exit {
    match error.category() {
        Category::Invalid => Exit::Usage,
        Category::NotFound => Exit::NotFound,
        Category::Refused => Exit::Refused,
        Category::TimedOut => Exit::TimedOut,
        Category::Failed => Exit::Failed,
    }
}

fn tree_exit(error: &TreeError) -> Exit {
    match error.category() {
        worktrees::Category::Invalid => Exit::Usage,
        worktrees::Category::NotFound => Exit::NotFound,
        worktrees::Category::Refused => Exit::Refused,
        worktrees::Category::TimedOut => Exit::TimedOut,
        worktrees::Category::Failed => Exit::Failed,
        worktrees::Category::Conflict => Exit::Conflicts,
    }
}

fn mail_exit(error: &MailError) -> Exit {
    match error.category() {
        mailbox::Category::Invalid => Exit::Usage,
        mailbox::Category::NotFound => Exit::NotFound,
        mailbox::Category::Refused => Exit::Refused,
        mailbox::Category::TimedOut => Exit::TimedOut,
        mailbox::Category::Failed => Exit::Failed,
    }
}

fn team_exit(error: &TeamError) -> Exit {
    match error {
        TeamError::Store(StoreError::LockTimeout { .. }) => Exit::TimedOut,
        TeamError::Store(StoreError::Io { .. }) | TeamError::NotDurable { .. } => Exit::Failed,
        TeamError::Store(_) | TeamError::Reserved { .. } => Exit::Usage,
        TeamError::NotFound { .. } | TeamError::NoSuchMember { .. } => Exit::NotFound,
        // What is there is not to be overwritten, disturbed or taken away.
        _ => Exit::Refused,
    }
}

fn delete_exit(error: &DeleteError) -> Exit {
    match error {
        DeleteError::Team(error) => team_exit(error),
        DeleteError::Board(error) => board_exit(error),
        DeleteError::Unfinished { source, .. } => delete_exit(source),
        _ => Exit::Failed,
    }
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Transparent errors repeat their cause.
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl From<BoardError> for CommandError {
    fn from(error: BoardError) -> Self {
        Self::Board(error)
    }
}

impl From<TeamError> for CommandError {
    fn from(error: TeamError) -> Self {
        Self::Team(error)
    }
}

impl From<DefinitionError> for CommandError {
    fn from(error: DefinitionError) -> Self {
        let exit = match error {
            DefinitionError::Denied { .. } => Exit::Refused,
            _ => Exit::NotFound,
        };
        Self::Other {
            exit,
            kind: error.kind(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<DeleteError> for CommandError {
    fn from(error: DeleteError) -> Self {
        match error {
            DeleteError::Team(error) => Self::Team(error),
            DeleteError::Board(error) => Self::Board(error),
            other => Self::Delete(other),
        }
    }
}

impl From<TreeError> for CommandError {
    fn from(error: TreeError) -> Self {
        Self::Tree(error)
    }
}

impl From<FanoutError> for CommandError {
    fn from(error: FanoutError) -> Self {
        let error = match error {
            FanoutError::Engine(error) => return error.into(),
            error => error,
        };
        let exit = match &error {
            FanoutError::Results { .. } | FanoutError::Uncommitted { .. } => Exit::Refused,
            FanoutError::DoesNotApply { .. } => Exit::Conflicts,
            FanoutError::Tree(_) | FanoutError::Store(_) => return Self::from_files(error),
            _ => Exit::Usage,
        };
        Self::Other {
            exit,
            kind: error.kind(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<BindingError> for CommandError {
    fn from(error: BindingError) -> Self {
        match error {
            BindingError::Board(error) => Self::Board(error),
            BindingError::Tree(error) => Self::Tree(error),
            BindingError::NoTask { .. } => Self::Other {
                exit: Exit::NotFound,
                kind: "no_task",
                message: error.to_string(),
                hint: Some("`ccb worktree bind NAME ID` binds one".into()),
            },
        }
    }
}

impl From<EngineError> for CommandError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Board(error) => error.into(),
            EngineError::Agent(error) => error.into(),
            EngineError::Tree(error) => error.into(),
            EngineError::Store(error) => error.into(),
            other => Self::Other {
                exit: Exit::Refused,
                kind: "directed",
                message: other.to_string(),
                hint: Some("wait for it, or end it".into()),
            },
        }
    }
}

impl From<AgentError> for CommandError {
    fn from(error: AgentError) -> Self {
        let (exit, kind, hint) = match &error {
            AgentError::Board(_)
            | AgentError::Tree(_)
            | AgentError::Mail(_)
            | AgentError::Team(_)
            | AgentError::Binding(_)
            | AgentError::Store(_)
            | AgentError::Fleet(FleetError::Store(_))
            | AgentError::Run(RunError::Store(_)) => return Self::from_part(error),
            AgentError::NotFound { nearest, .. } => {
                let hint = match nearest {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => "`ccb agent list` shows the agents there are".into(),
                };
                (Exit::NotFound, "agent_not_found", Some(hint))
            }
            AgentError::Run(RunError::NotFound { .. }) => {
                let hint = "`ccb agent list` shows the agents there are".into();
                (Exit::NotFound, "agent_not_found", Some(hint))
            }
            AgentError::Ambiguous { .. } => (Exit::Usage, "ambiguous", None),
            AgentError::NameTaken { .. } => {
                let hint = "choose another name, or stop that one first".into();
                (Exit::Refused, "name_taken", Some(hint))
            }
            AgentError::TooMany { .. } => {
                let hint = "wait for one to end, or raise agents.maxAgents in the settings".into();
                (Exit::Refused, "too_many_agents", Some(hint))
            }
            AgentError::Worker { .. } => {
                let hint = "it does its piece itself, and reports what else there is to do".into();
                (Exit::Refused, "worker", Some(hint))
            }
            AgentError::NoAgent { .. } => {
                let hint = "it does the work itself, or says in its report what is left".into();
                (Exit::Refused, "no_agent_tool", Some(hint))
            }
            AgentError::TooFast { until, .. } => {
                let hint = format!(
                    "the next can be started at {until}; limits.team.spawnsPerMinute in the \
                     settings says how many"
                );
                (Exit::Refused, "too_fast", Some(hint))
            }
            AgentError::Spent { .. } => {
                let hint = "raise the limit under limits.team in the settings, or open a new \
                            account with `ccb team limits --reset`";
                (Exit::Budget, "budget", Some(hint.into()))
            }
            AgentError::Paused { .. } => {
                let hint = "it goes on by itself; without --background the command waits for that";
                (Exit::Quota, "quota", Some(hint.into()))
            }
            AgentError::Fleet(FleetError::Newer { .. }) => (Exit::Usage, "newer_version", None),
            AgentError::NotRunning { .. } => {
                let hint = "`ccb agent resume` lets it go on".into();
                (Exit::Refused, "not_running", Some(hint))
            }
            AgentError::Run(RunError::Running { .. }) => (Exit::Refused, "running", None),
            AgentError::Run(RunError::Newer { .. }) => (Exit::Usage, "newer_version", None),
            AgentError::Invalid(_) => (Exit::Usage, "invalid", None),
            AgentError::NotTrusted(_) => {
                let hint = "`ccb trust --show` shows what there is".into();
                (Exit::Refused, "not_trusted", Some(hint))
            }
            AgentError::WillNotEnd { .. } => (Exit::TimedOut, "will_not_end", None),
            _ => (Exit::Failed, "agent_failed", None),
        };
        Self::Other {
            exit,
            kind,
            message: error.to_string(),
            hint,
        }
    }
}

impl CommandError {
    /// What git or the disk said keeps its exit code.
    fn from_files(error: FanoutError) -> Self {
        match error {
            FanoutError::Tree(error) => error.into(),
            FanoutError::Store(error) => error.into(),
            other => Self::failed("fanout_failed", other.to_string()),
        }
    }

    /// What one part of the engine said keeps its exit code.
    fn from_part(error: AgentError) -> Self {
        match error {
            AgentError::Board(error) => error.into(),
            AgentError::Tree(error) => error.into(),
            AgentError::Mail(error) => error.into(),
            AgentError::Team(error) => error.into(),
            AgentError::Binding(error) => error.into(),
            AgentError::Store(error)
            | AgentError::Run(RunError::Store(error))
            | AgentError::Fleet(FleetError::Store(error)) => error.into(),
            other => Self::failed("agent_failed", other.to_string()),
        }
    }
}

impl From<FleetError> for CommandError {
    fn from(error: FleetError) -> Self {
        AgentError::from(error).into()
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        AgentError::from(error).into()
    }
}

impl From<MailError> for CommandError {
    fn from(error: MailError) -> Self {
        Self::Mail(error)
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::Board(error.into())
    }
}

impl From<io::Error> for CommandError {
    /// Only for errors of writing to stdout.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedStdout,
            _ => Self::failed("io", format!("cannot write to standard output: {error}")),
        }
    }
}
