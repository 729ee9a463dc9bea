//! The runtime for Codex, by its app server: JSON-RPC in lines, without the version.
//!
//! This code relies on these observations:
//!
//! * A message with a `clientUserMessageId` shows up as an item with that id when it becomes part
//!   of the conversation, whether it began a turn or was steered into one.
//! * Usage is reported as the total of the thread, including the resumed or copied part, and the
//!   same total can come twice.
//! * The end of its input ends it in the middle of a turn; an interrupt without a turn is never
//!   answered.
//! * With plugins it asks the network for them, and waits at its end if there is none.

mod approvals;
mod items;
mod options;
mod translate;

#[cfg(test)]
mod tests;

use super::program;
use super::translator::{Translator, drive};
use super::{Abilities, Agent, Launch, LaunchError, Messages, Runtime};
use crate::process::Processes;
use translate::Codex;

/// Runs Codex.
#[derive(Debug, Clone)]
pub struct CodexRuntime {
    /// The program and the arguments that come before ours.
    command: Vec<String>,
}

impl CodexRuntime {
    /// Runs `command`: Codex's program, with arguments that are always passed.
    pub fn new(command: Vec<String>) -> Self {
        Self { command }
    }
}

/// The protocol for an agent with a new conversation.
pub(super) fn translator(launch: Launch) -> impl Translator {
    Codex::new(launch)
}

impl Runtime for CodexRuntime {
    fn abilities(&self) -> Abilities {
        Abilities {
            messages: Messages::AnyTime,
            interrupt: true,
            resume: true,
            fork: true,
            read_only: true,
        }
    }

    fn launch(&self, launch: Launch, processes: &Processes) -> Result<Agent, LaunchError> {
        let mut command = program::command(&self.command, &launch)?;
        command.args(options::arguments(&launch));
        let child = program::start(command, true, processes)?;
        Ok(drive(child, Codex::new(launch)))
    }
}
