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

/// What can be done with worktrees.
#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    /// Find the worktree of this name, or make it
    #[command(visible_alias = "add")]
    Create(create::CreateArgs),
    /// Show the worktrees there are
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show what was done in a worktree
    Status(status::StatusArgs),
    /// Run a command in a worktree
    Run(run::RunArgs),
    /// Bind a task to a worktree, and start it if it can start
    Bind(bind::BindArgs),
    /// Unbind a worktree from its task
    Unbind(NameArgs),
    /// Write down that a worktree stays
    Keep(NameArgs),
    /// Remove a worktree; refused if it has changes
    #[command(visible_alias = "rm")]
    Remove(remove::RemoveArgs),
    /// Bring the last removed worktree of this name back
    Undo(NameArgs),
    /// Put a worktree's commits onto another branch; a conflict or a failed check moves nothing
    Merge(Box<merge::MergeArgs>),
    /// List worktrees nobody needs any more, and remove them with --yes
    Gc(gc::GcArgs),
    /// Work in a worktree until `exit`: prints its path, for `cd "$(ccb worktree enter NAME)"`
    Enter(session::EnterArgs),
    /// Leave the worktree that was entered: prints the directory to go back to
    Exit(session::ExitArgs),
    /// Worktrees that are made before anybody asks for them (worktree.pool)
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

/// The colour of what was found in a tree.
fn style(changes: &Changes) -> Style {
    match changes.state {
        ChangeState::Clean => GREEN,
        ChangeState::Changed => YELLOW,
        ChangeState::Unknown => RED,
    }
}
