//! The agents: the director decides which task is done, its crew makes the agent for it.

use std::collections::BTreeMap;
use std::time::Duration;

use runs::Spawn;
use store::name::Name;
use taskboard::Task;

/// A slot in which one agent works at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// The name under which its agents own tasks; if `None`, each agent uses its id.
    pub name: Option<Name>,
    /// True if its agents run commands and nothing else.
    pub commands_only: bool,
    /// The runtime of its agents, if not all slots have the same one.
    pub runtime: Option<String>,
}

/// A task that is to be done now.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// The task.
    pub task: &'a Task,
    /// The slot that does it.
    pub seat: &'a Seat,
    /// The commit to start from, which contains the work the task builds on; `None` if the task
    /// gets no worktree.
    pub base: Option<String>,
    /// Counts from 1.
    pub attempt: usize,
    /// Why the last attempt failed.
    pub last_failure: Option<String>,
}

/// The policy of one task, where it differs from the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// Maximum attempts; `None` means the same as other tasks.
    pub attempts: Option<usize>,
    /// True if all attempts are made even if each fails in the same way.
    pub all_attempts: bool,
    /// Time limit of the check; `None` means the same as other tasks.
    pub verify_timeout: Option<Duration>,
    /// Number of times a failed check is repeated on the same commit.
    pub check_retries: u32,
    /// The ref that keeps the result, so that the worktree can be used again.
    pub keep_as: Option<String>,
    /// Files the agent must not change.
    pub protect: Vec<String>,
}

/// Makes the agent for a task: its runtime, model, tools and environment.
pub trait Crew: Send + Sync {
    /// The agent for `job`. The director fills in what it decides itself: the task, who is notified
    /// of the end, and the required proof.
    fn agent_for(&self, job: &Job<'_>) -> Result<Spawn, String>;

    /// The runtime of each agent type that has one.
    fn runtimes_of_types(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// The policy of this task.
    fn terms(&self, _task: &Task) -> Terms {
        Terms::default()
    }
}
