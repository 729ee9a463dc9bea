//! The notification of the end of a background run, for programs and for models.
//!
//! The text form is fixed, because prompts describe it to models:
//!
//! ```text
//! <task-notification>
//! <task-id>a0123456789abcdef</task-id>
//! <tool-use-id>toolu_01</tool-use-id>                      (if known)
//! <output-file>/home/me/.claude/teams/t/runs/a0…/output.log</output-file>
//! <status>completed</status>
//! <summary>Agent "Fix the build" completed</summary>
//! <result>…</result>                                       (if any)
//! <usage>
//! <total_tokens>1</total_tokens>
//! <tool_uses>2</tool_uses>
//! <duration_ms>3</duration_ms>
//! </usage>
//! <worktree>                                               (if any)
//! <worktreePath>…</worktreePath>
//! <worktreeBranch>…</worktreeBranch>
//! </worktree>
//! </task-notification>
//! ```

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::xml::write_part;

/// The longest result that is sent along; the rest is in the output file.
const MAX_RESULT: usize = 64 * 1024;

/// The namespace of every id that is derived from another value.
const NAMESPACE: Uuid = Uuid::from_u128(0x6c9f_35d4_17ab_4e2e_9d3b_52ce_a0f1_8b07);

/// The id that stands for `what`: the same each time.
pub(crate) fn derived_id(what: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, what.as_bytes())
}

/// The id of the notification of this run: the same for every process that posts it.
pub fn notification_id(run: &str) -> Uuid {
    derived_id(&format!("run:{run}"))
}

/// The status of a run at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It did what it was asked.
    Completed,
    /// It did not.
    Failed,
    /// A user or an agent stopped the run.
    Killed,
    /// The run is gone for an unknown reason; reported as failed.
    Lost,
}

impl RunStatus {
    /// The word in `<status>`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed | Self::Lost => "failed",
            Self::Killed => "killed",
        }
    }

    /// The words after the description in `<summary>`.
    pub(crate) fn verdict(self) -> &'static str {
        match self {
            Self::Lost => "failed: it was lost, its process ended without a result",
            other => other.word(),
        }
    }
}

/// The cost of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// All tokens, in and out.
    pub total_tokens: u64,
    /// Number of tool uses.
    pub tool_uses: u64,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// The worktree a run left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeLeft {
    /// The worktree's path.
    pub worktree_path: String,
    /// The worktree's branch, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_branch: Option<String>,
}

/// The end of a background run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskNotification {
    /// The agent's id, to which messages can be sent.
    pub task_id: String,
    /// The tool call that started it; `None` if no model did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The path of the agent's complete output.
    pub output_file: String,
    /// The status at the end.
    pub status: RunStatus,
    /// The agent's job, in a few words.
    pub description: String,
    /// The result, even a partial one, or the error; `None` without either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The cost of the run.
    #[serde(default)]
    pub usage: Usage,
    /// The worktree it left behind; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeLeft>,
}

impl TaskNotification {
    /// Cuts a long result: a notification must never be refused.
    pub(crate) fn shorten(&mut self) {
        let Some(result) = &mut self.result else {
            return;
        };
        if result.len() > MAX_RESULT {
            let mut end = MAX_RESULT - 1024;
            while !result.is_char_boundary(end) {
                end -= 1;
            }
            result.truncate(end);
            result.push_str("\n[cut here; the rest is in the output file]");
        }
    }

    /// The run in one line.
    pub fn summary(&self) -> String {
        format!("Agent \"{}\" {}", self.description, self.status.verdict())
    }

    /// The fixed text form.
    pub fn to_xml(&self) -> String {
        let mut xml = String::from("<task-notification>\n");
        write_part(&mut xml, "task-id", &self.task_id);
        if let Some(id) = &self.tool_use_id {
            write_part(&mut xml, "tool-use-id", id);
        }
        write_part(&mut xml, "output-file", &self.output_file);
        write_part(&mut xml, "status", self.status.word());
        write_part(&mut xml, "summary", &self.summary());
        if let Some(result) = &self.result {
            write_part(&mut xml, "result", result);
        }
        xml.push_str("<usage>\n");
        write_part(
            &mut xml,
            "total_tokens",
            &self.usage.total_tokens.to_string(),
        );
        write_part(&mut xml, "tool_uses", &self.usage.tool_uses.to_string());
        write_part(&mut xml, "duration_ms", &self.usage.duration_ms.to_string());
        xml.push_str("</usage>\n");
        if let Some(worktree) = &self.worktree {
            xml.push_str("<worktree>\n");
            write_part(&mut xml, "worktreePath", &worktree.worktree_path);
            if let Some(branch) = &worktree.worktree_branch {
                write_part(&mut xml, "worktreeBranch", branch);
            }
            xml.push_str("</worktree>\n");
        }
        xml.push_str("</task-notification>");
        xml
    }
}
