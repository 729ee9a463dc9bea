//! This program as a guard or a host of a run; nobody types these commands.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use coordinator::run::{AgentError, GUARD, HOOKS, HOST, guard_main, hooks_main, host_main};

/// Runs a guard or a host if that is what this process was started as.
pub(crate) fn main(args: &[OsString]) -> Option<ExitCode> {
    let [_, role, dir] = args else {
        return None;
    };
    let dir = Path::new(dir);
    let run: fn(&Path) -> Result<(), AgentError> = match role.to_str()? {
        GUARD => guard_main,
        HOST => host_main,
        HOOKS => |_| hooks_main(),
        _ => return None,
    };
    // Standard error is the run's own log.
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_target(false)
        .with_writer(std::io::stderr)
        // Where a full disk keeps the log from being written, that is no reason to die.
        .log_internal_errors(false)
        .with_ansi(false)
        .try_init()
        .ok();
    match run(dir) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            tracing::error!(%error, "the run is not finished");
            Some(ExitCode::FAILURE)
        }
    }
}
