//! The actions of a person on a team from any view, each the same as a command.

use serde::{Deserialize, Serialize};
use store::agent_id::LEAD;
use swarm::runtime::quoted;
use taskboard::TaskId;

/// An action of a person. The command line can do every action too, and [`Act::command`] returns
/// the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum Act {
    /// A message to an agent. An agent that has ended resumes with it.
    Message { to: String, text: String },
    /// A message to the lead. If a person leads, it becomes a task.
    Say { text: String },
    /// Approves a request: its id, or the beginning of it.
    Approve {
        request: String,
        comment: Option<String>,
    },
    /// Denies a request; the reason is required.
    Deny { request: String, why: String },
    /// Ends an agent: its id or name. Its task is free again.
    Stop { agent: String, why: Option<String> },
    /// Resumes an agent that has ended.
    Resume { agent: String, text: Option<String> },
    /// Lands the work on these tasks; an empty list means all tasks that are done and checked.
    Land { tasks: Vec<TaskId> },
    /// Takes the landing of a task off its branch.
    Undo { task: TaskId },
    /// Rejects the result of a task; the feedback is required.
    Reject { task: TaskId, feedback: String },
    /// Makes a parked task ready again.
    Retry { task: TaskId },
    /// Puts a task on the board; with `command` it needs no model.
    AddTask {
        subject: String,
        command: Option<String>,
    },
    /// Opens a new account: what was used so far no longer counts against the team's limits.
    ResetLimits,
}

impl Act {
    /// The text to ask the person for first; `None` if the action needs no more text.
    pub fn asks_for(&self) -> Option<&'static str> {
        match self {
            Self::Message { text, .. } if text.is_empty() => Some("the message"),
            Self::Say { text } if text.is_empty() => Some("what to say to the lead"),
            Self::Deny { why, .. } if why.is_empty() => Some("why not, and what to do instead"),
            Self::Reject { feedback, .. } if feedback.is_empty() => {
                Some("what the next attempt should do differently")
            }
            Self::AddTask { subject, .. } if subject.is_empty() => Some("what is to be done"),
            _ => None,
        }
    }

    /// The same with the text for [`Self::asks_for`]; unchanged if it needs none.
    #[must_use]
    pub fn with_text(mut self, said: &str) -> Self {
        if self.asks_for().is_none() {
            return self;
        }
        match &mut self {
            Self::Message { text, .. }
            | Self::Say { text }
            | Self::Deny { why: text, .. }
            | Self::Reject { feedback: text, .. }
            | Self::AddTask { subject: text, .. } => said.clone_into(text),
            _ => {}
        }
        self
    }

    /// One word for a key's label.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::Say { .. } => "say",
            Self::Approve { .. } => "approve",
            Self::Deny { .. } => "deny",
            Self::Stop { .. } => "stop",
            Self::Resume { .. } => "resume",
            Self::Land { .. } => "land",
            Self::Undo { .. } => "undo",
            Self::Reject { .. } => "reject",
            Self::Retry { .. } => "retry",
            Self::AddTask { .. } => "add task",
            Self::ResetLimits => "reset limits",
        }
    }

    /// The command that does the same.
    pub fn command(&self, team: &str) -> String {
        let text = |flag: &str, text: Option<&str>| match text {
            Some(text) if !text.is_empty() => format!(" {flag}{}", quoted(text)),
            _ => String::new(),
        };
        let rest = match self {
            Self::Message { to, text: said } => format!("agent send {to}{}", text("", Some(said))),
            Self::Say { text: said } => format!("mail send {LEAD}{}", text("", Some(said))),
            Self::Approve { request, comment } => {
                let comment = text("--feedback ", comment.as_deref());
                format!("--as {LEAD} mail approve {request}{comment}")
            }
            Self::Deny { request, why } => {
                let why = text("--feedback ", Some(why));
                format!("--as {LEAD} mail reject {request}{why}")
            }
            Self::Stop { agent, why } => {
                format!("agent stop {agent}{}", text("--reason ", why.as_deref()))
            }
            Self::Resume { agent, text: said } => {
                format!("agent resume --bg {agent}{}", text("", said.as_deref()))
            }
            Self::Land { tasks } if tasks.is_empty() => "land --all".to_owned(),
            Self::Land { tasks } => {
                let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
                format!("land {}", tasks.join(" "))
            }
            Self::Reject { task, feedback } => {
                format!("reject {task}{}", text("--feedback ", Some(feedback)))
            }
            Self::Undo { task } => format!("undo {task}"),
            Self::Retry { task } => format!("task retry {task}"),
            Self::AddTask { subject, command } => {
                let run = text("--run ", command.as_deref());
                format!("task create {}{run}", quoted(subject))
            }
            Self::ResetLimits => format!("team limits {team} --reset"),
        };
        format!("ccb --team {team} {rest}")
    }

    /// The row of the table of rights for this action.
    pub fn right(&self) -> &'static str {
        match self {
            Self::Message { .. } => "agent send",
            Self::Say { .. } => "mail send",
            Self::Approve { .. } => "mail approve",
            Self::Deny { .. } => "mail reject",
            Self::Stop { .. } => "agent stop",
            Self::Resume { .. } => "agent resume",
            Self::Land { .. } => "land",
            Self::Undo { .. } => "undo",
            Self::Reject { .. } => "reject",
            Self::Retry { .. } => "task retry",
            Self::AddTask { .. } => "task create",
            Self::ResetLimits => "team limits --reset",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_asked_for_once() {
        let deny = Act::Deny {
            request: "r1".into(),
            why: String::new(),
        };
        assert!(deny.asks_for().is_some());
        let said = deny.with_text("too wide");
        assert_eq!(said.asks_for(), None);
        let command = "ccb --team t --as team-lead mail reject r1 --feedback 'too wide'";
        assert_eq!(said.command("t"), command);
        assert_eq!(said.clone().with_text("other"), said);
        let task = TaskId::new(3).unwrap();
        assert_eq!(Act::Retry { task }.asks_for(), None);
    }

    #[test]
    fn texts_are_one_word_of_the_shell() {
        let act = Act::AddTask {
            subject: "it's; rm -rf /".into(),
            command: Some("make".into()),
        };
        let command = r"ccb --team t task create 'it'\''s; rm -rf /' --run 'make'";
        assert_eq!(act.command("t"), command);
    }

    #[test]
    fn every_act_has_its_row_in_the_table_of_rights() {
        let task = TaskId::new(1).unwrap();
        let (text, none) = (String::new, || None);
        let all = [
            Act::Message {
                to: text(),
                text: text(),
            },
            Act::Say { text: text() },
            Act::Approve {
                request: text(),
                comment: none(),
            },
            Act::Deny {
                request: text(),
                why: text(),
            },
            Act::Stop {
                agent: text(),
                why: none(),
            },
            Act::Resume {
                agent: text(),
                text: none(),
            },
            Act::Land { tasks: Vec::new() },
            Act::Reject {
                task,
                feedback: text(),
            },
            Act::Undo { task },
            Act::Retry { task },
            Act::AddTask {
                subject: text(),
                command: none(),
            },
            Act::ResetLimits,
        ];
        for act in all {
            let known = |row: &&project::rights::Row| row.0 == act.right();
            assert!(project::rights::rows().any(|row| known(&row)), "{act:?}");
        }
    }
}
