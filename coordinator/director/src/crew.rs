//! Who works: the director decides what is done, its crew what an agent for it is like.

use std::collections::BTreeMap;
use std::time::Duration;

use runs::Spawn;
use store::name::Name;
use taskboard::Task;

/// A place at which one agent works at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// By what name its agents own tasks; without one each has its id.
    pub name: Option<Name>,
    /// Its agents run commands and nothing else.
    pub commands_only: bool,
    /// What runs its agents, where not all are alike.
    pub runtime: Option<String>,
}

/// A task that is to be done now.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// The task.
    pub task: &'a Task,
    /// Who is to do it.
    pub seat: &'a Seat,
    /// The commit to start from, if it is done in a tree of its own: the work the task builds
    /// on is in it.
    pub base: Option<String>,
    /// Counts from 1.
    pub attempt: usize,
    /// Why the last attempt failed.
    pub last_failure: Option<String>,
}

/// What holds for one task and not for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// How often it is tried; none means as often as others.
    pub attempts: Option<usize>,
    /// It is tried as often as that even if it fails the same way each time.
    pub all_attempts: bool,
    /// How long its check may take; none means as long as others'.
    pub verify_timeout: Option<Duration>,
    /// How often its check is run again on the same commit when it fails.
    pub check_retries: u32,
    /// Where its result is kept, so that its tree can be used again.
    pub keep_as: Option<String>,
    /// Files it must not change.
    pub protect: Vec<String>,
}

/// Knows what an agent for a task is like: its runtime, model, tools and surroundings.
pub trait Crew: Send + Sync {
    /// The agent for `job`. What the director itself decides (the task, who is told, what has to
    /// be shown) it fills in afterwards.
    fn agent_for(&self, job: &Job<'_>) -> Result<Spawn, String>;

    /// The runtimes that types of agents are for, by type.
    fn runtimes_of_types(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// What holds for this task and not for all.
    fn terms(&self, _task: &Task) -> Terms {
        Terms::default()
    }
}
