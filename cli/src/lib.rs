//! The `ccb` command line.
//!
//! # What this room knows
//!
//! Arguments, commands, exit codes, hints, and a session's terminal. Each command is one file in `commands`,
//! with its arguments beside its code. It is the only crate that prints answers and the only one that exits.
//!
//! # What it must not know (and where to go instead)
//!
//! * The work itself: a command calls a library. `tests/tidy/src/thin.rs` lists what no command may import.
//! * MCP, the live view, the page and telemetry: `cli/mcp`, `cli/top`, `cli/page`, `cli/otel`. The last two are the
//!   features `page` and `otel`; without one, the command says how to build it.
//! * Colours, tables and the line in which a person types: `cli/term`.
//!
//! # The way through
//!
//! 1. [`main`] looks first whether this process is a guard, host or agent (`supervise`), the view's restorer, or a
//!    completion.
//! 2. clap parses the arguments; `Context` finds repository, team and caller.
//! 3. `commands::run` checks the caller's rights and calls the command.
//! 4. The command calls a library and gives the answer to `Output`: JSON, or text for people.
//! 5. `Exit` turns the result into an exit code.
//!
//! # Crash points
//!
//! None of its own; [`mcp::FAULT_POINTS`] and [`top::FAULT_POINTS`] belong to the crates below. A panic becomes
//! an error with exit code 70.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change what shells complete | `cli/src/commands/completion.rs` (what an argument names), `coordinator/src/candidates.rs` (what there is) |
//! | change examples in help, man pages and docs/commands.md | `cli/src/examples.rs`; the manual: `cli/src/manual.rs`; the page: `cli/src/reference.rs` |
//! | change which flags a command in a hint has | `cli/src/said.rs` |
//! | change the demo | `cli/src/commands/demo/sample.rs` (its project and plan) |
//! | add a command | a file in `cli/src/commands/`, its arguments beside its code |
//! | map an error to an exit code | `cli/src/exit.rs`, the only table; what an error says of itself: its `Explain`, see `store/src/failure.rs` |

mod args;
mod ask;
mod commands;
mod context;
mod cost;
mod examples;
mod exit;
#[doc(hidden)]
pub mod fuzz;
mod manual;
mod native;
mod output;
#[cfg(test)]
mod reference;
mod rights;
mod said;
mod session;
mod signals;
mod supervise;
mod telemetry;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use store::{Category, Failure};

use crate::commands::Cli;
use crate::context::Context;
use crate::exit::{CLOSED_STDOUT, Exit};
use crate::output::Output;
use crate::said::Said;

/// Runs the command line of this process and returns its exit code.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = supervise::main(&args) {
        return code;
    }
    if let Some(code) = top::restorer_main(&args) {
        return code;
    }
    if let Some(code) = commands::completion::main(&args) {
        return code;
    }
    // Known before the arguments are parsed, because parsing errors are printed as JSON too.
    let json = args.iter().any(|arg| arg == "--json");
    let code = match catch_unwind(AssertUnwindSafe(|| run(&args, json))) {
        Ok(code) => code,
        Err(_) => {
            let error = Failure::internal("a bug in ccb; please report what is printed above");
            Output::new(json).error(&error);
            Exit::Not(Category::Internal).code()
        }
    };
    ExitCode::from(code)
}

fn run(args: &[OsString], json: bool) -> u8 {
    let mut out = Output::new(json);
    let parsed = command_line(args).try_get_matches_from(args);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return out.usage(&error.format(&mut Cli::command())),
    };
    let command = rights::command(&matches);
    start_logging(&cli);
    let said = Said::of(&cli.global);
    out.set_said(said.clone());
    let result = Context::new(&cli.global, cli.repairs(), out)
        .and_then(|mut context| commands::run(&cli, &command, &mut context));
    match result {
        Ok(exit) => exit.code(),
        Err(error) if error.kind() == CLOSED_STDOUT => Exit::Done.code(),
        Err(error) => {
            let mut out = Output::new(json);
            out.set_said(said);
            out.error(&error);
            Exit::from(&error).code()
        }
    }
}

/// The command line to parse, with examples where the user asks for help.
fn command_line(args: &[OsString]) -> clap::Command {
    let asks = |arg: &OsString| arg == "--help" || arg == "-h" || arg == "help";
    match args.iter().any(asks) {
        true => examples::add(Cli::command()),
        false => Cli::command(),
    }
}

fn start_logging(cli: &Cli) {
    let level = match (cli.global.quiet, cli.global.verbose) {
        (true, _) => tracing::Level::ERROR,
        (false, 0) => tracing::Level::WARN,
        (false, 1) => tracing::Level::INFO,
        (false, 2) => tracing::Level::DEBUG,
        (false, _) => tracing::Level::TRACE,
    };
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .without_time();
    // A second call in one process (tests) keeps the first logger.
    log.with_writer(|| output::log_writer(top::hold_back))
        .log_internal_errors(false)
        .with_ansi(false)
        .try_init()
        .ok();
}
