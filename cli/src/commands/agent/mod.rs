//! `ccb agent …`.

mod change;
mod list;
mod logs;
mod output;
mod show;
mod spawn;

use clap::Subcommand;

use crate::context::Context;
use crate::error::{CommandError, Exit};

/// What can be done with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Start an agent and wait for its result, or let it work in the background
    Spawn(Box<spawn::SpawnArgs>),
    /// Show the agents there are
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show everything about an agent
    Show(show::ShowArgs),
    /// Show what happened in an agent
    Logs(logs::LogsArgs),
    /// Send an agent a message; one that has ended goes on with it
    Send(change::SendArgs),
    /// Show what an agent has come to; waits for its end
    Output(output::OutputArgs),
    /// End a running agent
    Stop(change::StopArgs),
    /// Let an agent that has ended go on
    Resume(change::ResumeArgs),
}

pub(crate) fn run(command: &AgentCommand, context: &mut Context) -> Result<Exit, CommandError> {
    match command {
        AgentCommand::Spawn(args) => spawn::run(args, context),
        AgentCommand::List(args) => list::run(args, context),
        AgentCommand::Show(args) => show::run(args, context),
        AgentCommand::Logs(args) => logs::run(args, context),
        AgentCommand::Send(args) => change::send(args, context),
        AgentCommand::Output(args) => output::run(args, context),
        AgentCommand::Stop(args) => change::stop(args, context),
        AgentCommand::Resume(args) => change::resume(args, context),
    }
}
