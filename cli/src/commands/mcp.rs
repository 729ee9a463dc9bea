use clap::Args;

use crate::context::Context;
use crate::error::{CommandError, Exit};
use crate::mcp::{self, Role};

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// What the client is in its team, which decides what it can do
    #[arg(long, value_enum)]
    role: Role,
}

pub(crate) fn run(args: &McpArgs, context: &mut Context) -> Result<Exit, CommandError> {
    mcp::serve(args.role, context.clone())
}
