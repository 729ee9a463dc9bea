//! This program as an agent: what the native loop needs from its process.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use clap::Parser;
use native::{McpServer, Options, Ports};
use runs::env;
use rustix::process::DumpableBehavior;
use store::Failure;

use crate::commands::{Cli, Command, mcp};
use crate::context::Context;
use crate::output::Output;

/// Runs the loop to its end; returns the exit code.
pub(crate) fn main() -> u8 {
    // The agent's commands run as the same user, and must not find its keys here.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    let options = Options {
        env: std::env::vars_os().collect(),
        ports: ports(),
        processes: None,
        together: None,
    };
    native::main(options)
}

/// The functions of this program that an agent needs.
pub(crate) fn ports() -> Ports {
    Ports {
        connect_own: Some(Arc::new(connect_own)),
    }
}

/// Serves our own tools without another process. A server that acts for another agent than this
/// thread's needs a process: ccb identifies the caller by its process.
fn connect_own(server: &McpServer) -> Option<UnixStream> {
    let is_us = |(name, value): (&String, &String)| env::var(name).unwrap_or_default() == *value;
    if !server.env.iter().all(is_us) {
        return None;
    }
    match serve_here(&server.args) {
        Ok(socket) => socket,
        Err(error) => {
            // The process will report the same error, where the agent sees it.
            tracing::warn!(error = error.message(), "our own tools need a process");
            None
        }
    }
}

fn serve_here(args: &[String]) -> Result<Option<UnixStream>, Failure> {
    let words = std::iter::once("ccb").chain(args.iter().map(String::as_str));
    let Ok(cli) = Cli::try_parse_from(words) else {
        return Ok(None);
    };
    let Some(Command::Mcp(args)) = &cli.command else {
        return Ok(None);
    };
    let context = Context::new(&cli.global, cli.repairs(), Output::new(false))?;
    project::rights::check("mcp", &context)?;
    mcp::serve_here(args, &context).map(Some)
}
