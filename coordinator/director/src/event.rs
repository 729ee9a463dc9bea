//! Events of a director for its caller.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use swarm::run::Proof;
use swarm::runtime::Usage;
use taskboard::TaskId;

/// An event for people and reports. Nothing depends on its delivery: the state that counts is on
/// disk.
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
        /// True if the agent was started by an earlier director.
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
    /// The result of a task is on the branch.
    Landed {
        task: TaskId,
        into: String,
        /// The branch's new head.
        commit: String,
    },
    /// The result of a task did not land.
    NotLanded {
        task: TaskId,
        /// The files both sides changed, if that is the reason.
        files: Vec<String>,
        why: String,
        /// The task that is to resolve the conflict.
        became: Option<TaskId>,
        /// The worktree in which the conflict can be resolved.
        #[serde(skip_serializing_if = "Option::is_none")]
        worktree: Option<PathBuf>,
        /// The tasks whose work changed the same lines.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        rivals: Vec<String>,
    },
    /// An agent with a name has no more work.
    Idle {
        name: String,
        /// The task it did last.
        task: TaskId,
        /// The reason why that task failed; `None` if it succeeded.
        failure: Option<String>,
    },
    /// Nothing is left to do for now.
    AtRest {
        #[serde(skip)]
        stand: super::schedule::Stand,
    },
    /// Nothing new starts for now.
    Paused { why: String },
    /// New tasks start again.
    Resumed,
    /// Another message for people.
    Note { text: String },
    /// A moment passed without an event.
    Tick,
}

/// How the work on a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum TaskEnd {
    /// It is completed.
    Done {
        /// The proof, if the task has a check.
        proof: Option<Box<Proof>>,
        /// The agent's last message.
        result: String,
    },
    /// The attempt failed; the task will be retried.
    Failed { why: String },
    /// The task failed too often.
    Parked { why: String },
    /// It was stopped; the task is free again.
    Stopped {
        /// The name or reason that stopped it.
        why: String,
    },
    /// Another agent has the task now.
    Taken,
}
