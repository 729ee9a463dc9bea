//! Starting a runtime's program, the same for all of them.

use std::process::Command;

use super::{Launch, LaunchError};
use crate::process::{Child, Processes};

/// The program of a runtime and the arguments that are always passed, in the agent's directory
/// and with its environment alone.
pub(super) fn command(words: &[String], launch: &Launch) -> Result<Command, LaunchError> {
    let Some((program, arguments)) = words.split_first() else {
        let why = "the runtime's command is empty";
        return Err(LaunchError::Unsupported(why.into()));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&launch.cwd);
    command.env_clear().envs(launch.env.iter().cloned());
    Ok(command)
}

/// Starts it, supervised.
pub(super) fn start(
    command: Command,
    with_stdin: bool,
    processes: &Processes,
) -> Result<Child, LaunchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    processes
        .spawn(command, with_stdin)
        .map_err(|source| LaunchError::Program { program, source })
}

/// `text` as one word of the shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
