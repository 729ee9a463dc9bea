//! The agent or person that asks for a change.

use crate::error::{BoardError, Refusal};
use crate::task::{Status, Task};

/// The agent or user that wants to change a task, and the permission to override rules.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The agent's (or person's) name.
    pub agent: String,
    /// The token of the lease it believes to hold; `None` without one.
    pub token: Option<u64>,
    /// True if the caller may change tasks of other agents, and blocked ones.
    pub force: bool,
}

impl Caller {
    /// A caller without token that does not insist.
    pub fn new(agent: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            token: None,
            force: false,
        }
    }

    /// One without token that changes what belongs to others, and what is blocked.
    pub fn forced(agent: impl Into<String>) -> Self {
        Self {
            force: true,
            ..Self::new(agent)
        }
    }

    /// Refuses if the token given is not the task's current one.
    pub(crate) fn check_token(&self, task: &Task) -> Result<(), BoardError> {
        match self.token {
            Some(token) if task.lease().is_none_or(|lease| lease.token != token) => {
                Err(BoardError::refused(task, Refusal::LeaseLost { token }))
            }
            _ => Ok(()),
        }
    }

    /// Refuses if another agent owns the task.
    pub(crate) fn check_owner(&self, task: &Task) -> Result<(), BoardError> {
        match &task.owner {
            Some(owner) if !self.force && *owner != self.agent => Err(BoardError::refused(
                task,
                Refusal::AlreadyClaimed {
                    owner: owner.clone(),
                },
            )),
            _ => Ok(()),
        }
    }

    /// Refuses unless this caller may delete the task.
    pub(crate) fn check_delete(&self, task: &Task) -> Result<(), BoardError> {
        self.check_token(task)?;
        match task.status {
            Status::InProgress => self.check_owner(task),
            Status::Pending | Status::Completed => Ok(()),
        }
    }
}
