//! What the server needs from whoever runs agents.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coordinator::actions::mail::Letter;
use serde_json::{Value, json};
use store::Failure;

use super::answer::Answer;

/// What an agent is to be; checked for what the role may ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentInput {
    pub(crate) description: String,
    pub(crate) prompt: String,
    pub(crate) subagent_type: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) run_in_background: bool,
    pub(crate) name: Option<String>,
    /// The team it becomes a member of; only together with a name.
    pub(crate) team: Option<String>,
    /// It has to have its plan approved first.
    pub(crate) plan: bool,
    /// It gets a working tree of its own.
    pub(crate) worktree: bool,
    pub(crate) cwd: Option<String>,
}

/// What became of a spawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AgentResult {
    /// It ran and has ended, well or not.
    Completed {
        /// How: `completed`, `failed`, `killed`, `lost`.
        status: &'static str,
        content: String,
        /// Absent for agents nobody can write to afterwards.
        agent_id: Option<String>,
        usage: Option<AgentUsage>,
        /// Its tree, where it left changes: path and branch.
        worktree: Option<(String, Option<String>)>,
        /// What is to be known besides, e.g. which type was taken.
        note: Option<String>,
    },
    /// It runs in the background.
    AsyncLaunched {
        agent_id: String,
        description: String,
        prompt: String,
        output_file: String,
        can_read_output_file: bool,
        note: Option<String>,
    },
    /// It is a member of the team now.
    TeammateSpawned {
        teammate_id: String,
        name: String,
        team_name: String,
        note: Option<String>,
    },
}

/// What an agent used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentUsage {
    pub(crate) total_tokens: u64,
    pub(crate) tool_uses: u64,
    pub(crate) duration_ms: u64,
}

/// What an agent has said so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentOutput {
    /// Its state: `running`, `idle`, `completed`, `failed`, `killed`, `lost`.
    pub(crate) status: String,
    pub(crate) description: String,
    /// The result where it has ended, else the end of its output.
    pub(crate) output: String,
    /// Whether it has ended.
    pub(crate) ended: bool,
}

/// An agent that can be stopped and looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) alive: bool,
}

/// What became of a spawn, and what is to be done when that has arrived.
pub(crate) struct Spawned {
    pub(crate) result: AgentResult,
    pub(crate) receipt: Option<Receipt>,
}

impl Spawned {
    pub(crate) fn new(result: AgentResult) -> Self {
        Self {
            result,
            receipt: None,
        }
    }
}

/// Done when an answer has been written out; dropped if it never is.
pub(crate) type Receipt = Box<dyn FnOnce() + Send>;

/// Somebody who runs agents. Every call may block; the ones that wait look at `wait`.
pub(crate) trait AgentPort: Send + Sync {
    /// Starts an agent; in the foreground, until it ends or goes on in the background.
    fn spawn(&self, input: &AgentInput, wait: &Wait) -> Result<Spawned, Failure>;

    /// Stops a running agent and says how it ended.
    fn stop(&self, id: &str) -> Result<AgentOutput, Failure>;

    /// What an agent has said; with `block` after it has ended, or after `timeout`.
    fn output(
        &self,
        id: &str,
        block: bool,
        timeout: Duration,
        wait: &Wait,
    ) -> Result<AgentOutput, Failure>;

    /// Delivers a text to an agent that it knows; one that has ended goes on. `None` if it is
    /// for somebody else.
    fn message(&self, letter: &Letter) -> Result<Option<Answer>, Failure>;

    /// The agents this caller may stop and look at, oldest first.
    fn agents(&self) -> Result<Vec<Known>, Failure>;
}

/// Lets long waits end when nobody waits for them any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wait(Arc<AtomicBool>);

impl Wait {
    /// Nobody waits any more.
    pub(crate) fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether nobody waits any more.
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl AgentResult {
    /// As Claude Code's `Agent` answers.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Completed {
                status,
                content,
                agent_id,
                usage,
                worktree,
                note,
            } => {
                let mut json = json!({
                    "status": status,
                    "content": [{"type": "text", "text": content}],
                });
                put(&mut json, "agentId", agent_id.clone());
                if let Some(usage) = usage {
                    json["totalTokens"] = usage.total_tokens.into();
                    json["totalToolUseCount"] = usage.tool_uses.into();
                    json["totalDurationMs"] = usage.duration_ms.into();
                }
                if let Some((path, branch)) = worktree {
                    json["worktree"] = json!({"worktreePath": path, "worktreeBranch": branch});
                }
                put(&mut json, "note", note.clone());
                json
            }
            Self::AsyncLaunched {
                agent_id,
                description,
                prompt,
                output_file,
                can_read_output_file,
                note,
            } => {
                let mut json = json!({
                    "status": "async_launched",
                    "agentId": agent_id,
                    "description": description,
                    "prompt": prompt,
                    "outputFile": output_file,
                    "canReadOutputFile": can_read_output_file,
                });
                put(&mut json, "note", note.clone());
                json
            }
            Self::TeammateSpawned {
                teammate_id,
                name,
                team_name,
                note,
            } => {
                let mut json = json!({
                    "status": "teammate_spawned",
                    "teammate_id": teammate_id,
                    "name": name,
                    "team_name": team_name,
                });
                put(&mut json, "note", note.clone());
                json
            }
        }
    }
}

fn put(json: &mut Value, key: &str, value: Option<String>) {
    if let Some(value) = value {
        json[key] = value.into();
    }
}
