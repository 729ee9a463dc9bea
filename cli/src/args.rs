//! The arguments every command shares.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use store::settings::MatesIn;
use swarm::definitions::PermissionMode;
use worktrees::MergeStrategy;

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Use this team, and its task list
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) team: Option<String>,
    /// Use this task list
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) list: Option<String>,
    /// Act as this agent [default: $CCB_AGENT, else "user"]
    #[arg(long = "as", global = true, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Keep state here [default: $CCB_HOME, $CLAUDE_CONFIG_DIR, else ~/.claude]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Run as if started in this directory
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Use the board in this database: postgres://USER@HOST/DB, or `files` [default: $CCB_BOARD, else files]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) board: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more on stderr; twice for even more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// A parser for values that are chosen by name, each with its description.
pub(crate) fn one_of<T, const N: usize>(
    all: [(T, &'static str); N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let values = all.map(|(one, about)| PossibleValue::new(name(one)).help(about));
    PossibleValuesParser::new(values).try_map(move |given| {
        let mut all = all.into_iter().map(|(one, _)| one);
        all.find(|one| name(*one) == given).ok_or("no such value")
    })
}

/// Parser for the merge strategy: which commits a landing adds to the branch.
pub(crate) fn merge_strategy() -> impl TypedValueParser<Value = MergeStrategy> {
    one_of(
        [
            (
                MergeStrategy::Merge,
                "The commits, and a merge commit where one is needed",
            ),
            (MergeStrategy::Squash, "One commit with everything"),
            (
                MergeStrategy::Rebase,
                "The commits, made again on top of the branch",
            ),
        ],
        MergeStrategy::as_str,
    )
}

/// Parser for where native agents run.
pub(crate) fn mates_in() -> impl TypedValueParser<Value = MatesIn> {
    one_of(
        [
            (MatesIn::Own, "Each in processes of its own"),
            (MatesIn::Process, "All in one process"),
        ],
        MatesIn::as_str,
    )
}

/// Parser for what an agent may do without asking.
pub(crate) fn permission_mode() -> impl TypedValueParser<Value = PermissionMode> {
    let about = |mode| match mode {
        PermissionMode::Ask => "Asks for everything that is not allowed",
        PermissionMode::AcceptEdits => "Edits files in its own worktree, asks for the rest",
        PermissionMode::Plan => "Changes nothing until its plan is approved",
        PermissionMode::DontAsk => "Denies everything that is not allowed",
        PermissionMode::Auto => "A model decides",
        PermissionMode::Bypass => "Allows everything",
    };
    let all = PermissionMode::ALL.iter();
    let values = all.map(move |mode| PossibleValue::new(mode.as_str()).help(about(*mode)));
    PossibleValuesParser::new(values)
        .try_map(|given| PermissionMode::parse(&given).ok_or("no such mode"))
}
