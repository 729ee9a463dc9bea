//! The mail of a running agent, as its host reads it.

use std::os::fd::{AsFd, BorrowedFd};

use mailbox::{
    AllowedPrompt, Body, Consumer, Mailbox, Message, Priority, Protocol, Question, RequestState,
};
use store::agent_id::LEAD;
use store::name::Name;
use swarm::definitions::PermissionMode;
use swarm::run::{Mail, MailMessage, ModeOrder, PermissionAnswer, ServiceError};

use super::services::port;

/// Maximum number of messages taken at once.
const BATCH: usize = 64;
/// The tool that runs commands, as plans name it.
const SHELL: &str = "Bash";
/// The name of the user, who acts outside every agent.
const USER: &str = "user";

/// The mail of a running agent.
#[derive(Debug)]
pub(super) struct AgentMail {
    pub(super) consumer: Consumer,
    pub(super) mailbox: Mailbox,
    pub(super) own: Name,
    /// The name of the agent or user that started it.
    pub(super) parent: String,
    /// The widest mode it can have; `None` without a limit.
    pub(super) most: Option<String>,
}

impl AgentMail {
    /// The reason for refusing this mode; `None` if it is not too wide.
    fn too_wide(&self, mode: &str) -> Option<String> {
        let most = PermissionMode::of_agent(self.most.as_deref()?)?;
        let wider = PermissionMode::of_agent(mode)?.is_wider_than(most);
        let most = most.as_str();
        wider.then(|| {
            format!("its tools and whoever started it leave it {most:?} at most, not {mode:?}")
        })
    }

    /// The new permission mode, if a message changes what the agent may do.
    fn mode(&self, message: &Message) -> Option<ModeOrder> {
        match &message.body {
            Body::Protocol(Protocol::ModeSetRequest(asked)) => {
                // Peers have no say in it, and it has none itself but to plan first.
                let mode = asked.question.mode.clone();
                let from = |who: &str| message.from.eq_ignore_ascii_case(who);
                let may = [LEAD, USER, &self.parent].into_iter().any(from)
                    || (from(self.own.as_str()) && mode == PermissionMode::Plan.as_str());
                let refused = match may {
                    true => self.too_wide(&mode),
                    false => Some(format!("only {LEAD} can change what an agent may do")),
                };
                Some(ModeOrder {
                    mode: Some(mode),
                    request: Some(asked.request_id.clone()),
                    refused,
                    allowed_commands: Vec::new(),
                })
            }
            Body::Protocol(Protocol::PlanApprovalResponse(answer)) if answer.approved => {
                // The request's own words count, not a message's words about it.
                let request = self.mailbox.request(&answer.request_id).ok()?;
                let ours = request.from.eq_ignore_ascii_case(self.own.as_str())
                    && request.state == RequestState::Approved;
                let Question::Plan(plan) = request.question else {
                    return None;
                };
                ours.then(|| ModeOrder {
                    mode: None,
                    request: None,
                    refused: None,
                    allowed_commands: commands(plan.allowed_prompts),
                })
            }
            _ => None,
        }
    }
}

impl Mail for AgentMail {
    fn bell(&self) -> BorrowedFd<'_> {
        self.consumer.bell().as_fd()
    }

    fn take(&mut self) -> Result<Vec<MailMessage>, ServiceError> {
        // First the bell, then the read: a ring in between counts for the next wait.
        self.consumer.bell().hush();
        let batch = self.consumer.take(BATCH).map_err(port)?;
        let messages = batch.messages.iter().map(|message| MailMessage {
            seq: message.seq,
            id: message.id,
            text: mailbox::render([message], |_| None),
            now: message.priority == Priority::Now,
            redelivered: message.redelivered,
            answer: match &message.body {
                Body::Protocol(Protocol::PermissionResponse(answer)) => Some(PermissionAnswer {
                    request: answer.request_id.clone(),
                    allow: answer.approved,
                    reason: answer.feedback.clone(),
                }),
                _ => None,
            },
            mode: self.mode(message),
        });
        Ok(messages.collect())
    }

    fn done(&mut self, seqs: &[u64]) -> Result<(), ServiceError> {
        self.consumer.delivered(seqs).map_err(port)?;
        self.consumer.ack(seqs).map_err(port)?;
        Ok(())
    }
}

/// The prefixes of the shell commands that a plan names.
fn commands(allowed: Vec<AllowedPrompt>) -> Vec<String> {
    let shell = allowed.into_iter().filter(|allowed| allowed.tool == SHELL);
    shell.map(|allowed| allowed.prompt).collect()
}
