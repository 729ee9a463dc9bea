use clap::Args;
use coordinator::actions::trees::{self, RemoveOptions};
use serde_json::json;
use store::Failure;
use taskboard::Hooks;
use worktrees::{ChangeState, Slug};

use super::{NameArgs, to_json};
use crate::ask::{self, Unattended};
use crate::commands::task::done::Check;
use crate::commands::task::line;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, clean_line};

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The worktree's name
    name: String,
    /// Even if it has changes; `ccb worktree undo` restores them
    #[arg(long)]
    discard: bool,
    /// Also complete its task (after the task's check, if it has one), or do neither
    #[arg(long)]
    complete_task: bool,
    /// Also keep ignored files when the trash is emptied
    #[arg(long)]
    rescue_ignored: bool,
    /// Say what would happen
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn remove(args: &RemoveArgs, context: &mut Context) -> Result<Exit, Failure> {
    let slug = Slug::new(&args.name)?;
    if args.dry_run {
        return dry_run(args, &slug, context);
    }
    if args.discard {
        let changes = context.trees()?.changes(&slug)?;
        if changes.state != ChangeState::Clean {
            let found = clean_line(&changes.describe());
            let question = format!("Remove worktree {slug} with its changes ({found})?");
            ask::confirm(&question, args.yes, Unattended::GoesOn, context)?;
        }
    }
    let check = match args.complete_task {
        true => Some(Check {
            directory: context.trees()?.get(&slug)?.path().to_owned(),
        }),
        false => None,
    };
    let options = RemoveOptions {
        discard: args.discard,
        rescue_ignored: args.rescue_ignored,
        complete: check.as_ref().map(|check| check as &dyn Hooks),
    };
    let gone = trees::remove(&slug, &options, context)?;
    let json = || gone.to_json();
    let text = || {
        let (removed, ignored) = (&gone.removed, &gone.ignored);
        let name = &removed.entry.name;
        let mut text = format!("{GREEN}✔{GREEN:#} removed {BOLD}{name}{BOLD:#}");
        if removed.entry.hook_based {
            text.push_str(" with its hook; nothing of it can be brought back");
        }
        if removed.undoable {
            text.push_str(&format!(
                "; {CYAN}`ccb worktree undo {name}`{CYAN:#} restores it"
            ));
        }
        if let Some(kept) = &removed.branch_kept {
            text.push_str(&format!("\n  {}", clean_line(kept)));
        }
        if !ignored.is_empty() {
            text.push_str(&format!(
                "\n  {DIM}with it went what git ignores: {}{DIM:#}",
                some(ignored)
            ));
        }
        if let Some(completed) = &gone.completed {
            text.push_str(&format!("\n  {}", line(&completed.task)));
        }
        text
    };
    context.out.done(json, text)
}

fn some(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = paths[..paths.len().min(SHOWN)].join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    clean_line(&text)
}

fn dry_run(args: &RemoveArgs, slug: &Slug, context: &mut Context) -> Result<Exit, Failure> {
    let trees = context.trees()?;
    let ignored = trees::ignored_paths(&trees, slug).unwrap_or_default();
    let changes = trees.check_remove(slug, args.discard)?;
    let json = || json!({"dryRun": true, "changes": changes.to_json(), "ignored": ignored});
    let text = || {
        let mut text = format!(
            "would remove {BOLD}{slug}{BOLD:#} (changes: {})",
            changes.describe()
        );
        for path in &ignored {
            text.push_str(&format!(
                "\n  ignored, will be deleted: {}",
                clean_line(path)
            ));
        }
        text
    };
    context.out.done(json, text)
}

pub(crate) fn keep(args: &NameArgs, context: &mut Context) -> Result<Exit, Failure> {
    let entry = trees::keep(&Slug::new(&args.name)?, context)?;
    let json = || json!({ "worktree": to_json(&entry) });
    let text = || format!("{GREEN}✔{GREEN:#} {BOLD}{}{BOLD:#} stays", entry.name);
    context.out.done(json, text)
}

pub(crate) fn undo(args: &NameArgs, context: &mut Context) -> Result<Exit, Failure> {
    let entry = trees::undo(&Slug::new(&args.name)?, context)?;
    let json = || json!({ "worktree": to_json(&entry) });
    let path = clean_line(&entry.path);
    let text = || {
        format!(
            "{GREEN}✔{GREEN:#} {BOLD}{}{BOLD:#} is back: {path}",
            entry.name
        )
    };
    context.out.done(json, text)
}
