use clap::Args;
use coordinator::actions::worktree as actions;
use serde_json::{Value, json};
use store::Failure;
use worktrees::{GcVerdict, Slug, Trees};

use super::to_json;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, GREEN, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Remove what is listed as removable, and delete what has been in the trash for longer than
    /// worktree.trashDays (7)
    #[arg(long)]
    yes: bool,
}

/// Reports the worktrees in which checks ran; with `yes`, removes them.
fn check_trees(yes: bool, trees: &Trees, lines: &mut Vec<String>) -> Result<Vec<Value>, Failure> {
    let before = trees.check_trees();
    if yes {
        trees.drop_check_trees(true)?;
    }
    let after = trees.check_trees();
    let row = |name: &String| {
        let removed = !after.contains(name);
        lines.push(match (yes, removed) {
            (true, false) => format!("{YELLOW}!{YELLOW:#} {name} stays: a check runs in it"),
            (true, true) => format!("{GREEN}✔{GREEN:#} {name} removed: it was for checks"),
            _ => format!("{GREEN}✔{GREEN:#} {name} can go: it was for checks"),
        });
        json!({ "name": name, "removed": removed })
    };
    Ok(before.iter().map(row).collect())
}

pub(crate) fn run(args: &GcArgs, context: &mut Context) -> Result<Exit, Failure> {
    let trees = context.trees()?;
    if args.yes {
        trees.sweep()?;
        trees.drop_used()?;
    }
    let mut rows: Vec<Value> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for candidate in trees.gc_candidates()? {
        let name = &candidate.entry.name;
        let (why, into) = match &candidate.verdict {
            GcVerdict::Unchanged => ("unchanged".to_owned(), None),
            GcVerdict::Merged { into } => (format!("merged into {into}"), Some(into.clone())),
            GcVerdict::Stays(why) => {
                let why = clean_line(why);
                rows.push(json!({"worktree": to_json(&candidate.entry), "stays": why}));
                lines.push(format!(
                    "{YELLOW}!{YELLOW:#} {BOLD}{name}{BOLD:#} stays: {why}"
                ));
                continue;
            }
        };
        let removed = args.yes && trees.collect(&Slug::new(name)?)?.is_some();
        let mut row = json!({"worktree": to_json(&candidate.entry), "removed": removed});
        row["reason"] = if into.is_some() {
            "merged"
        } else {
            "unchanged"
        }
        .into();
        rows.push(row);
        let verb = if removed { "removed" } else { "can go" };
        lines.push(format!(
            "{GREEN}✔{GREEN:#} {BOLD}{name}{BOLD:#} {verb}: {why}"
        ));
    }
    superseded(args.yes, context, &mut rows, &mut lines)?;
    let checks = check_trees(args.yes, &trees, &mut lines)?;
    let mut trash: Vec<Value> = Vec::new();
    if args.yes {
        for overdue in trees.empty_trash()? {
            let name = &overdue.entry.name;
            lines.push(match &overdue.stays {
                None => format!("{GREEN}✔{GREEN:#} {name} is out of the trash"),
                Some(why) => {
                    format!(
                        "{YELLOW}!{YELLOW:#} {name} stays in the trash: {}",
                        clean_line(why)
                    )
                }
            });
            trash.push(
                json!({"name": name, "emptied": overdue.stays.is_none(), "stays": overdue.stays}),
            );
        }
        trees.tidy()?;
    } else {
        for entry in trees.overdue()? {
            lines.push(format!(
                "{GREEN}✔{GREEN:#} {} can leave the trash",
                entry.name
            ));
            trash.push(json!({"name": entry.name, "emptied": false}));
        }
    }
    let json = || json!({"candidates": rows, "trash": trash, "checks": checks});
    let text = || {
        if lines.is_empty() {
            return "nothing to collect".to_owned();
        }
        if !args.yes {
            lines.push(format!("remove them: {CYAN}ccb worktree gc --yes{CYAN:#}"));
        }
        lines.join("\n")
    };
    context.out.done(json, text)
}

/// Reports the worktrees of attempts at tasks that another attempt has done; with `yes`, removes
/// them.
fn superseded(
    yes: bool,
    context: &Context,
    rows: &mut Vec<Value>,
    lines: &mut Vec<String>,
) -> Result<(), Failure> {
    for one in actions::superseded(yes, context)? {
        let (name, task) = (&one.entry.name, one.task);
        let mut row =
            json!({"worktree": to_json(&one.entry), "reason": "superseded", "task": task});
        match one.removed {
            Ok(removed) => {
                row["removed"] = removed.into();
                let verb = if removed { "removed" } else { "can go" };
                lines.push(format!(
                    "{GREEN}✔{GREEN:#} {BOLD}{name}{BOLD:#} {verb}: task {task} was done by \
                     another attempt, and has landed"
                ));
            }
            Err(error) => {
                row["stays"] = error.to_string().into();
                let why = clean_line(&error.to_string());
                lines.push(format!(
                    "{YELLOW}!{YELLOW:#} {BOLD}{name}{BOLD:#} stays: {why}"
                ));
            }
        }
        rows.push(row);
    }
    Ok(())
}
