//! Starting a runtime's program, the same for all of them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Launch, LaunchError};
use crate::process::{Child, Processes};
use crate::sandbox::{Confinement, Sandbox, tree_around};
use crate::tools::Reach;

/// The program of a runtime and the arguments that are always passed, in the agent's directory,
/// with its environment alone, and confined if that is asked for.
pub(super) fn command(words: &[String], launch: &Launch) -> Result<Command, LaunchError> {
    let unsupported = |why: String| LaunchError::Unsupported(why);
    let Some(program) = words.first() else {
        return Err(unsupported("the runtime's command is empty".into()));
    };
    let mut all = match &launch.sandbox {
        Some(sandbox) => confined(program, launch, sandbox).map_err(unsupported)?,
        None => Vec::new(),
    };
    all.extend(words.iter().map(OsString::from));
    let mut all = all.into_iter();
    let mut command = Command::new(all.next().unwrap_or_default());
    command.args(all).current_dir(&launch.cwd);
    command.env_clear().envs(launch.env.iter().cloned());
    Ok(command)
}

/// The words before a program that is confined to the agent's worktree. Besides the worktree, the
/// program may write its own files. Board and mail it may not: the server of our own tools runs
/// outside.
fn confined(program: &str, launch: &Launch, sandbox: &Sandbox) -> Result<Vec<OsString>, String> {
    let var = |name: &str| {
        let found = launch.env.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| PathBuf::from(value))
    };
    let user = var("HOME").unwrap_or_default();
    let name = Path::new(program).file_name().unwrap_or_default();
    let mut also = vec![launch.scratch.clone(), user.join(dotted(name))];
    also.extend(launch.scratchpad().map(Path::to_owned));
    also.extend(
        ["CLAUDE_CONFIG_DIR", "CODEX_HOME"]
            .into_iter()
            .filter_map(var),
    );
    for (variable, usual) in [
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CACHE_HOME", ".cache"),
    ] {
        // Not the whole directory: other files there run when the user logs in.
        also.push(var(variable).unwrap_or_else(|| user.join(usual)).join(name));
    }
    also.extend(sandbox.write.iter().cloned());
    let tree = tree_around(&launch.cwd);
    let confinement = match launch.reach {
        Reach::Reads => Confinement::writing(also, sandbox.network),
        _ => Confinement::of_tree(&tree, also, sandbox.network),
    };
    confinement.words(Path::new("/proc/self/exe"))
}

fn dotted(name: &OsStr) -> OsString {
    let mut dotted = OsString::from(".");
    dotted.push(name);
    dotted
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
