//! The record of a run: `meta.json`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::launch_plan::LaunchPlan;
use super::options::RunOptions;
use crate::process::ProcessId;
use crate::runtime::{Runtime, RuntimeError, RuntimeKind, Usage, from_spec};

/// The version of the format that this code writes.
pub(crate) const VERSION: u64 = 1;

store::words! {
    /// The state of a run.
    #[derive(Default)]
    pub enum RunState {
        /// Written down; no process yet.
        #[default]
        Registered = "registered",
        /// Its host is up.
        Starting = "starting",
        /// It works.
        Running = "running",
        /// Its turn is over; it waits for mail.
        Idle = "idle",
        /// It takes in nothing more.
        Ending = "ending",
        /// It did its task.
        Completed = "completed",
        /// It did not do its task.
        Failed = "failed",
        /// A user or an agent stopped it.
        Killed = "killed",
        /// It is gone, and the reason is unknown.
        Lost = "lost",
    }
}

impl RunState {
    /// True if nothing comes after it, in this life.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Killed | Self::Lost
        )
    }
}

/// The program that runs the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeSpec {
    /// Its name in settings and definitions.
    pub name: String,
    /// The kind of our runtime that drives it.
    pub kind: RuntimeKind,
    /// The program and its arguments; empty means the kind's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Variables on top of the agent's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl RuntimeSpec {
    /// The runtime; its program is searched for in the directories of `path`.
    pub fn find(&self, path: &OsStr) -> Result<Box<dyn Runtime>, RuntimeError> {
        let command = (!self.command.is_empty()).then_some(self.command.as_slice());
        from_spec(&self.name, Some(self.kind), command, path)
    }
}

/// The worktree that was made for the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeOf {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// Its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The further input of its setup, in case it has to be made again.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub set_up: Value,
    /// The commit from which its host makes it, as long as it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub make_from: Option<String>,
    /// The outcome at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TreeOutcome>,
}

impl TreeOf {
    /// True if it is still there, as far as it is recorded.
    pub fn is_kept(&self) -> bool {
        self.outcome.as_ref().is_none_or(|outcome| outcome.kept)
    }
}

/// The outcome of a run's worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeOutcome {
    /// True if it is still there.
    pub kept: bool,
    /// Why, in words.
    pub why: String,
}

store::words! {
    /// Says if the parent knows that the run has ended.
    pub enum Told {
        /// A waiter for the result passes it on.
        Waiting = "waiting",
        /// A waiter has passed it on.
        Delivered = "delivered",
        /// A notification is in its inbox.
        Posted = "posted",
        /// The run has no parent.
        Nobody = "nobody",
    }
}

/// The whole record of a run but its prompt and transcript.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// The format's version.
    pub v: u64,
    /// The agent's id, also the name of the run's directory.
    pub agent_id: String,
    /// Counts its lives, from 1.
    pub life: u32,
    /// By what it is addressed, if it was given a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if it is a member of the team and lives on when a turn is over.
    #[serde(skip_serializing_if = "is_false")]
    pub teammate: bool,
    /// The team the run belongs to.
    pub team: String,
    /// The agent that gets the report of its end.
    pub parent: String,
    /// Its task in a few words.
    pub description: String,
    /// Its definition.
    pub agent_type: String,
    /// True if it continues its parent's conversation.
    #[serde(skip_serializing_if = "is_false")]
    pub fork: bool,
    /// The program that runs it.
    pub runtime: RuntimeSpec,
    /// The model it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The actions it may take without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The rest of its runtime's input.
    pub launch: LaunchPlan,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its worktree, if one was made for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<TreeOf>,
    /// The repository it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<PathBuf>,
    /// The task list its tasks are on.
    pub list: String,
    /// The task it was started for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The token that each of its writes to that task contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The tool call that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The first of the services that are its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_base: Option<u16>,
    /// Its directory for temporary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp: Option<PathBuf>,
    /// The engine's settings for it: those of its starter.
    pub options: RunOptions,
    /// Its state.
    pub state: RunState,
    /// By what its runtime can resume it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The usage of all its lives.
    pub usage: Usage,
    /// The usage before this life.
    #[serde(skip_serializing_if = "is_nothing")]
    pub used_before: Usage,
    /// The number of restarts of the shared process in this life.
    #[serde(skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// Its guard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<ProcessId>,
    /// Its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<ProcessId>,
    /// Its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The time of its record, RFC 3339.
    pub created_at: String,
    /// The time at which this life began.
    pub started_at: String,
    /// The time at which this life ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Says if the parent knows of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
    /// The reason why it makes no progress, if it said so last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled: Option<String>,
    /// Fields written by a later version.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Meta {
    /// The name messages to it are addressed to.
    pub fn address(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.agent_id)
    }

    /// Its worktree, if its host has to make it first.
    pub fn awaited_tree(&self) -> Option<&TreeOf> {
        self.worktree
            .as_ref()
            .filter(|tree| tree.make_from.is_some())
    }

    /// The file with the conversation of an agent of our own loop: one line for each point at which it
    /// can be copied.
    pub fn conversation(&self) -> Option<&str> {
        let native = self.runtime.kind == RuntimeKind::Native;
        self.session.as_deref().filter(|_| native)
    }

    /// True if it continues a conversation it had: in a new life, or in a new process.
    pub fn goes_on(&self) -> bool {
        self.life >= 2 || (self.restarts > 0 && self.session.is_some())
    }

    /// The name of this life of the run: in notifications, and wherever something must happen once
    /// per life.
    pub fn life_id(&self) -> String {
        match self.life {
            0 | 1 => self.agent_id.clone(),
            life => format!("{}#{life}", self.agent_id),
        }
    }
}
