use std::path::PathBuf;

use clap::Args;
use coordinator::fanout::{ApplyOptions, apply};
use serde_json::json;
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, short_commit};

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
    context.out.done(
        || {
            json!({"apply": {
                "applied": !args.check,
                "tasks": answer.tasks,
                "before": answer.before,
                "after": answer.after,
                "sameBase": answer.same_base,
            }})
        },
        || match args.check {
            true => format!("{GREEN}✔{GREEN:#} {BOLD}{count}{BOLD:#} would apply"),
            false => format!(
                "{GREEN}✔{GREEN:#} {BOLD}{count}{BOLD:#} applied\n  {DIM}{} → {}{DIM:#}",
                short_commit(&answer.before),
                short_commit(&answer.after)
            ),
        },
    )
}
