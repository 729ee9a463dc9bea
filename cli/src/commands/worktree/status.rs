use clap::Args;
use coordinator::actions::trees;
use store::Failure;
use worktrees::{ChangeState, Slug};

use super::style;
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
    let report = trees::status(&Slug::new(&args.name)?, args.ignored, context)?;
    let json = || report.to_json();
    let text = || {
        let (entry, changes) = (&report.entry, &report.changes);
        let style = style(changes);
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
        if report.in_use {
            lines.push("  somebody works in it".into());
        }
        for path in report.ignored.iter().flatten() {
            lines.push(format!(
                "  {DIM}ignored, would go with it: {}{DIM:#}",
                clean_line(path)
            ));
        }
        lines.join("\n")
    };
    context.out.done(json, text)
}
