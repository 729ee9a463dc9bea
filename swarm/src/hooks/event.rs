//! When hooks run, and what they are told.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

store::words! {
    /// The moments at which hooks run.
    pub enum HookEvent {
        /// An agent is about to start. Can add to its context; a block prevents it.
        SubagentStart = "SubagentStart",
        /// An agent is about to end. A block makes it go on.
        SubagentStop = "SubagentStop",
        /// A task is about to be created. A block prevents it.
        TaskCreated = "TaskCreated",
        /// A task is about to be completed. A block prevents it.
        TaskCompleted = "TaskCompleted",
        /// A teammate has nothing to do. A block makes it go on.
        TeammateIdle = "TeammateIdle",
        /// A working tree is wanted. The hook makes it and says where.
        WorktreeCreate = "WorktreeCreate",
        /// A working tree that a hook made is to go.
        WorktreeRemove = "WorktreeRemove",
    }
}

impl HookEvent {
    /// Whether a block means that something does not happen. Where it is not known what such a
    /// hook would have said (time-out, killed, not started), it has blocked.
    pub fn is_veto(self) -> bool {
        matches!(
            self,
            Self::SubagentStart | Self::TaskCreated | Self::TaskCompleted | Self::WorktreeCreate
        )
    }

    /// Whether a block means that an agent goes on. Not knowing lets it end.
    pub fn is_loop(self) -> bool {
        matches!(self, Self::SubagentStop | Self::TeammateIdle)
    }
}

/// What hooks are told, and where they run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HookInput {
    /// Where the hook runs.
    pub cwd: PathBuf,
    /// The root of the project, as `CLAUDE_PROJECT_DIR`.
    pub project: PathBuf,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// The agent it is about.
    pub agent_id: Option<String>,
    /// Its type; matchers look at it.
    pub agent_type: Option<String>,
    /// The task it is about.
    pub task_id: Option<String>,
    /// That task's subject.
    pub task_subject: Option<String>,
    /// That task's description.
    pub task_description: Option<String>,
    /// The teammate it is about.
    pub teammate_name: Option<String>,
    /// The team.
    pub team_name: Option<String>,
    /// Whatever else there is to say.
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
