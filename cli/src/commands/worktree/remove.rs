use clap::Args;
use coordinator::workplace::hooks::{BeforeDone, TreeRemover};
use serde_json::{Value, json};
use store::Failure;
use taskboard::Hooks;
use worktrees::{RemoveRequest, Slug, TreeError, Trees};

use super::{NameArgs, binder, to_json};
use crate::commands::task::done::Check;
use crate::commands::task::line;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, clean_line};

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The worktree's name
    name: String,
    /// Even if it has changes; `ccb worktree undo` brings them back
    #[arg(long)]
    discard: bool,
    /// Complete its task as well (after the task's check, if it has one), or do neither
    #[arg(long)]
    complete_task: bool,
    /// Keep ignored files too when the trash is emptied
    #[arg(long)]
    rescue_ignored: bool,
    /// Say what would happen
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn remove(args: &RemoveArgs, context: &mut Context) -> Result<Exit, Failure> {
    let slug = Slug::new(&args.name)?;
    let (board, trees) = (context.board(), context.trees()?);
    let binder = binder(&board, &trees);
    let ignored = ignored(&trees, &slug);
    if args.dry_run {
        return dry_run(args, &slug, &trees, &ignored, context);
    }
    let hook_based = trees.get(&slug).is_ok_and(|entry| entry.hook_based);
    let remover = TreeRemover::new(hook_based && args.discard, context)?;
    let hook = remover.hook();
    let request = RemoveRequest {
        discard: args.discard,
        rescue_ignored: args.rescue_ignored,
        kept: None,
        hook: hook.as_ref().map(|hook| hook as _),
    };
    let (removed, completed) = if args.complete_task {
        let entry = trees.get(&slug)?;
        let check = Check {
            directory: entry.path().to_owned(),
        };
        let has_check = entry
            .task_id
            .as_deref()
            .and_then(|id| id.parse().ok())
            .and_then(|id| Some(board.snapshot().ok()?.get(id)?.verify_command().is_some()));
        let check: Option<&dyn Hooks> = (has_check == Some(true)).then_some(&check);
        let asked = BeforeDone::new(context, check);
        let caller = context.caller(None, false);
        let finished = binder.remove_and_complete(&slug, &request, &caller, asked.asked())?;
        (finished.removed, Some(finished.completed))
    } else {
        (trees.remove(&slug, &request)?, None)
    };
    let json = || {
        let mut answer = json!({"worktree": to_json(&removed.entry), "ignored": ignored});
        if let Some(kept) = &removed.branch_kept {
            answer["branchKept"] = kept.clone().into();
        }
        if let Some(completed) = &completed {
            answer["task"] = completed.task.to_json();
            answer["unblocked"] = json!(completed.unblocked);
        }
        answer
    };
    let text = || {
        let name = &removed.entry.name;
        let mut text = format!("{GREEN}✔{GREEN:#} removed {BOLD}{name}{BOLD:#}");
        if removed.entry.hook_based {
            text.push_str(" with its hook; nothing of it can be brought back");
        }
        if removed.undoable {
            text.push_str(&format!(
                "; {CYAN}`ccb worktree undo {name}`{CYAN:#} brings it back"
            ));
        }
        if let Some(kept) = &removed.branch_kept {
            text.push_str(&format!("\n  {}", clean_line(kept)));
        }
        if !ignored.is_empty() {
            text.push_str(&format!(
                "\n  {DIM}with it went what git ignores: {}{DIM:#}",
                some(&ignored)
            ));
        }
        if let Some(completed) = &completed {
            text.push_str(&format!("\n  {}", line(&completed.task)));
        }
        text
    };
    context.out.done(json, text)
}

/// What git ignores in the tree, as far as it can tell.
fn ignored(trees: &Trees, slug: &Slug) -> Vec<String> {
    let paths = trees.ignored(slug).unwrap_or_default();
    let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    paths.iter().map(text).collect()
}

fn some(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = paths[..paths.len().min(SHOWN)].join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    clean_line(&text)
}

fn dry_run(
    args: &RemoveArgs,
    slug: &Slug,
    trees: &Trees,
    ignored: &[String],
    context: &mut Context,
) -> Result<Exit, Failure> {
    let changes = trees.check_remove(slug, args.discard)?;
    let json = || {
        let ignored: Vec<Value> = ignored.iter().map(|path| path.clone().into()).collect();
        json!({"dryRun": true, "changes": changes.to_json(), "ignored": ignored})
    };
    let text = || {
        let mut text = format!(
            "would remove {BOLD}{slug}{BOLD:#} (changes: {})",
            changes.describe()
        );
        for path in ignored {
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
    let entry = context.trees()?.keep(&Slug::new(&args.name)?)?;
    let json = || json!({ "worktree": to_json(&entry) });
    let text = || format!("{GREEN}✔{GREEN:#} {BOLD}{}{BOLD:#} stays", entry.name);
    context.out.done(json, text)
}

pub(crate) fn undo(args: &NameArgs, context: &mut Context) -> Result<Exit, Failure> {
    let slug = Slug::new(&args.name)?;
    let entry = context.trees()?.undo(&slug).map_err(|error| match error {
        TreeError::Exists { .. } => {
            Failure::refused("exists", format!("worktree {:?} is there", slug.as_str()))
                .with_hint("remove that one first, or leave it")
        }
        error => error.into(),
    })?;
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
