//! The moments at which hooks run, and the input they get.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

store::words! {
    /// The moments at which hooks run.
    pub enum HookEvent {
        /// An agent is about to start. Can add to its context; a block prevents it.
        SubagentStart = "SubagentStart",
        /// An agent is about to end. A block makes it continue.
        SubagentStop = "SubagentStop",
        /// A task is about to be created. A block prevents it.
        TaskCreated = "TaskCreated",
        /// A task is about to be completed. A block prevents it.
        TaskCompleted = "TaskCompleted",
        /// A teammate is idle. A block makes it continue.
        TeammateIdle = "TeammateIdle",
        /// A worktree is wanted. The hook makes it and says where.
        WorktreeCreate = "WorktreeCreate",
        /// A worktree that a hook made is to go.
        WorktreeRemove = "WorktreeRemove",
    }
}

impl HookEvent {
    /// True if a block means that an action does not happen. Without the hook's answer (time-out,
    /// killed, not started), it has blocked.
    pub fn is_veto(self) -> bool {
        matches!(
            self,
            Self::SubagentStart | Self::TaskCreated | Self::TaskCompleted | Self::WorktreeCreate
        )
    }

    /// True if a block means that an agent continues. Without the hook's answer it ends.
    pub fn is_loop(self) -> bool {
        matches!(self, Self::SubagentStop | Self::TeammateIdle)
    }
}

/// The input of hooks, and where they run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HookInput {
    /// The directory in which the hook runs.
    pub cwd: PathBuf,
    /// The root of the project, as `CLAUDE_PROJECT_DIR`.
    pub project: PathBuf,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// The agent it is about.
    pub agent_id: Option<String>,
    /// Its type, for matchers.
    pub agent_type: Option<String>,
    /// The task it is about.
    pub task_id: Option<String>,
    /// The task's subject.
    pub task_subject: Option<String>,
    /// The task's description.
    pub task_description: Option<String>,
    /// The teammate it is about.
    pub teammate_name: Option<String>,
    /// The team.
    pub team_name: Option<String>,
    /// Further fields of the input.
    pub more: Map<String, Value>,
}

impl HookInput {
    /// One line of JSON, as the hook reads it.
    pub(super) fn to_line(&self, event: HookEvent) -> Vec<u8> {
        let mut map = Map::new();
        let mut put = |key: &str, text: Option<&str>| {
            if let Some(text) = text {
                map.insert(key.to_owned(), text.into());
            }
        };
        put("hook_event_name", Some(event.as_str()));
        put("session_id", self.session_id.as_deref());
        put("cwd", Some(&self.cwd.to_string_lossy()));
        put("agent_id", self.agent_id.as_deref());
        put("agent_type", self.agent_type.as_deref());
        put("task_id", self.task_id.as_deref());
        put("task_subject", self.task_subject.as_deref());
        put("task_description", self.task_description.as_deref());
        put("teammate_name", self.teammate_name.as_deref());
        put("team_name", self.team_name.as_deref());
        for (key, value) in &self.more {
            map.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let mut line = Value::Object(map).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}
