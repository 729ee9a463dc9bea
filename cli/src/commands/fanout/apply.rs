use std::path::{Path, PathBuf};

use clap::Args;
use fanout::{ApplyOptions, Skipped, apply, shell_word};
use serde_json::json;
use store::{Category, Failure};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, YELLOW, clean_line, short_commit};

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The directory with the results of a run
    dir: PathBuf,
    /// Only say whether they apply; changes nothing
    #[arg(long)]
    check: bool,
    /// Merge where a patch does not fit as it is
    #[arg(long = "3way")]
    three_way: bool,
}

pub(super) fn run(args: &ApplyArgs, context: &mut Context) -> Result<Exit, Failure> {
    let options = ApplyOptions {
        check: args.check,
        three_way: args.three_way,
    };
    let dir = context.directory.join(&args.dir);
    let answer = apply(&dir, &context.directory, options)?;
    let count = match answer.tasks.len() {
        1 => "1 patch".to_owned(),
        n => format!("{n} patches"),
    };
    context.out.answer(
        || {
            json!({"apply": {
                "applied": !args.check,
                "tasks": answer.tasks,
                "before": answer.before,
                "after": answer.after,
                "sameBase": answer.same_base,
                "skipped": answer.skipped,
            }})
        },
        || {
            let mut text = match args.check {
                true => format!("{GREEN}✔{GREEN:#} {BOLD}{count}{BOLD:#} would apply"),
                false => format!(
                    "{GREEN}✔{GREEN:#} {BOLD}{count}{BOLD:#} applied\n  {DIM}{} → {}{DIM:#}",
                    short_commit(&answer.before),
                    short_commit(&answer.after)
                ),
            };
            for skipped in &answer.skipped {
                text.push_str(&left_out(skipped, &dir));
            }
            text
        },
    )?;
    // Proven work that was not applied remains to be done.
    let left = answer.skipped.iter().any(|skipped| skipped.proven);
    Ok(match left {
        true => Exit::Not(Category::Conflict),
        false => Exit::Done,
    })
}

fn left_out(skipped: &Skipped, dir: &Path) -> String {
    let (task, why) = (clean_line(&skipped.task), clean_line(&skipped.why));
    let mut text = format!("\n  {YELLOW}⚠{YELLOW:#} {task} was skipped: {why}");
    if let Some(patch) = skipped.patch.as_ref().filter(|_| skipped.proven) {
        let patch = dir.join(patch);
        let patch = shell_word(&patch.to_string_lossy());
        text.push_str(&format!("\n    {DIM}apply it:{DIM:#} git am -3 {patch}"));
    }
    text
}
