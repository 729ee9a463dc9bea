//! Events of a running plan, for views.

use serde::Serialize;

use super::outcome::Outcome;

/// An event. The set is closed: each view shows all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum FanoutEvent {
    /// The run begins with these tasks.
    Planned {
        tasks: Vec<PlannedEvent>,
        /// Maximum number of tasks that run at the same time.
        jobs: usize,
        /// The team whose board they are on.
        team: String,
    },
    /// An attempt at a task began.
    Started {
        task: String,
        agent: String,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// The agent of a task is done; its check runs.
    Checking { task: String },
    /// An attempt failed; there will be another.
    Retrying { task: String, why: String },
    /// A task ended.
    Finished { task: String, outcome: Outcome },
    /// The result of a task is on the branch everything lands on.
    Landed {
        task: String,
        branch: String,
        commit: String,
    },
    /// No new task starts for now.
    Paused { why: String },
    /// New tasks start again.
    Resumed,
    /// A message for every view.
    Note { text: String },
    /// Time passed without another event.
    Tick,
    /// The run is over.
    Ended,
}

/// The fields of a task that views need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedEvent {
    /// The task's id.
    pub id: String,
    /// The task in one line.
    pub subject: String,
    /// The tasks it depends on.
    pub depends_on: Vec<String>,
    /// The file it is about, and the line.
    #[serde(skip)]
    pub place: Option<(String, Option<u64>)>,
}

impl PlannedEvent {
    /// The fields of a task.
    pub fn of(task: &super::task::PlannedTask) -> Self {
        let origin = task.origin.as_ref();
        Self {
            id: task.id.clone(),
            subject: task.subject.clone(),
            depends_on: task.depends_on.clone(),
            place: origin.and_then(|origin| Some((origin.file.clone()?, origin.line))),
        }
    }
}
