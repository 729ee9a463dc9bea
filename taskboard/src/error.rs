use std::path::PathBuf;

use serde_json::json;
use store::{Category, Explain, Facts, StoreError};

use crate::id::{BadId, TaskId};
use crate::invalid::Invalid;
use crate::task::Task;

/// The errors of a board.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BoardError {
    /// A file, lock, name or setting.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something that is not a task id.
    #[error(transparent)]
    BadId(#[from] BadId),
    /// Input that breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// No such task.
    #[error("there is no task {id}")]
    NotFound { id: TaskId },
    /// The task's file cannot be read as a task.
    #[error("the file of task {id} is unreadable ({detail}): {}", path.display())]
    Corrupt {
        id: TaskId,
        /// Its file, which stays as it is.
        path: PathBuf,
        detail: String,
    },
    /// The change would make tasks wait for each other in a circle.
    #[error("that would make a cycle: {}", display_path(path))]
    Cycle {
        /// The tasks on it; the first one comes again at the end.
        path: Vec<TaskId>,
    },
    /// The task is not in a state that allows it.
    #[error("task {}: {reason}", task.id)]
    Refused {
        /// The task as it was found.
        task: Box<Task>,
        reason: Refusal,
    },
    /// A hook said no.
    #[error("refused by a hook: {reason}")]
    Vetoed { reason: String },
    /// The hooks are unknown, so none was asked.
    #[error("{reason}")]
    BadSettings { reason: String },
    /// The task kept changing during a hook or check.
    #[error("task {id} changed while it was being checked")]
    ChangedMeanwhile { id: TaskId },
    /// The change is made, but a power cut may undo it.
    #[error("the change is made, but may not survive a power cut: {source}")]
    NotDurable { source: StoreError },
    /// The backend that the board is in; which errors there are is its own business.
    #[error("{0}")]
    Backend(Box<dyn Explain + Send + Sync>),
    /// The change was recorded but could not be carried through; the next command will.
    #[error("{what} is recorded but not finished: {source}")]
    Unfinished {
        what: &'static str,
        source: Box<Self>,
    },
}

/// The reasons why this caller cannot claim, complete or change a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Refusal {
    /// Another agent owns the task.
    #[error("owned by {owner}")]
    AlreadyClaimed { owner: String },
    /// It is completed.
    #[error("already completed")]
    AlreadyResolved,
    /// It waits for other tasks.
    #[error("blocked by {}", display_list(by))]
    Blocked {
        /// The blockers that are not completed.
        by: Vec<TaskId>,
    },
    /// It failed too often and waits for someone to act.
    #[error("parked: {reason}")]
    Parked { reason: String },
    /// The agent has other unfinished work.
    #[error("{agent} is busy with {}", display_list(with))]
    AgentBusy { agent: String, with: Vec<TaskId> },
    /// The token given is not the current one.
    #[error("the lease with token {token} is lost")]
    LeaseLost { token: u64 },
}

impl BoardError {
    /// True if it says nothing about what was asked, only about the moment: a file that cannot be
    /// read or written, a database that does not answer.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Backend(_))
    }

    pub(crate) fn refused(task: &Task, reason: Refusal) -> Self {
        Self::Refused {
            task: Box::new(task.clone()),
            reason,
        }
    }

    /// A list is to be followed from a change that is still to come.
    pub(crate) fn beyond(since: u64, last: u64) -> Self {
        let why = format!("the last change of this list is {last}; was its history deleted?");
        Self::invalid(format!("--since {since}"), why)
    }

    /// The error for a follower that starts from a deleted change; `first` is the first one that is
    /// left.
    pub(crate) fn forgotten(since: u64, first: u64) -> Self {
        let why = format!(
            "changes before {first} are gone; read the list and go on from {}",
            first - 1
        );
        Self::invalid(format!("--since {since}"), why)
    }

    /// Input that breaks a rule.
    pub fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Invalid::new(what, why).into()
    }
}

impl Explain for BoardError {
    fn facts(&self) -> Facts {
        use Category::{Failed, NotFound, Refused};
        match self {
            Self::Store(error) => error.facts(),
            Self::Backend(error) => error.facts(),
            Self::BadId(error) => error.facts(),
            Self::Invalid(error) => error.facts(),
            Self::NotFound { .. } => Facts::new(NotFound, "task_not_found")
                .hint("`ccb task list` shows the tasks there are"),
            Self::Corrupt { .. } => Facts::new(Refused, "corrupt")
                .hint("repair the file by hand, or run `ccb doctor --fix` to set it aside"),
            Self::Cycle { path } => Facts::new(Refused, "cycle").detail("cycle", json!(path)),
            Self::Refused { reason, task } => Facts::new(Refused, reason.kind())
                .hint(reason.hint(task.id))
                .detail("task", task.to_json()),
            Self::Vetoed { .. } => Facts::new(Refused, "vetoed"),
            Self::BadSettings { .. } => Facts::new(Category::Invalid, "bad_settings")
                .hint("correct the file; until then tasks can be neither created nor completed"),
            Self::ChangedMeanwhile { .. } => {
                Facts::new(Refused, "changed_meanwhile").hint("look at the task and try again")
            }
            Self::NotDurable { .. } => Facts::new(Failed, "not_durable")
                .hint("do not repeat it; look at the disk, and at the board with `ccb task list`"),
            Self::Unfinished { source, .. } => Facts::new(source.category(), "unfinished")
                .hint("the next ccb command on this list finishes it"),
        }
    }
}

impl Refusal {
    /// A stable word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::AlreadyClaimed { .. } => "already_claimed",
            Self::AlreadyResolved => "already_resolved",
            Self::Blocked { .. } => "blocked",
            Self::Parked { .. } => "parked",
            Self::AgentBusy { .. } => "agent_busy",
            Self::LeaseLost { .. } => "lease_lost",
        }
    }

    fn hint(&self, id: TaskId) -> String {
        match self {
            Self::AlreadyClaimed { owner } => {
                format!("act as its owner with `--as {owner}`, or override with `--force`")
            }
            Self::AlreadyResolved => {
                format!("`ccb task update {id} --status pending` opens it again")
            }
            Self::Blocked { .. } => format!("`ccb task show {id}` says what it waits for"),
            Self::Parked { .. } => {
                format!("`ccb task update {id} --status pending` makes it ready again")
            }
            Self::AgentBusy { .. } => "finish or release that first".into(),
            Self::LeaseLost { .. } => "stop working on it: it may be somebody else's by now".into(),
        }
    }
}

pub(crate) fn display_list(ids: &[TaskId]) -> String {
    ids.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn display_path(ids: &[TaskId]) -> String {
    ids.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" → ")
}
