//! The runtime for agents that speak the Agent Client Protocol on their standard streams: opencode,
//! gemini, qwen, and any other that settings name.
//!
//! The client is our own (see `docs/adr/0011-own-acp-client.md`). It offers the agent no file
//! system and no terminal, so the agent uses its own; it starts no login that would need a person.

mod opening;
mod options;
mod quirks;
mod translate;
mod turn;
mod withhold;

#[cfg(test)]
mod tests;

use super::program;
use super::translator::{Translator, drive};
use super::{Abilities, Agent, Launch, LaunchError, Runtime, Start};
use crate::process::Processes;
use quirks::Quirks;
use translate::Acp;
use withhold::Withhold;

/// Runs agents that speak the protocol.
#[derive(Debug, Clone)]
pub struct AcpRuntime {
    command: Vec<String>,
    quirks: Quirks,
}

impl AcpRuntime {
    /// Runs `command`: a program and the arguments that make it speak the protocol.
    pub fn new(command: Vec<String>) -> Self {
        let quirks = Quirks::of_command(&command);
        Self { command, quirks }
    }
}

/// The protocol for an agent with a new conversation, as `program` speaks it.
pub(super) fn translator(launch: Launch, program: &str) -> impl Translator + use<> {
    Acp::new(launch, Quirks::of_command(&[program.to_owned()]))
}

impl Runtime for AcpRuntime {
    fn abilities(&self) -> Abilities {
        Abilities {
            messages: self.quirks.messages,
            interrupt: true,
            resume: self.quirks.resume,
            fork: self.quirks.fork,
            read_only: self.quirks.withhold != Withhold::Nothing,
        }
    }

    fn launch(&self, launch: Launch, processes: &Processes) -> Result<Agent, LaunchError> {
        let mut command = program::command(&self.command, &launch)?;
        let can = match &launch.start {
            Start::New => true,
            Start::Resume { .. } => self.quirks.resume,
            Start::Fork { .. } => self.quirks.fork,
        };
        if !can {
            let what = match &launch.start {
                Start::Fork { .. } => "copy a session",
                _ => "go on with a session",
            };
            let program = command.get_program().to_string_lossy();
            let why = format!("{program} cannot {what}; start it anew");
            return Err(LaunchError::Unsupported(why));
        }
        command.args(options::arguments(&launch, &self.quirks)?);
        command
            .env_clear()
            .envs(options::environment(&launch, &self.quirks));
        let child = program::start(command, true, processes)?;
        Ok(drive(child, Acp::new(launch, self.quirks)))
    }
}
