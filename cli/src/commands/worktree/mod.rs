//! `ccb worktree …`.

mod bind;
mod create;
mod events;
mod gc;
mod list;
mod merge;
mod pool;
mod remove;
mod run;
mod session;
mod signals;
mod status;

use clap::{Args, Subcommand};
use coordinator::binding::Binder;
use serde_json::{Map, Value, json};
use worktrees::{Entry, Slug, TreeError};

use self::pool::fill_behind;
use crate::context::Context;
use crate::error::{CommandError, Exit};
pub(crate) use create::{NewTree, Wanted};

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

pub(crate) fn run(command: &WorktreeCommand, context: &mut Context) -> Result<Exit, CommandError> {
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

/// A name on the command line.
fn slug(name: &str) -> Result<Slug, TreeError> {
    Slug::new(name)
}

/// A worktree as JSON.
fn to_json(entry: &Entry) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), entry.name.clone().into());
    map.insert("path".into(), entry.path.clone().into());
    map.insert("branch".into(), json!(entry.branch));
    map.insert("base".into(), json!(entry.base));
    map.insert("status".into(), entry.status.as_str().into());
    map.insert("task_id".into(), json!(entry.task_id));
    map.insert("agent".into(), json!(entry.agent));
    map.insert("createdAt".into(), entry.created_at.clone().into());
    map.insert("lastUsedAt".into(), entry.last_used_at.clone().into());
    if entry.hook_based {
        map.insert("hookBased".into(), true.into());
    }
    if let Some(doing) = entry.under_way() {
        map.insert("underWay".into(), doing.into());
    }
    if let Some(landed) = entry.merged.as_ref().filter(|landed| !landed.pending) {
        map.insert(
            "merged".into(),
            json!({"into": landed.into, "commit": landed.commit, "head": landed.head, "at": landed.at}),
        );
    }
    if let Some(trash) = &entry.trash {
        let undoable = !trash.emptied;
        let refs = format!("refs/ccb/rescue/{}/", trash.id);
        map.insert(
            "removed".into(),
            json!({"at": trash.at, "id": trash.id, "undoable": undoable, "rescueRefs": refs}),
        );
    }
    map.into()
}

/// Brings trees in line with the board after a crash between the two. Only a courtesy: what
/// fails here fails again, with a better message, where it matters.
fn reconcile(binder: &Binder<'_>) {
    if let Err(error) = binder.reconcile() {
        tracing::warn!(%error, "worktrees and tasks could not be compared");
    }
}
