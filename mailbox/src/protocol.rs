//! The kinds of message between programs, which are not text.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::notification::TaskNotification;

/// A message with a fixed form, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "snake_case")]
pub enum Protocol {
    /// An agent has gone from busy to idle.
    IdleNotification(IdleNotification),
    /// A task has a new owner.
    TaskAssignment(TaskAssignment),
    /// A background run has ended.
    TaskNotification(TaskNotification),
    /// An agent is gone.
    TeammateTerminated(TeammateTerminated),
    /// Asks an agent to stop.
    ShutdownRequest(Asked<Shutdown>),
    /// It will stop.
    ShutdownApproved(Answered),
    /// The agent refused and continues.
    ShutdownRejected(Answered),
    /// Asks for a plan to be approved.
    PlanApprovalRequest(Asked<Plan>),
    /// The decision on a plan.
    PlanApprovalResponse(Answered),
    /// Asks whether a tool may be used.
    PermissionRequest(Asked<Permission>),
    /// The decision on a tool.
    PermissionResponse(Answered),
    /// Asks an agent to change its permission mode.
    ModeSetRequest(Asked<Mode>),
    /// The answer to a new permission mode.
    ModeSetResponse(Answered),
}

/// All kinds there are, text included.
pub const KINDS: &[&str] = &[
    "message",
    "idle_notification",
    "task_assignment",
    "task_notification",
    "teammate_terminated",
    "shutdown_request",
    "shutdown_approved",
    "shutdown_rejected",
    "plan_approval_request",
    "plan_approval_response",
    "permission_request",
    "permission_response",
    "mode_set_request",
    "mode_set_response",
];

impl Protocol {
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::IdleNotification(_) => "idle_notification",
            Self::TaskAssignment(_) => "task_assignment",
            Self::TaskNotification(_) => "task_notification",
            Self::TeammateTerminated(_) => "teammate_terminated",
            Self::ShutdownRequest(_) => "shutdown_request",
            Self::ShutdownApproved(_) => "shutdown_approved",
            Self::ShutdownRejected(_) => "shutdown_rejected",
            Self::PlanApprovalRequest(_) => "plan_approval_request",
            Self::PlanApprovalResponse(_) => "plan_approval_response",
            Self::PermissionRequest(_) => "permission_request",
            Self::PermissionResponse(_) => "permission_response",
            Self::ModeSetRequest(_) => "mode_set_request",
            Self::ModeSetResponse(_) => "mode_set_response",
        }
    }

    /// True if it is half of a request; those are sent by asking and answering only.
    pub(crate) fn is_request_or_answer(&self) -> bool {
        !matches!(
            self,
            Self::IdleNotification(_)
                | Self::TaskAssignment(_)
                | Self::TaskNotification(_)
                | Self::TeammateTerminated(_)
        )
    }

    /// True if it merely tells something, and can wait behind what asks for something.
    pub(crate) fn is_notification(&self) -> bool {
        matches!(
            self,
            Self::IdleNotification(_) | Self::TaskNotification(_) | Self::TeammateTerminated(_)
        )
    }
}

/// The reasons why an agent is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleReason {
    /// It has nothing to do.
    Available,
    /// It was stopped in what it did.
    Interrupted,
    /// It could not go on.
    Failed,
}

/// An agent has nothing to do any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdleNotification {
    /// The reason why it is idle.
    pub idle_reason: IdleReason,
    /// The tasks it finished since it was last idle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished_tasks: Vec<String>,
    /// The error, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
}

/// A task has a new owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAssignment {
    /// The task's id.
    pub task_id: String,
    /// The task's subject.
    pub subject: String,
    /// The task's description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The new owner.
    pub owner: String,
    /// The agent or user that assigned the task.
    pub assigned_by: String,
}

/// An agent is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeammateTerminated {
    /// The agent's name.
    pub teammate: String,
    /// The reason; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The agent's unfinished tasks, which are free again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned_tasks: Vec<String>,
}

/// A question with the id its answer has to name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked<T> {
    /// The request's id.
    pub request_id: String,
    /// The question.
    #[serde(flatten)]
    pub question: T,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The request's id.
    pub request_id: String,
    /// True for yes.
    pub approved: bool,
    /// The comment of the agent or user that answered; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// True if no answer came in time, which counts as no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// True if the approver changed the plan first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plan_was_edited: bool,
    /// The plan as it was approved, if it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// Asks an agent to stop.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    /// The reason; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Asks for a plan to be approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The plan itself.
    pub plan: String,
    /// The file it is written to, which can be edited before the plan is approved; `None` without a
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_file_path: Option<String>,
    /// Uses of tools that carrying it out needs, and that are not asked about once it is
    /// approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_prompts: Vec<AllowedPrompt>,
}

/// A use of a tool that is approved together with a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedPrompt {
    /// The tool's name, as `Bash`.
    pub tool: String,
    /// The beginning of the command, as `cargo test`.
    pub prompt: String,
}

/// Asks whether a tool may be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// The tool's name.
    pub tool_name: String,
    /// The id of the tool's use; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The effect of the tool's use, in words.
    pub description: String,
    /// The tool's input.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
}

/// Asks an agent to change its permission mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mode {
    /// The new mode (`default`, `acceptEdits`, `plan`, …).
    pub mode: String,
}

/// The kinds of question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body")]
pub enum Question {
    /// A request to stop.
    #[serde(rename = "shutdown_request")]
    Shutdown(Shutdown),
    /// To carry out a plan.
    #[serde(rename = "plan_approval_request")]
    Plan(Plan),
    /// To use a tool.
    #[serde(rename = "permission_request")]
    Permission(Permission),
    /// To change the permission mode.
    #[serde(rename = "mode_set_request")]
    Mode(Mode),
}

impl Question {
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Shutdown(_) => "shutdown_request",
            Self::Plan(_) => "plan_approval_request",
            Self::Permission(_) => "permission_request",
            Self::Mode(_) => "mode_set_request",
        }
    }

    /// The message that puts the question.
    pub(crate) fn message(&self, request_id: &str) -> Protocol {
        fn asked<T: Clone>(request_id: &str, question: &T) -> Asked<T> {
            Asked {
                request_id: request_id.to_owned(),
                question: question.clone(),
            }
        }
        match self {
            Self::Shutdown(question) => Protocol::ShutdownRequest(asked(request_id, question)),
            Self::Plan(question) => Protocol::PlanApprovalRequest(asked(request_id, question)),
            Self::Permission(question) => Protocol::PermissionRequest(asked(request_id, question)),
            Self::Mode(question) => Protocol::ModeSetRequest(asked(request_id, question)),
        }
    }

    /// The message that carries the answer.
    pub(crate) fn answer(&self, answered: Answered) -> Protocol {
        match self {
            Self::Shutdown(_) if answered.approved => Protocol::ShutdownApproved(answered),
            Self::Shutdown(_) => Protocol::ShutdownRejected(answered),
            Self::Plan(_) => Protocol::PlanApprovalResponse(answered),
            Self::Permission(_) => Protocol::PermissionResponse(answered),
            Self::Mode(_) => Protocol::ModeSetResponse(answered),
        }
    }
}
