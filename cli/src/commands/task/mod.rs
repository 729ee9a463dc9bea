//! `ccb task …`.

mod change;
mod claim;
mod create;
pub(crate) mod done;
mod graph;
mod list;
mod show;
mod watch;

use clap::Subcommand;
use store::Failure;
use taskboard::{BoardError, Status, Task, TaskId};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, clean_line};

/// The subcommands of `ccb task`.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Add a task, or many
    #[command(visible_alias = "add")]
    Create(create::CreateArgs),
    /// List tasks
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show everything about a task
    Show(show::ShowArgs),
    /// Change a task
    Update(change::UpdateArgs),
    /// Claim a task
    Claim(claim::ClaimArgs),
    /// Claim the best task that is ready
    Next(claim::NextArgs),
    /// Complete a task
    Done(done::DoneArgs),
    /// Try parked tasks again, from their first attempt
    Retry(change::RetryArgs),
    /// Give a claimed task back
    Release(change::ReleaseArgs),
    /// Delete a task; its id is not used again
    Rm(change::RmArgs),
    /// Make task B wait for task A
    Block(change::EdgeArgs),
    /// Make task B no longer wait for task A
    Unblock(change::EdgeArgs),
    /// Show which tasks wait for which
    Graph(graph::GraphArgs),
    /// Print changes as they happen
    Watch(watch::WatchArgs),
    /// Delete all tasks; their ids are not used again
    Reset(change::ResetArgs),
}

pub(crate) fn run(command: &TaskCommand, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        TaskCommand::Create(args) => create::run(args, context),
        TaskCommand::List(args) => list::run(args, context),
        TaskCommand::Show(args) => show::run(args, context),
        TaskCommand::Update(args) => change::update(args, context),
        TaskCommand::Claim(args) => claim::claim(args, context),
        TaskCommand::Next(args) => claim::next(args, context),
        TaskCommand::Done(args) => done::run(args, context),
        TaskCommand::Retry(args) => change::retry(args, context),
        TaskCommand::Release(args) => change::release(args, context),
        TaskCommand::Rm(args) => change::rm(args, context),
        TaskCommand::Block(args) => change::block(args, context),
        TaskCommand::Unblock(args) => change::unblock(args, context),
        TaskCommand::Graph(args) => graph::run(args, context),
        TaskCommand::Watch(args) => watch::run(args, context),
        TaskCommand::Reset(args) => change::reset(args, context),
    }
}

/// A task id on the command line. The command checks it when it runs, so that the error is the same
/// wherever an id can stand.
pub(crate) fn id(text: &str) -> Result<TaskId, BoardError> {
    Ok(text.parse()?)
}

fn ids(texts: &[String]) -> Result<Vec<TaskId>, BoardError> {
    texts.iter().map(|text| id(text)).collect()
}

fn join(ids: &[TaskId]) -> String {
    ids.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A task in one line.
pub(crate) fn line(task: &Task) -> String {
    let status = match task.status {
        Status::Pending => "pending",
        Status::InProgress => "in progress",
        Status::Completed if task.unchecked().is_some() => "completed, ⚠ unchecked",
        Status::Completed => "completed",
    };
    let owner = task
        .owner
        .as_ref()
        .map(|owner| format!(", {}", clean_line(owner)));
    let subject = clean_line(&task.subject);
    format!(
        "{BOLD}{}{BOLD:#} {subject} ({status}{})",
        task.id,
        owner.unwrap_or_default()
    )
}
