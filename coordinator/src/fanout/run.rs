//! Running a plan: what the command line asks for, and who is told.

use std::path::PathBuf;
use std::time::Duration;

use super::error::FanoutError;
use super::event::FanoutEvent;
use super::report::Report;
use super::shard::Shard;
use super::task::PlannedTask;

/// What happens with proven results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Land {
    /// They are patches in the results.
    #[default]
    None,
    /// Each group is a branch of its own.
    Branch,
    /// All of them go to one branch, checked together.
    Merge,
}

/// How to run a plan.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// What it is called in reports.
    pub name: String,
    /// The commit everything starts from, by its full name.
    pub base: String,
    /// How many tasks run at once.
    pub jobs: usize,
    /// After so many failures nothing new is started.
    pub max_failures: Option<usize>,
    /// So many tasks run first; the rest only if they all succeed.
    pub canary: Option<usize>,
    /// What happens with proven results.
    pub land: Land,
    /// Nobody is there to answer: no questions, no trust but what was given, nothing is pushed.
    pub ci: bool,
    /// Where the results go.
    pub out: PathBuf,
    /// Which part of the plan this is; `tasks` has only its tasks.
    pub shard: Option<Shard>,
    /// All of it may take so long.
    pub deadline: Option<Duration>,
    /// All of it may cost so many US dollars.
    pub budget_usd: Option<f64>,
    /// What was proven earlier is done again.
    pub fresh: bool,
}

/// Who is told what happens.
pub trait Events {
    /// Something happened.
    fn event(&mut self, event: &FanoutEvent);
}

/// Runs `tasks` to their end and says what became of them.
pub fn run(
    tasks: Vec<PlannedTask>,
    options: &RunOptions,
    events: &mut dyn Events,
) -> Result<Report, FanoutError> {
    // The engine takes over from here.
    let _ = (tasks, options, events);
    Err(FanoutError::NotYet(
        "this version reads plans, but does not run them yet; --dry-run shows what it would do",
    ))
}
