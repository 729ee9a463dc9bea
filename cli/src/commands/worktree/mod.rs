//! `ccb worktree …`.

mod bind;
pub(crate) mod create;
mod events;
mod gc;
mod list;
mod merge;
mod pool;
mod remove;
mod run;
mod session;
mod status;

use anstyle::Style;
use clap::{Args, Subcommand};
use worktrees::{ChangeState, Changes};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{GREEN, RED, YELLOW};
use coordinator::actions::worktree::to_json;
pub(crate) use create::NewTree;
use store::Failure;

/// The subcommands of `ccb worktree`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    /// Open a worktree, creating it if needed
    #[command(visible_alias = "add")]
    Create(create::CreateArgs),
    /// List worktrees
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show the changes in a worktree
    Status(status::StatusArgs),
    /// Run a command in a worktree
    Run(run::RunArgs),
    /// Bind a task to a worktree, and start the task if it is ready
    Bind(bind::BindArgs),
    /// Unbind a worktree from its task
    Unbind(NameArgs),
    /// Keep a worktree: clean-up does not remove it
    Keep(NameArgs),
    /// Remove a worktree; refused if it has changes
    #[command(visible_alias = "rm")]
    Remove(remove::RemoveArgs),
    /// Restore the last removed worktree of this name
    Undo(NameArgs),
    /// Land a worktree's commits on a branch; a conflict or a failed check changes nothing
    Merge(Box<merge::MergeArgs>),
    /// List worktrees that are unchanged or merged and unused for worktree.gcDays (30), or of attempts
    /// that another one replaced; remove them with --yes (`ccb clean` does not wait that long)
    Gc(gc::GcArgs),
    /// Work in a worktree until `exit`: prints its path, for `cd "$(ccb worktree enter NAME)"`
    Enter(session::EnterArgs),
    /// Leave the entered worktree: prints the directory to return to
    Exit(session::ExitArgs),
    /// Keep worktrees ready before they are needed (worktree.pool)
    #[command(subcommand)]
    Pool(pool::PoolCommand),
    /// Show what happened to worktrees
    Events(events::EventsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The worktree's name
    name: String,
}

pub(crate) fn run(command: &WorktreeCommand, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        WorktreeCommand::Create(args) => create::run(args, context),
        WorktreeCommand::List(args) => list::run(args, context),
        WorktreeCommand::Status(args) => status::run(args, context),
        WorktreeCommand::Run(args) => run::run(args, context),
        WorktreeCommand::Bind(args) => bind::bind(args, context),
        WorktreeCommand::Unbind(args) => bind::unbind(args, context),
        WorktreeCommand::Keep(args) => remove::keep(args, context),
        WorktreeCommand::Remove(args) => remove::remove(args, context),
        WorktreeCommand::Undo(args) => remove::undo(args, context),
        WorktreeCommand::Merge(args) => merge::run(args, context),
        WorktreeCommand::Gc(args) => gc::run(args, context),
        WorktreeCommand::Enter(args) => session::enter(args, context),
        WorktreeCommand::Exit(args) => session::exit(args, context),
        WorktreeCommand::Pool(command) => pool::run(command, context),
        WorktreeCommand::Events(args) => events::run(args, context),
    }
}

/// The colour for the changes in a worktree.
fn style(changes: &Changes) -> Style {
    match changes.state {
        ChangeState::Clean => GREEN,
        ChangeState::Changed => YELLOW,
        ChangeState::Unknown => RED,
    }
}
