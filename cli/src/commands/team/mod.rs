//! `ccb team …`.

mod change;
mod delete;
mod limits;
mod list;
mod show;

use clap::Subcommand;
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;

/// The subcommands of `ccb team`.
#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Create a team for this repository
    Create(change::CreateArgs),
    /// Join a team under the name given with --as
    Join(change::JoinArgs),
    /// Leave a team
    Leave(change::LeaveArgs),
    /// List teams
    #[command(visible_alias = "ls")]
    List,
    /// Show a team and its members
    Show(show::ShowArgs),
    /// Show what the team's agents have used, and whether they are paused
    Limits(limits::LimitsArgs),
    /// Delete a team with its tasks, mail and runs; task ids are not used again
    #[command(visible_alias = "rm")]
    Delete(delete::DeleteArgs),
}

pub(crate) fn run(command: &TeamCommand, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        TeamCommand::Create(args) => change::create(args, context),
        TeamCommand::Join(args) => change::join(args, context),
        TeamCommand::Leave(args) => change::leave(args, context),
        TeamCommand::List => list::run(context),
        TeamCommand::Show(args) => show::run(args, context),
        TeamCommand::Limits(args) => limits::run(args, context),
        TeamCommand::Delete(args) => delete::run(args, context),
    }
}
