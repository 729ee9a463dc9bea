//! What an agent or a client asks for when it wants others to work: the agents' own tools.

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

/// What became of a spawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum AgentResult {
    /// It ran and has ended, well or not.
    #[serde(rename_all = "camelCase")]
    Completed {
        /// How: `completed`, `failed`, `killed`, `lost`.
        #[serde(skip)]
        status: &'static str,
        content: String,
        /// Absent for agents nobody can write to afterwards.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<String>,
        #[serde(flatten)]
        usage: Option<AgentUsage>,
        /// Its tree, where it left changes: path and branch.
        #[serde(skip)]
        worktree: Option<(String, Option<String>)>,
    },
    /// It runs in the background.
    #[serde(rename_all = "camelCase")]
    AsyncLaunched {
        agent_id: String,
        description: String,
        output_file: String,
        can_read_output_file: bool,
    },
    /// It is a member of the team now.
    TeammateSpawned {
        /// `name@team`.
        teammate_id: String,
        name: String,
        team_name: String,
    },
}

/// What an agent used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AgentUsage {
    /// Tokens of all kinds.
    #[serde(rename = "totalTokens")]
    pub total_tokens: u64,
    /// Calls of tools.
    #[serde(rename = "totalToolUseCount")]
    pub tool_uses: u64,
    /// How long it took.
    #[serde(rename = "totalDurationMs")]
    pub duration_ms: u64,
}

/// What an agent has said so far.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    /// Its state: `running`, `idle`, `completed`, `failed`, `killed`, `lost`.
    pub status: String,
    /// What it does, in a few words.
    pub description: String,
    /// The result where it has ended, else the end of its output.
    pub output: String,
    /// Whether it has ended.
    pub ended: bool,
}

/// What became of a spawn, and what is to be done when that has arrived.
pub struct Spawned {
    /// What became of it.
    pub result: AgentResult,
    /// What is to be known besides, e.g. which type was taken.
    pub note: Option<String>,
    /// What is to be done when that has arrived.
    pub receipt: Option<Receipt>,
}

impl Spawned {
    /// Nothing is to be done afterwards.
    pub fn new(result: AgentResult, note: Option<String>) -> Self {
        Self {
            result,
            note,
            receipt: None,
        }
    }

    /// As Claude Code's `Agent` answers.
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

/// A text that an agent has, or goes on with.
#[derive(Debug, Clone)]
pub struct Messaged {
    /// To whom it went.
    pub to: String,
    /// As what.
    pub posted: Posted,
    /// How soon it is to be read.
    pub priority: Priority,
    /// The agent had ended, and goes on.
    pub resumed: bool,
}

/// Done when an answer has been written out; dropped if it never is.
pub type Receipt = Box<dyn FnOnce() + Send>;

/// Somebody who runs agents for whoever is at `workplace`. Every call may block; the ones that
/// wait look at `wait`.
pub trait AgentService: Send + Sync {
    /// Starts an agent; in the foreground, until it ends or goes on in the background.
    fn spawn(&self, wish: &Wish, workplace: &Workplace, wait: &Wait) -> Result<Spawned, Failure>;

    /// Stops a running agent and says how it ended.
    fn stop(&self, id: &str, workplace: &Workplace) -> Result<AgentOutput, Failure>;

    /// What an agent has said; with `block` after it has ended, or after `timeout`. And what is
    /// to be done when that has arrived.
    fn output(
        &self,
        id: &str,
        block: bool,
        timeout: Duration,
        workplace: &Workplace,
        wait: &Wait,
    ) -> Result<(AgentOutput, Option<Receipt>), Failure>;

    /// Delivers a text to an agent that it knows; one that has ended goes on. `None` if it is
    /// for somebody else.
    fn message(&self, letter: &Letter, workplace: &Workplace) -> Result<Option<Messaged>, Failure>;

    /// The agents this caller may stop and look at, oldest first.
    fn agents(&self, workplace: &Workplace) -> Result<Vec<Listed>, Failure>;
}

/// Lets long waits end when nobody waits for them any more, and says how far they are.
#[derive(Debug, Clone, Default)]
pub struct Wait(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    over: AtomicBool,
    progress: Mutex<Option<Progress>>,
}

/// How far an agent is that somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How many tools it has used.
    pub steps: u64,
    /// What it does, and since when, in words.
    pub words: String,
}

impl Wait {
    /// Nobody waits any more.
    pub fn end(&self) {
        self.0.over.store(true, Ordering::Release);
    }

    /// Whether nobody waits any more.
    pub fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    /// Says how far it is.
    pub fn report(&self, progress: Progress) {
        *self.latest() = Some(progress);
    }

    /// How far it is, if that was said since the last call.
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
