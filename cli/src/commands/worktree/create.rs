use std::time::Duration;

use clap::Args;
use coordinator::binding::Binder;
use serde_json::json;
use store::settings::BaseRef;
use worktrees::{Base, CreateRequest, SetUp};

use super::{slug, to_json};
use crate::commands::task::{id, line};
use crate::context::Context;
use crate::error::{CommandError, Exit};
use crate::output::{BOLD, DIM, GREEN, clean_line};

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name; one is made up if you give none
    #[arg(allow_hyphen_values = true)]
    name: Option<String>,
    /// Bind this task to it, and start the task if it can start
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    task: Option<String>,
    /// Start from this branch, tag or commit [default: your HEAD, or worktree.baseRef]
    #[arg(long, value_name = "REF", allow_hyphen_values = true)]
    base: Option<String>,
    /// Check out only this path (may be repeated) [default: worktree.sparsePaths]
    #[arg(long, value_name = "PATH")]
    sparse: Vec<String>,
    /// Run this command in the new worktree [default: worktree.setup]
    #[arg(long, value_name = "CMD", conflicts_with = "no_setup")]
    setup: Option<String>,
    /// Run no set-up command
    #[arg(long)]
    no_setup: bool,
}

pub(crate) fn run(args: &CreateArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let task = args.task.as_deref().map(id).transpose()?;
    let name = args.name.as_deref().map(slug).transpose()?;
    let trees = context.trees()?;
    let board = context.board();
    if let Some(task) = task {
        // Before anything is made for it.
        board.snapshot()?.require(task)?;
    }
    let directory = context.directory.clone();
    let request = CreateRequest {
        base: base(args, context),
        set_up: set_up(args, context)?,
        agent: context.named_agent().map(str::to_owned),
        ..CreateRequest::new(name, &directory)
    };
    let mut created = trees.create(&request)?;
    let mut bound = None;
    if let Some(task) = task {
        let binder = Binder {
            board: &board,
            trees: &trees,
        };
        let slug = slug(&created.entry.name)?;
        match binder.bind(&slug, task, context.named_agent()) {
            Ok((entry, task)) => {
                created.entry = entry;
                bound = Some(task);
            }
            Err(error) => {
                // It was made for this task alone, and nobody has seen it yet.
                if created.created {
                    trees.remove(&slug, &worktrees::RemoveRequest::default())?;
                }
                return Err(error.into());
            }
        }
    }
    for note in &created.notes {
        tracing::info!("{note}");
    }
    let json = || {
        let mut tree = to_json(&created.entry);
        tree["created"] = created.created.into();
        tree["durationMs"] = created.duration_ms.into();
        let mut answer = json!({ "worktree": tree });
        if let Some(task) = &bound {
            answer["task"] = task.to_json();
        }
        answer
    };
    let text = || {
        let verb = if created.created { "created" } else { "found" };
        let entry = &created.entry;
        let path = clean_line(&entry.path);
        let mut text = format!(
            "{GREEN}✔{GREEN:#} {verb} {BOLD}{}{BOLD:#} {path}",
            entry.name
        );
        if let (Some(branch), Some(base)) = (&entry.branch, &entry.base) {
            let base = base.get(..12).unwrap_or(base);
            text.push_str(&format!("\n  {DIM}branch {branch}, from {base}{DIM:#}"));
        }
        if let Some(task) = &bound {
            text.push_str(&format!("\n  {}", line(task)));
        }
        text
    };
    context.out.answer(json, text)?;
    Ok(Exit::Done)
}

fn base(args: &CreateArgs, context: &Context) -> Base {
    match (&args.base, context.worktree_settings().base_ref) {
        (Some(base), _) => Base::Given(base.clone()),
        (None, BaseRef::Head) => Base::Head,
        (None, BaseRef::Fresh) => Base::Fresh,
    }
}

/// What flags and settings say about new trees.
fn set_up(args: &CreateArgs, context: &Context) -> Result<SetUp, CommandError> {
    let settings = context.worktree_settings();
    let command = match (&args.setup, &settings.set_up) {
        _ if args.no_setup => None,
        (Some(command), _) => Some(command.clone()),
        (None, Some(setting)) if setting.file != context.own_settings() => {
            let message = format!(
                "{} wants `{}` to be run in every new worktree, and what a repository brings \
                 along is not run unasked",
                setting.file.display(),
                setting.command
            );
            return Err(CommandError::Other {
                exit: Exit::Refused,
                kind: "not_trusted",
                message,
                hint: Some(format!(
                    "say so with --setup CMD, go without with --no-setup, or put it into {}",
                    context.own_settings().display()
                )),
            });
        }
        (None, setting) => setting.as_ref().map(|setting| setting.command.clone()),
    };
    let sparse = if args.sparse.is_empty() {
        &settings.sparse_paths
    } else {
        &args.sparse
    };
    Ok(SetUp {
        sparse_paths: sparse.clone(),
        symlink_directories: settings.symlink_directories.clone(),
        copy_directories: settings.copy_directories.clone(),
        command,
        command_timeout: Duration::from_secs(600),
    })
}
