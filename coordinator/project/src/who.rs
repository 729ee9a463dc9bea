//! The caller, as far as it matters for its rights.

use store::Failure;

/// The caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A person, or a program that is none of our agents.
    Person,
    /// An agent that leads its team.
    Lead,
    /// An agent that leads the team by planning alone.
    Coordinator,
    /// An agent that takes part in a team.
    Teammate,
    /// An agent with one piece of work.
    Worker,
    /// An agent, but ccb does not know which.
    Unknown,
}

impl Who {
    /// True if it decides for its team: the checks of tasks, and the agents that work on them.
    pub fn decides(self) -> bool {
        matches!(self, Self::Person | Self::Lead | Self::Coordinator)
    }

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Person => "a person",
            Self::Lead => "the lead",
            Self::Coordinator => "the coordinator",
            Self::Teammate => "a teammate",
            Self::Worker => "a worker",
            Self::Unknown => "an agent nobody knows",
        }
    }
}

/// A refusal that depends on the caller.
pub fn not_yours(message: String, hint: &str) -> Failure {
    Failure::refused("not_yours", message).with_hint(hint)
}
