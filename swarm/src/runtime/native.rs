//! The runtime that is ccb itself: `ccb __native`, our own loop around a model.
//!
//! It speaks the lines of `super::lines`; its first line has more fields, see [`Opening`].

use serde_json::json;

use super::lines::drive_lines;
use super::opening::Keys;
use super::{Abilities, Agent, Launch, LaunchError, Messages, Opening, Runtime, program};
use crate::process::Processes;

/// Runs our own loop.
#[derive(Debug, Clone)]
pub struct NativeRuntime {
    command: Vec<String>,
}

impl NativeRuntime {
    /// The argument that makes ccb an agent.
    pub const ROLE: &str = "__native";

    /// Runs `command`: a ccb and its arguments.
    pub fn new(command: Vec<String>) -> Self {
        Self { command }
    }

    /// This very program, even if another version has taken its place on the disk.
    pub fn own_command() -> Vec<String> {
        vec!["/proc/self/exe".to_owned(), Self::ROLE.to_owned()]
    }
}

impl Runtime for NativeRuntime {
    fn abilities(&self) -> Abilities {
        Abilities {
            // The loop keeps them until its next request; sent after a result they would come too
            // late for the request that follows it.
            messages: Messages::AnyTime,
            interrupt: true,
            resume: true,
            fork: true,
            read_only: true,
        }
    }

    fn launch(&self, launch: Launch, processes: &Processes) -> Result<Agent, LaunchError> {
        let mut launch = launch;
        // The loop itself has to reach what its commands must not.
        let sandbox = launch.sandbox.take();
        let keys = Keys::take_from(&mut launch.env, launch.provider.as_ref());
        let command = program::command(&self.command, &launch)?;
        launch.sandbox = sandbox;
        let child = program::start(command, true, processes)?;
        let opening = json!(Opening::of(launch, keys));
        Ok(drive_lines(child, opening))
    }
}
