use std::os::unix::net::UnixStream;

use clap::Args;
use coordinator::agent::Role;
use project::rights::not_yours;
use project::workplace::Who;
use store::Failure;

use crate::args::one_of;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The client's role in its team, which decides which tools it gets
    #[arg(long, value_name = "ROLE", value_parser = one_of(Role::ALL, Role::as_str))]
    role: Role,
}

pub(crate) fn run(args: &McpArgs, context: &mut Context) -> Result<Exit, Failure> {
    check(args.role, context)?;
    mcp::serve(args.role, context.workplace.clone())?;
    Ok(Exit::Done)
}

/// Serves our own tools to an agent in this process, as the process `server` would.
pub(crate) fn serve_here(args: &McpArgs, context: &Context) -> Result<UnixStream, Failure> {
    check(args.role, context)?;
    mcp::serve_here(args.role, context.workplace.clone())
}

/// Refuses an agent that asks for tools of a higher role than it was started with.
fn check(role: Role, context: &Context) -> Result<(), Failure> {
    let own = match context.who() {
        Who::Person | Who::Lead => return Ok(()),
        Who::Coordinator => Role::Coordinator,
        Who::Teammate => Role::Teammate,
        Who::Worker | Who::Unknown => Role::Worker,
    };
    if role == own || role == Role::Worker {
        return Ok(());
    }
    let (name, own, asked) = (context.agent(), own.as_str(), role.as_str());
    Err(not_yours(
        format!("{name} is a {own} of its team and gets no tools of a {asked}"),
        &format!("its own are served by: ccb mcp --role {own}"),
    ))
}
