use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use runs::env;

use coordinator::session::{Mates, Merge, Request};
use store::duration::DurationFormat;
use store::settings::MatesIn;

use swarm::definitions::PermissionMode;

use worktrees::MergeStrategy;

use crate::args::{mates_in, merge_strategy, one_of, permission_mode};

const VERIFY_TIMEOUT: DurationFormat = DurationFormat::SECONDS
    .at_least(Duration::from_secs(1))
    .at_most(Duration::from_secs(86_400));

const MOST_MATES: u16 = 500;

/// Parses `4`, or `claude=2,shell=4`.
fn mates(text: &str) -> Result<Mates, String> {
    let number = |text: &str| {
        let number = text.trim().parse::<u16>().ok();
        let number = number.filter(|number| (1..=MOST_MATES).contains(number));
        number.ok_or_else(|| format!("{text:?} is not a number from 1 to {MOST_MATES}"))
    };
    if !text.contains('=') {
        return number(text).map(Mates::Number);
    }
    let mut all = BTreeMap::new();
    for part in text.split(',') {
        let Some((name, count)) = part.split_once('=') else {
            return Err(format!("{part:?} does not say how many: write NAME=N"));
        };
        if all.insert(name.trim().to_owned(), number(count)?).is_some() {
            return Err(format!("{:?} is there twice", name.trim()));
        }
    }
    if all.values().map(|count| u32::from(*count)).sum::<u32>() > u32::from(MOST_MATES) {
        return Err(format!("no more than {MOST_MATES} mates work at once"));
    }
    Ok(Mates::ByRuntime(all))
}

/// The arguments of a session; without a subcommand.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sessions (ccb --team NAME [PROMPT])")]
pub(crate) struct SessionArgs {
    /// What the team should do
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Let the lead only plan, delegate and review; without --team in a team of the
    /// session's own [also: $CLAUDE_CODE_COORDINATOR_MODE=1 with a PROMPT]
    #[arg(long)]
    pub(crate) coordinator: bool,
    /// A file with the coordinator's prompt, instead of the usual one
    #[arg(long, value_name = "FILE")]
    pub(crate) coordinator_prompt: Option<std::path::PathBuf>,
    /// How many mates work at once: a number, or a number per runtime, such as claude=2,shell=4
    /// [default: 4]
    #[arg(long, value_name = "N", value_parser = mates)]
    pub(crate) mates: Option<Mates>,
    /// What runs the mates: shell, native, claude, codex, … [default: agents.defaultRuntime, else
    /// what is installed, else native if a key is set, else shell]
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Where mates on native run: each in processes of its own, or all in one
    /// [default: agents.matesIn, else own]
    #[arg(long, value_name = "WHERE", value_parser = mates_in())]
    pub(crate) mates_in: Option<MatesIn>,
    /// What runs the lead; `me` is the person at the terminal [default: the mates' runtime if
    /// that is a model]
    #[arg(long, value_name = "NAME")]
    pub(crate) lead: Option<String>,
    /// The model mates use
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// What mates may do without asking [default: what their definitions say]
    #[arg(long, value_name = "MODE", value_parser = permission_mode())]
    pub(crate) permission_mode: Option<PermissionMode>,
    /// When finished work lands: at once, at the end if you say so, or not at all
    /// [default: ask at a terminal, else auto]
    #[arg(long, value_name = "HOW", value_parser = one_of(Merge::ALL, Merge::as_str))]
    pub(crate) merge: Option<Merge>,
    /// The branch to land on [default: the one that is checked out]
    #[arg(long, value_name = "BRANCH")]
    pub(crate) into: Option<String>,
    /// What the branch gets: the commits and a merge, one commit, or the commits made again on
    /// top [default: worktree.mergeStrategy, else merge]
    #[arg(long, value_name = "HOW", value_parser = merge_strategy())]
    pub(crate) strategy: Option<MergeStrategy>,
    /// A command that must succeed on everything that lands, besides each task's own check
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Option<String>,
    /// After how many failed attempts a task is parked [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) attempts: Option<u16>,
    /// How long a check may take, such as 90s or 10m [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| VERIFY_TIMEOUT.read(text))]
    pub(crate) verify_timeout: Option<Duration>,
    /// Start no more tasks after N have failed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_failures: Option<u16>,
    /// Let mates work in this directory instead of worktrees of their own
    #[arg(long)]
    pub(crate) no_worktrees: bool,
    /// Print lines at a terminal instead of the live view
    #[arg(long)]
    pub(crate) plain: bool,
    /// Keep the session open at a terminal when the work is done
    #[arg(long)]
    pub(crate) stay: bool,
}

impl SessionArgs {
    /// The request for a session, as the library takes it.
    pub(crate) fn request(&self) -> Request {
        Request {
            prompt: self.prompt(),
            coordinator: self.coordinates(),
            only_coordinator: self.coordinator,
            coordinator_prompt: self.coordinator_prompt.clone(),
            mates: self.mates.clone(),
            runtime: self.runtime.clone(),
            mates_in: self.mates_in,
            lead: self.lead.clone(),
            model: self.model.clone(),
            permission_mode: self.permission_mode,
            merge: self.merge,
            attended: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
            into: self.into.clone(),
            strategy: self.strategy,
            verify: self.verify.clone(),
            attempts: self.attempts,
            verify_timeout: self.verify_timeout,
            max_failures: self.max_failures,
            no_worktrees: self.no_worktrees,
            stay: self.stay,
        }
    }

    /// The prompt; `None` if there is none.
    fn prompt(&self) -> Option<String> {
        let text = self.prompt.join(" ");
        (!text.trim().is_empty()).then_some(text)
    }

    /// True if the flag or the environment asks for a coordinator.
    pub(crate) fn coordinates(&self) -> bool {
        let on =
            |value: String| !matches!(value.to_lowercase().as_str(), "0" | "false" | "no" | "off");
        self.coordinator
            || (!self.prompt.is_empty() && env::var(env::COORDINATOR_MODE).is_some_and(on))
    }

    /// True if no argument was given that only a session understands.
    pub(crate) fn is_empty(&self) -> bool {
        self.given().is_empty()
    }

    /// The given arguments that only a session understands.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("PROMPT", !self.prompt.is_empty()),
            ("--coordinator", self.coordinator),
            ("--coordinator-prompt", self.coordinator_prompt.is_some()),
            ("--mates", self.mates.is_some()),
            ("--runtime", self.runtime.is_some()),
            ("--mates-in", self.mates_in.is_some()),
            ("--lead", self.lead.is_some()),
            ("--model", self.model.is_some()),
            ("--permission-mode", self.permission_mode.is_some()),
            ("--merge", self.merge.is_some()),
            ("--into", self.into.is_some()),
            ("--strategy", self.strategy.is_some()),
            ("--verify", self.verify.is_some()),
            ("--attempts", self.attempts.is_some()),
            ("--verify-timeout", self.verify_timeout.is_some()),
            ("--max-failures", self.max_failures.is_some()),
            ("--no-worktrees", self.no_worktrees),
            ("--plain", self.plain),
            ("--stay", self.stay),
        ];
        let given = all.into_iter().filter(|(_, given)| *given);
        given.map(|(name, _)| name).collect()
    }
}
