use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use worktrees::RunRequest;

use super::slug;
use crate::context::Context;
use crate::error::{CommandError, Exit};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The worktree's name
    name: String,
    /// Stop it after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Passes the command's exit code on.
pub(crate) fn run(args: &RunArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let slug = slug(&args.name)?;
    let trees = context.trees()?;
    let signal = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM] {
        let value = usize::try_from(number).unwrap_or_default();
        let failed = |error| CommandError::failed("io", format!("signals: {error}"));
        signal_hook::flag::register_usize(number, Arc::clone(&signal), value).map_err(failed)?;
        signal_hook::flag::register(number, Arc::clone(&stop)).map_err(failed)?;
    }
    let request = RunRequest {
        command: &args.command,
        timeout: Duration::from_secs(args.timeout),
        capture: context.out.is_json(),
        // It has a process group of its own, which a terminal would stop for reading.
        no_input: std::io::stdin().is_terminal(),
        stop: &stop,
    };
    let ran = trees.run(&slug, &request)?;
    let signal = signal.load(Ordering::Relaxed);
    if signal != 0 {
        return Ok(Exit::Signal(u8::try_from(signal).unwrap_or_default()));
    }
    // A command killed by a signal ends as a shell would report it.
    let code = ran
        .status
        .code()
        .or(ran.status.signal().map(|number| 128 + number))
        .unwrap_or(1);
    if context.out.is_json() {
        context.out.json(&json!({
            "exitCode": code,
            "timedOut": ran.timed_out,
            "stdout": String::from_utf8_lossy(&ran.stdout),
            "stderr": String::from_utf8_lossy(&ran.stderr),
        }))?;
    }
    if ran.timed_out {
        if !context.out.is_json() {
            context
                .out
                .note(&format!("stopped after {} s", args.timeout));
        }
        return Ok(Exit::TimedOut);
    }
    Ok(Exit::Of(u8::try_from(code).unwrap_or(1)))
}
