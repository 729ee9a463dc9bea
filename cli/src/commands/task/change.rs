use clap::Args;
use coordinator::actions::task as actions;
use serde_json::json;
use store::Failure;
use taskboard::{Task, Update};

use super::create::{OurMetadata, description};
use super::{done, id, ids, line};
use crate::ask::{self, Unattended};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::GREEN;

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// The task's id
    #[arg(allow_negative_numbers = true)]
    id: String,
    /// A new subject
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// A new description; `-` reads it from standard input
    #[arg(short, long, value_name = "TEXT")]
    description: Option<String>,
    /// A new activity text; empty removes it
    #[arg(long, value_name = "TEXT")]
    active_form: Option<String>,
    /// pending gives it back, in_progress claims it, completed completes it
    #[arg(long)]
    status: Option<String>,
    /// Assign it to this agent; empty gives it back
    #[arg(long, value_name = "AGENT")]
    owner: Option<String>,
    #[command(flatten)]
    ours: OurMetadata,
    /// The token the claim came with
    #[arg(long, value_name = "N")]
    token: Option<u64>,
    /// Even if somebody else owns it or a blocker is open
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// The tasks' ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The task's id
    #[arg(allow_negative_numbers = true)]
    id: String,
    /// The token the claim came with
    #[arg(long, value_name = "N")]
    token: Option<u64>,
    /// Even if somebody else owns it
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The task's id
    #[arg(allow_negative_numbers = true)]
    id: String,
    /// Even if somebody else is working on it
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EdgeArgs {
    /// The task that comes first
    #[arg(allow_negative_numbers = true, value_name = "A")]
    blocker: String,
    /// The task that waits for it
    #[arg(allow_negative_numbers = true, value_name = "B")]
    dependent: String,
}

#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    /// Even if tasks are in progress or unreadable
    #[arg(long)]
    force: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn update(args: &UpdateArgs, context: &mut Context) -> Result<Exit, Failure> {
    let id = id(&args.id)?;
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let update = Update {
        subject: args.subject.clone(),
        description: description(args.description.as_deref())?,
        active_form: args.active_form.as_ref().map(text),
        owner: args.owner.as_ref().map(text),
        status: args.status.as_deref().map(str::parse).transpose()?,
        metadata: args.ours.to_map()?,
        ..Update::default()
    };
    let caller = context.caller(args.token, args.force);
    let updated = actions::update(id, &update, &caller, context)?;
    if update.status == Some(taskboard::Status::Completed) {
        return done::answer(&updated, context);
    }
    changed("updated", &updated.task, context)
}

/// Makes these tasks ready to be claimed again.
pub(crate) fn retry(args: &RetryArgs, context: &mut Context) -> Result<Exit, Failure> {
    let ids = ids(&args.ids)?;
    let caller = context.caller(None, false);
    let update = Update {
        status: Some(taskboard::Status::Pending),
        ..Update::default()
    };
    let mut tasks = Vec::new();
    for id in ids {
        tasks.push(actions::update(id, &update, &caller, context)?.task);
    }
    let ccb = context.ccb();
    context.out.done(
        || json!({ "tasks": tasks.iter().map(Task::to_json).collect::<Vec<_>>() }),
        || {
            let mut lines: Vec<String> = tasks
                .iter()
                .map(|task| format!("{GREEN}✔{GREEN:#} ready again {}", line(task)))
                .collect();
            if ccb.contains("--team") {
                lines.push(format!("  resume the session: {ccb}"));
            }
            lines.join("\n")
        },
    )
}

pub(crate) fn release(args: &ReleaseArgs, context: &mut Context) -> Result<Exit, Failure> {
    let caller = context.caller(args.token, args.force);
    let task = context.board().release(id(&args.id)?, &caller)?;
    changed("released", &task, context)
}

pub(crate) fn rm(args: &RmArgs, context: &mut Context) -> Result<Exit, Failure> {
    let caller = context.caller(None, args.force);
    let task = actions::delete(id(&args.id)?, &caller, context)?;
    changed("deleted", &task, context)
}

pub(crate) fn block(args: &EdgeArgs, context: &mut Context) -> Result<Exit, Failure> {
    let (blocker, dependent) = (id(&args.blocker)?, id(&args.dependent)?);
    let task = context.board().block(blocker, dependent)?;
    changed(
        &format!("{dependent} now waits for {blocker}:"),
        &task,
        context,
    )
}

pub(crate) fn unblock(args: &EdgeArgs, context: &mut Context) -> Result<Exit, Failure> {
    let (blocker, dependent) = (id(&args.blocker)?, id(&args.dependent)?);
    let task = context.board().unblock(blocker, dependent)?;
    changed(
        &format!("{dependent} no longer waits for {blocker}:"),
        &task,
        context,
    )
}

pub(crate) fn reset(args: &ResetArgs, context: &mut Context) -> Result<Exit, Failure> {
    let board = context.board();
    let name = board.name().as_str();
    if board.dir().is_dir() {
        let there = board.snapshot()?.tasks().count();
        let question = format!(
            "Delete {} of {name:?} for good?",
            store::counted(there, "task")
        );
        ask::confirm(&question, args.yes, Unattended::GoesOn, context)?;
    }
    let count = board.reset(args.force)?;
    let text = || {
        let deleted = store::counted(count, "task");
        format!("{GREEN}✔{GREEN:#} deleted {deleted} of {name:?}")
    };
    context.out.done(|| json!({ "deleted": count }), text)
}

fn changed(verb: &str, task: &Task, context: &mut Context) -> Result<Exit, Failure> {
    let text = || format!("{GREEN}✔{GREEN:#} {verb} {}", line(task));
    context
        .out
        .done(|| json!({ "task": actions::to_json(task) }), text)
}
