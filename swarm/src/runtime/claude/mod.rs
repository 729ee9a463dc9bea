//! The runtime for Claude Code.
//!
//! One process per agent, which lives through many turns: `claude -p` with JSON lines both ways and
//! the control protocol on the same pipe. This code relies on these observations:
//!
//! * `system/init` comes once per turn, `result` ends each; a process has several of both, also
//!   without being asked (a background task that ended starts a turn).
//! * A message with a `uuid` is confirmed with `command_lifecycle: started` and echoed when it
//!   becomes part of the conversation: after the running tool, or as the next turn.
//! * The end of its input lets the turn come to its end and the queued messages be done; but its
//!   questions cannot be answered any more, and count as denied.
//! * Exit codes mean nothing: an interrupt is 0, a refused call 1 with `subtype: success`.
//! * In plan mode it asks even for tools that `--allowedTools` names.

mod arguments;
mod outcome;
mod translate;

#[cfg(test)]
mod tests;

use uuid::Uuid;

use super::program;
use super::translator::{Translator, drive};
use super::{Abilities, Agent, Launch, LaunchError, Messages, Runtime, Start};
use crate::process::Processes;
use translate::Claude;

/// Runs Claude Code.
#[derive(Debug, Clone)]
pub struct ClaudeRuntime {
    /// The program and the arguments that come before ours.
    command: Vec<String>,
}

impl ClaudeRuntime {
    /// Runs `command`: Claude Code's program, with arguments that are always passed.
    pub fn new(command: Vec<String>) -> Self {
        Self { command }
    }
}

/// The protocol for an agent with a new conversation.
pub(super) fn translator(launch: &Launch) -> impl Translator + use<> {
    Claude::new(launch, "s".to_owned())
}

impl Runtime for ClaudeRuntime {
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
        // A fork gets a name of its own before it starts, so that it can be resumed even if it
        // dies before it says anything.
        let session = match &launch.start {
            Start::Resume { session } => session.clone(),
            Start::New | Start::Fork { .. } => Uuid::new_v4().to_string(),
        };
        let mut command = program::command(&self.command, &launch)?;
        command.args(arguments::arguments(&launch, &session)?);
        command.env_clear().envs(arguments::environment(&launch));
        let child = program::start(command, true, processes)?;
        Ok(drive(child, Claude::new(&launch, session)))
    }
}
