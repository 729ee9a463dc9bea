use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use store::duration::{DurationFormat, short};
use store::{Category, Failure};
use worktrees::{RunRequest, Slug};

use crate::context::Context;
use crate::exit::Exit;
use crate::signals::Signals;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The worktree's name
    name: String,
    /// Stop it after this time
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        value_parser = |text: &str| DurationFormat::SECONDS.read(text),
    )]
    timeout: Duration,
    /// Give it a .git of its own, as an agent has; its commits are taken over when it ends
    #[arg(long)]
    private_git: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Passes on the command's exit code.
pub(crate) fn run(args: &RunArgs, context: &mut Context) -> Result<Exit, Failure> {
    let slug = Slug::new(&args.name)?;
    let trees = context.trees()?;
    let signals = Signals::catch()?;
    let request = RunRequest {
        command: &args.command,
        timeout: args.timeout,
        capture: context.out.is_json(),
        // The command has its own process group, which a terminal would stop when it reads.
        private_git: args.private_git,
        no_input: std::io::stdin().is_terminal(),
        stop: &signals.stop,
    };
    let ran = trees.run(&slug, &request)?;
    if let Some(exit) = signals.came() {
        return Ok(exit);
    }
    // After a signal the exit code is the one a shell would report.
    let code = ran
        .status
        .code()
        .or(ran.status.signal().map(|number| 128 + number))
        .unwrap_or(1);
    if let Some(why) = &ran.history_refused {
        context.out.note(&format!(
            "the commits made there were not taken over: {why}. The files are as they were left"
        ));
    }
    if context.out.is_json() {
        context.out.json(&json!({
            "historyRefused": ran.history_refused,
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
                .note(&format!("stopped after {}", short(args.timeout)));
        }
        return Ok(Exit::Not(Category::TimedOut));
    }
    Ok(Exit::Of(u8::try_from(code).unwrap_or(1)))
}
