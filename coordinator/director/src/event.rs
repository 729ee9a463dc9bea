//! What a director tells whoever runs it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use swarm::run::Proof;
use swarm::runtime::Usage;
use taskboard::TaskId;

/// Something that happened, for people and reports. Nothing depends on it being heard: what
/// counts is on disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum DirectorEvent {
    /// An agent was started for a task, or found at work on it.
    Started {
        task: TaskId,
        subject: String,
        agent: String,
        /// Its name, if it has one.
        name: Option<String>,
        /// Counts from 1.
        attempt: usize,
        /// It was at work already, for a director that is gone.
        adopted: bool,
    },
    /// The work on a task has ended.
    Ended {
        task: TaskId,
        /// The agent's id, if one was started.
        agent: Option<String>,
        #[serde(skip)]
        end: TaskEnd,
        #[serde(skip)]
        usage: Usage,
        #[serde(skip)]
        took: Duration,
    },
    /// What was done for a task is part of the branch.
    Landed {
        task: TaskId,
        into: String,
        /// Where it stands now.
        commit: String,
    },
    /// What was done for a task is not part of the branch.
    NotLanded {
        task: TaskId,
        /// The files both sides changed, where that is the reason.
        files: Vec<String>,
        why: String,
        /// The task that is to put it right.
        became: Option<TaskId>,
        /// Where the work is, if it can be resolved there.
        #[serde(skip_serializing_if = "Option::is_none")]
        worktree: Option<PathBuf>,
        /// The tasks whose work has changed the same lines.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        rivals: Vec<String>,
    },
    /// Somebody with a name has nothing to do any more.
    Idle {
        name: String,
        /// What it did last.
        task: TaskId,
        /// What went wrong with that, if something did.
        failure: Option<String>,
    },
    /// Nothing is left to do for now.
    AtRest {
        #[serde(skip)]
        stand: super::schedule::Stand,
    },
    /// Nothing is begun for now.
    Paused { why: String },
    /// It goes on.
    Resumed,
    /// Something else a person may want to know.
    Note { text: String },
    /// Nothing happened for a moment.
    Tick,
}

/// How the work on a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum TaskEnd {
    /// It is completed.
    Done {
        /// What there is to show for it.
        proof: Option<Box<Proof>>,
        /// What the agent said.
        result: String,
    },
    /// It failed, and will be tried again.
    Failed { why: String },
    /// It failed too often.
    Parked { why: String },
    /// It was stopped; the task is free again.
    Stopped {
        /// By whom, or for what.
        why: String,
    },
    /// Somebody else has the task now.
    Taken,
}
