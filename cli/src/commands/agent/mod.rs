//! `ccb agent …`.

mod change;
mod limits;
mod list;
mod logs;
mod output;
mod show;
mod spawn;
mod types;

use clap::{Args, Subcommand};
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// More agent types, as JSON: {"NAME": {"description": "…", "prompt": "…", …}}
    #[arg(long, global = true, value_name = "JSON")]
    agents: Option<String>,
    #[command(subcommand)]
    command: AgentCommand,
}

/// The subcommands of `ccb agent`.
#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Start an agent and wait for its result, or let it work in the background
    Spawn(Box<spawn::SpawnArgs>),
    /// List agents
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show everything about an agent
    Show(show::ShowArgs),
    /// Show an agent's transcript
    Logs(logs::LogsArgs),
    /// Send an agent a message; a finished agent resumes
    Send(change::SendArgs),
    /// Wait for an agent's end and show its result
    Output(output::OutputArgs),
    /// Stop a running agent
    Stop(change::StopArgs),
    /// Resume an agent that has ended
    Resume(change::ResumeArgs),
    /// List types of agents, where they come from, and definitions with mistakes
    #[command(visible_alias = "type")]
    Types(types::TypesArgs),
}

/// True if a kept worktree no longer exists: it has landed, or a user removed it.
fn is_gone(tree: &swarm::run::TreeOf) -> bool {
    !std::path::Path::new(&tree.path).is_dir()
}

pub(crate) fn run(args: &AgentArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = args.agents.as_deref();
    match &args.command {
        AgentCommand::Spawn(args) => spawn::run(args, agents, context),
        AgentCommand::List(args) => list::run(args, context),
        AgentCommand::Show(args) => show::run(args, context),
        AgentCommand::Logs(args) => logs::run(args, context),
        AgentCommand::Send(args) => change::send(args, context),
        AgentCommand::Output(args) => output::run(args, context),
        AgentCommand::Stop(args) => change::stop(args, context),
        AgentCommand::Resume(args) => change::resume(args, context),
        AgentCommand::Types(args) => types::run(args, agents, context),
    }
}
