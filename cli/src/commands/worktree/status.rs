use clap::Args;
use serde_json::{Value, json};
use store::Failure;
use worktrees::{ChangeState, Slug};

use super::{style, to_json};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, clean_line, short_commit};

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The worktree's name
    name: String,
    /// Also list the ignored files, which a removal would take away
    #[arg(long)]
    ignored: bool,
}

pub(crate) fn run(args: &StatusArgs, context: &mut Context) -> Result<Exit, Failure> {
    let slug = Slug::new(&args.name)?;
    let trees = context.trees()?;
    let entry = trees.get(&slug)?;
    let changes = trees.changes_of(&entry);
    let held = trees.is_held(&slug)?;
    let ignored = if args.ignored {
        Some(trees.ignored(&slug)?)
    } else {
        None
    };
    let json = || {
        let mut answer =
            json!({"worktree": to_json(&entry), "changes": changes.to_json(), "inUse": held});
        if let Some(paths) = &ignored {
            let paths: Vec<Value> = paths.iter().map(|p| p.to_string_lossy().into()).collect();
            answer["ignored"] = paths.into();
        }
        answer
    };
    let text = || {
        let style = style(&changes);
        let mut lines = vec![
            format!("{BOLD}{}{BOLD:#} {}", entry.name, clean_line(&entry.path)),
            match changes.state {
                ChangeState::Clean => format!("  {style}clean{style:#}"),
                state => format!(
                    "  {style}{}{style:#}: {}",
                    state.as_str(),
                    clean_line(&changes.describe())
                ),
            },
        ];
        let at = match (&changes.branch, changes.detached) {
            (Some(branch), false) => format!("on {}", clean_line(branch)),
            _ => "on no branch".to_owned(),
        };
        let base = entry.base.as_deref().map_or("unknown", short_commit);
        lines.push(format!("  {DIM}{at}, from {base}{DIM:#}"));
        if held {
            lines.push("  somebody works in it".into());
        }
        for path in ignored.iter().flatten() {
            let path = path.to_string_lossy();
            lines.push(format!(
                "  {DIM}ignored, would go with it: {}{DIM:#}",
                clean_line(&path)
            ));
        }
        lines.join("\n")
    };
    context.out.done(json, text)
}
