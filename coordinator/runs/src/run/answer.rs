//! The answers to callers that start agents or wait for them, in the words Claude Code users know.

use serde_json::{Value, json};
use store::agent_id::AgentId;
use swarm::run::ExitStatus;

use super::agents::Listed;
use super::agents::state_word;
use super::finish::task_vetoed;
use super::start::Launched;
use super::wait::Outcome;

impl Launched {
    /// The answer to a start in the background.
    pub fn to_json(&self, prompt: &str) -> Value {
        let meta = &self.meta;
        if meta.teammate {
            return json!({
                "status": "teammate_spawned",
                "teammate_id": AgentId::member(meta.address(), &meta.team).as_str(),
                "name": meta.address(),
                "team_name": meta.team,
                "agentId": meta.agent_id,
            });
        }
        json!({
            "status": "async_launched",
            "agentId": meta.agent_id,
            "description": meta.description,
            "prompt": prompt,
            "outputFile": self.run.output_path(),
            "canReadOutputFile": true,
        })
    }
}

impl Outcome {
    /// True if the agent did what it was asked.
    pub fn is_success(&self) -> bool {
        self.exit.status == ExitStatus::Completed
    }

    /// The answer to a caller that waited.
    pub fn to_json(&self) -> Value {
        let Self { meta, exit } = self;
        let mut answer = json!({
            "status": exit.status.as_str(),
            "agentId": meta.agent_id,
            "content": exit.text(),
            "totalTokens": exit.usage.total_tokens(),
            "totalToolUseCount": exit.usage.tool_uses,
            "totalDurationMs": exit.duration_ms,
            "totalCostUsd": exit.usage.known_cost(),
        });
        if let Some(error) = &exit.error {
            answer["error"] = error.clone().into();
        }
        if let Some(reason) = exit.reason {
            answer["reason"] = reason.as_str().into();
        }
        if let Some(why) = task_vetoed(meta) {
            answer["taskVetoed"] = why.into();
        }
        if let Some(tree) = meta.worktree.as_ref().filter(|tree| tree.is_kept()) {
            answer["worktree"] = json!({"worktreePath": tree.path, "worktreeBranch": tree.branch});
        }
        answer
    }
}

impl Listed {
    /// The agent's state, in one word.
    pub fn state(&self) -> &'static str {
        state_word(&self.meta, self.alive)
    }

    /// The data about an agent for programs.
    pub fn to_json(&self) -> Value {
        let meta = &self.meta;
        let mut answer = json!({
            "agentId": meta.agent_id,
            "state": self.state(),
            "alive": self.alive,
            "description": meta.description,
            "type": meta.agent_type,
            "runtime": meta.runtime.name,
            "team": meta.team,
            "list": meta.list,
            "parent": meta.parent,
            "cwd": meta.cwd,
            "life": meta.life,
            "createdAt": meta.created_at,
            "startedAt": meta.started_at,
            "usage": meta.usage.to_json(),
        });
        let tree = meta.worktree.as_ref();
        let more = [
            ("name", meta.name.clone().map(Value::from)),
            ("teammate", meta.teammate.then_some(Value::Bool(true))),
            ("taskId", meta.task_id.clone().map(Value::from)),
            ("model", meta.model.clone().map(Value::from)),
            ("session", meta.session.clone().map(Value::from)),
            ("pid", meta.pid.map(Value::from)),
            ("endedAt", meta.ended_at.clone().map(Value::from)),
            ("stalled", meta.stalled.clone().map(Value::from)),
            ("portBase", meta.port_base.map(Value::from)),
            (
                "worktree",
                tree.and_then(|tree| serde_json::to_value(tree).ok()),
            ),
        ];
        for (key, value) in more {
            if let Some(value) = value {
                answer[key] = value;
            }
        }
        answer
    }
}
