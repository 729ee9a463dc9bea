//! What happens while a plan runs, for those who show it.

use serde::Serialize;

use super::outcome::Outcome;

/// Something that happened. The set is closed: whoever shows events shows all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum FanoutEvent {
    /// The run begins with these tasks.
    Planned {
        tasks: Vec<PlannedEvent>,
        /// How many run at once at most.
        jobs: usize,
        /// The team whose board they are on.
        team: String,
    },
    /// An attempt at a task began.
    Started {
        task: String,
        agent: String,
        /// Which attempt, from 1.
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
    /// Nothing new is started for now.
    Paused { why: String },
    /// It goes on.
    Resumed,
    /// Something everybody should know.
    Note { text: String },
    /// Nothing happened, but time has passed.
    Tick,
    /// The run is over.
    Ended,
}

/// What those who show events need to know of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedEvent {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub subject: String,
    /// What it waits for.
    pub depends_on: Vec<String>,
    /// The file it is about, and the line.
    #[serde(skip)]
    pub place: Option<(String, Option<u64>)>,
}

impl PlannedEvent {
    /// Of a task.
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
