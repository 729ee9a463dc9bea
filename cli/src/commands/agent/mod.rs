//! `ccb agent …`.

mod definitions;
mod types;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::error::{CommandError, Exit};

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// More agent types, as JSON: {"NAME": {"description": "…", "prompt": "…", …}}
    #[arg(long, global = true, value_name = "JSON")]
    agents: Option<String>,
    #[command(subcommand)]
    command: AgentCommand,
}

/// What can be done with agents.
#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Show the types of agents there are, where they come from and what is wrong with others
    #[command(visible_alias = "type")]
    Types(types::TypesArgs),
}

pub(crate) fn run(args: &AgentArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let agents = args.agents.as_deref();
    match &args.command {
        AgentCommand::Types(args) => types::run(args, agents, context),
    }
}
