//! The agents' own tools: requests of an agent or a client for other agents.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mailbox::{Posted, Priority};
use project::workplace::Workplace;
use runs::Listed;
use serde::Serialize;
use serde_json::{Value, json};
use store::Failure;

use super::describe::Wish;
use crate::actions::mail::Letter;

/// The result of a spawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum AgentResult {
    /// The agent ran and has ended.
    #[serde(rename_all = "camelCase")]
    Completed {
        /// The outcome: `completed`, `failed`, `killed`, `lost`.
        #[serde(skip)]
        status: &'static str,
        content: String,
        /// The id; `None` for agents that take no messages afterwards.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<String>,
        #[serde(flatten)]
        usage: Option<AgentUsage>,
        /// Its worktree, if it left changes: path and branch.
        #[serde(skip)]
        worktree: Option<(String, Option<String>)>,
    },
    /// The agent runs in the background.
    #[serde(rename_all = "camelCase")]
    AsyncLaunched {
        agent_id: String,
        description: String,
        output_file: String,
        can_read_output_file: bool,
    },
    /// The agent is a member of the team now.
    TeammateSpawned {
        /// `name@team`.
        teammate_id: String,
        name: String,
        team_name: String,
    },
}

/// The usage of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AgentUsage {
    /// Tokens of all kinds.
    #[serde(rename = "totalTokens")]
    pub total_tokens: u64,
    /// Number of tool calls.
    #[serde(rename = "totalToolUseCount")]
    pub tool_uses: u64,
    /// Duration in ms.
    #[serde(rename = "totalDurationMs")]
    pub duration_ms: u64,
}

/// The output of an agent so far.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    /// Its state: `running`, `idle`, `completed`, `failed`, `killed`, `lost`.
    pub status: String,
    /// Its work, in a few words.
    pub description: String,
    /// The result if it has ended, else the end of its output.
    pub output: String,
    /// True if it has ended.
    pub ended: bool,
}

/// The result of a spawn, and an action for after its delivery.
pub struct Spawned {
    /// The result.
    pub result: AgentResult,
    /// A note for the caller, for example the chosen agent type.
    pub note: Option<String>,
    /// The action after the delivery.
    pub receipt: Option<Receipt>,
}

impl Spawned {
    /// A result without an action.
    pub fn new(result: AgentResult, note: Option<String>) -> Self {
        Self {
            result,
            note,
            receipt: None,
        }
    }

    /// In the form of Claude Code's `Agent`.
    pub fn to_json(&self) -> Value {
        let mut json = json!(self.result);
        if let AgentResult::Completed {
            status,
            content,
            worktree,
            ..
        } = &self.result
        {
            json["status"] = (*status).into();
            json["content"] = json!([{"type": "text", "text": content}]);
            if let Some((path, branch)) = worktree {
                json["worktree"] = json!({"worktreePath": path, "worktreeBranch": branch});
            }
        }
        if let Some(note) = &self.note {
            json["note"] = note.as_str().into();
        }
        json
    }
}

/// A text that an agent received, or resumes with.
#[derive(Debug, Clone)]
pub struct Messaged {
    /// The recipient.
    pub to: String,
    /// The form of delivery.
    pub posted: Posted,
    /// The urgency.
    pub priority: Priority,
    /// True if the agent had ended and resumes.
    pub resumed: bool,
}

/// Called when an answer was written; dropped if it never is.
pub type Receipt = Box<dyn FnOnce() + Send>;

/// Runs agents for the caller at `workplace`. Every call may block; long waits end with `wait`.
pub trait AgentService: Send + Sync {
    /// Starts an agent; in the foreground, until it ends or is moved to the background.
    fn spawn(&self, wish: &Wish, workplace: &Workplace, wait: &Wait) -> Result<Spawned, Failure>;

    /// Stops a running agent and returns its outcome.
    fn stop(&self, id: &str, workplace: &Workplace) -> Result<AgentOutput, Failure>;

    /// The output of an agent; with `block` after it has ended, or after `timeout`. Also returns an
    /// action for after the delivery.
    fn output(
        &self,
        id: &str,
        block: bool,
        timeout: Duration,
        workplace: &Workplace,
        wait: &Wait,
    ) -> Result<(AgentOutput, Option<Receipt>), Failure>;

    /// Delivers a text to an agent that it knows; an agent that has ended resumes. `None` if the
    /// recipient is unknown.
    fn message(&self, letter: &Letter, workplace: &Workplace) -> Result<Option<Messaged>, Failure>;

    /// The agents this caller may stop and inspect, oldest first.
    fn agents(&self, workplace: &Workplace) -> Result<Vec<Listed>, Failure>;
}

/// Ends long waits when the caller no longer waits, and reports their progress.
#[derive(Debug, Clone, Default)]
pub struct Wait(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    over: AtomicBool,
    progress: Mutex<Option<Progress>>,
}

/// The progress of an agent during a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Number of tool calls.
    pub steps: u64,
    /// Its activity, and since when, in words.
    pub words: String,
}

impl Wait {
    /// Ends the wait, because the caller no longer waits.
    pub fn end(&self) {
        self.0.over.store(true, Ordering::Release);
    }

    /// True if the caller no longer waits.
    pub fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    /// Reports progress.
    pub fn report(&self, progress: Progress) {
        *self.latest() = Some(progress);
    }

    /// The progress reported since the last call, if any.
    pub fn progress(&self) -> Option<Progress> {
        self.latest().take()
    }

    fn latest(&self) -> MutexGuard<'_, Option<Progress>> {
        let progress = &self.0.progress;
        progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Spawned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Spawned").field(&self.result).finish()
    }
}
