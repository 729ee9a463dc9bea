use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use store::Failure;
use store::duration::DurationFormat;
use worktrees::{AfterCheck, Check, MergeOutcome, MergeRequest, MergeStrategy, Merged, Slug};

use super::create::SetUpArgs;
use super::to_json;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, clean_line, short_commit};
use crate::signals::Signals;

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The worktree's name
    name: String,
    /// The branch to land on [default: the one the main worktree is on]
    #[arg(long, value_name = "BRANCH", allow_hyphen_values = true)]
    into: Option<String>,
    /// What the branch gets: the commits and a merge, one commit, or the commits made again
    #[arg(long, value_enum, default_value_t = How::Merge)]
    strategy: How,
    /// Run this command on the merged result first; the branch moves only if it succeeds
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Stop the check after this time
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30m",
        value_parser = |text: &str| DurationFormat::SECONDS.read(text),
    )]
    check_timeout: Duration,
    /// The message of the merge or squash commit
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    message: Option<String>,
    /// Say what would happen; runs no check and moves nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    set_up: SetUpArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum How {
    Merge,
    Squash,
    Rebase,
}

impl From<How> for MergeStrategy {
    fn from(how: How) -> Self {
        match how {
            How::Merge => Self::Merge,
            How::Squash => Self::Squash,
            How::Rebase => Self::Rebase,
        }
    }
}

pub(crate) fn run(args: &MergeArgs, context: &mut Context) -> Result<Exit, Failure> {
    let slug = Slug::new(&args.name)?;
    if args
        .message
        .as_ref()
        .is_some_and(|text| text.trim().is_empty())
    {
        return Err(Failure::usage("usage", "--message is empty"));
    }
    let trees = context.trees()?;
    let signals = Signals::catch()?;
    let check = match &args.check {
        None => None,
        Some(command) => Some(Check {
            command: command.clone(),
            timeout: args.check_timeout,
            set_up: context.set_up(&args.set_up.wish())?,
            after: AfterCheck::Leave,
            stop: &signals.stop,
        }),
    };
    let request = MergeRequest {
        into: args.into.clone(),
        strategy: args.strategy.into(),
        message: args.message.clone(),
        check,
        dry_run: args.dry_run,
        ..MergeRequest::default()
    };
    let merged = match trees.merge(&slug, &request) {
        Ok(merged) => merged,
        Err(error) => {
            return match signals.came() {
                Some(exit) => Ok(exit),
                None => Err(error.into()),
            };
        }
    };
    context.out.done(
        || answer(&merged, request.strategy),
        || words(&merged, request.strategy),
    )
}

fn answer(merged: &Merged, strategy: MergeStrategy) -> Value {
    let outcome = match merged.outcome {
        MergeOutcome::Landed => "landed",
        MergeOutcome::WouldLand => "would_land",
        MergeOutcome::NothingToDo => "nothing_to_do",
    };
    json!({
        "worktree": to_json(&merged.entry),
        "merge": {
            "outcome": outcome,
            "into": merged.into,
            "strategy": strategy.as_str(),
            "before": merged.before,
            "after": merged.after,
            "commits": merged.commits,
            "checkout": merged.checkout.as_ref().map(|path| path.to_string_lossy()),
            "log": merged.log.as_ref().map(|path| path.to_string_lossy()),
        }
    })
}

fn words(merged: &Merged, strategy: MergeStrategy) -> String {
    let name = &merged.entry.name;
    let into = clean_line(&merged.into);
    let count = match merged.commits {
        1 => "1 commit".to_owned(),
        n => format!("{n} commits"),
    };
    let how = match strategy {
        MergeStrategy::Merge => "",
        MergeStrategy::Squash => " as one",
        MergeStrategy::Rebase => " made again on top of it",
    };
    let (before, after) = (short_commit(&merged.before), short_commit(&merged.after));
    let moved = format!("\n  {DIM}{into} {before} → {after}{DIM:#}");
    match merged.outcome {
        MergeOutcome::Landed => format!(
            "{GREEN}✔{GREEN:#} {BOLD}{name}{BOLD:#}: {count} landed on {BOLD}{into}{BOLD:#}{how}\
             {moved}\n  {DIM}the worktree stays; `ccb worktree remove {name}` takes it \
             away{DIM:#}"
        ),
        MergeOutcome::WouldLand => {
            format!("{BOLD}{name}{BOLD:#}: {count} would land on {into}{how}, without a conflict")
        }
        MergeOutcome::NothingToDo => {
            format!("{BOLD}{name}{BOLD:#}: {into} has everything already")
        }
    }
}
