//! This program as a guard, a host, a keeper or an agent of a run; no user types these commands.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use crate::native;
use coordinator::mates::mates_main;
use runs::{
    AgentError, GUARD, HOOKS, HOST, KEEPER, MATES, MATES_GUARD, guard_main, hooks_main, host_main,
    keeper_main, mates_guard_main,
};
use swarm::run::{RELAY, relay_main};
use swarm::sandbox;

/// Runs a guard, a host, an agent or a confined command if that is what this process was started as.
pub(crate) fn main(args: &[OsString]) -> Option<ExitCode> {
    sandbox::this_is_ccb();
    if let [_, role] = args
        && role == ::native::ROLE
    {
        log_to_stderr();
        return Some(ExitCode::from(native::main()));
    }
    if let [_, role, rest @ ..] = args
        && role == sandbox::CONFINED
    {
        // Returns only if it failed.
        let why = sandbox::main(rest);
        writeln!(std::io::stderr(), "ccb: {why}").ok();
        return Some(ExitCode::from(sandbox::EXIT_NOT_CONFINED));
    }
    if let [_, role, socket] = args
        && role == RELAY
    {
        return Some(match relay_main(Path::new(socket)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let socket = Path::new(socket).display();
                writeln!(
                    std::io::stderr(),
                    "ccb: the agent's tools at {socket}: {error}"
                )
                .ok();
                ExitCode::FAILURE
            }
        });
    }
    let [_, role, dir] = args else {
        return None;
    };
    let dir = Path::new(dir);
    let run: fn(&Path) -> Result<(), AgentError> = match role.to_str()? {
        GUARD => guard_main,
        HOST => host_main,
        KEEPER => keeper_main,
        MATES_GUARD => mates_guard_main,
        MATES => |dir| mates_main(dir, native::ports()),
        HOOKS => |_| hooks_main(),
        _ => return None,
    };
    log_to_stderr();
    match run(dir) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            tracing::error!(%error, "the run is not finished");
            Some(ExitCode::FAILURE)
        }
    }
}

/// Sends log messages to standard error, which is the run's log.
fn log_to_stderr() {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_target(false)
        .with_writer(std::io::stderr)
        // A full disk that keeps the log from being written must not end the process.
        .log_internal_errors(false)
        .with_ansi(false)
        .try_init()
        .ok();
}
