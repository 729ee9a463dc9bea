//! The input of a view: everything that runs, at one moment.
//!
//! All text here is safe to print: [`store::text`] has replaced sequences that would steer a
//! terminal or reorder its text, and each line of a view is one line here. A view only cuts it to
//! its width. Times are ms since the epoch.

use std::sync::Arc;

use swarm::run::RunState;
use taskboard::TaskId;

use super::progress::{AttemptScene, CheckState, Mark, RunProgress};
pub use crate::overview::{Attention, Counts, Kind, Need};
pub use landing::LandState;

/// Everything that runs in a repository or left something there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scene {
    /// The time of the look.
    pub at_ms: i64,
    /// The teams that belong to the repository, those at work first. Teams that had nothing to
    /// show when the view began are among them only if the workplace names them.
    pub teams: Vec<TeamScene>,
    /// All items that need a person, the most urgent first.
    pub attention: Vec<Attention>,
    /// The read errors, one line each.
    pub troubles: Vec<String>,
}

impl Scene {
    /// The team of this name.
    pub fn team(&self, name: &str) -> Option<&TeamScene> {
        self.teams.iter().find(|team| team.name == name)
    }
}

/// The state of a team's director.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TeamLife {
    /// A process directs it now.
    Running,
    /// Its session was ended.
    Ended,
    /// Its session was killed with work left, and can be resumed.
    Interrupted,
    /// It has no session: people and programs share its board.
    Open,
    /// The team is gone: deleted, or its home was removed. The rest of the scene is from the last
    /// look.
    Vanished,
}

/// The process that directs a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectorScene {
    /// A description, as far as the system knows it: `pid 1234 (ccb)`.
    pub who: String,
    /// The number of the file format, if this version does not know it completely: the scene may be
    /// incomplete, and changes may be refused.
    pub newer: Option<u64>,
}

/// The lead of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadScene {
    /// The person at the terminal. A message to the lead becomes a task.
    Person,
    /// An agent, with its id once it has started. A message to the lead is mail to it.
    Agent(Option<String>),
    /// The team has no session, and so no lead.
    Nobody,
}

/// One team.
#[derive(Debug, Clone, PartialEq)]
pub struct TeamScene {
    /// The name, also the address of acts.
    pub name: String,
    /// The purpose.
    pub kind: Kind,
    /// The state of its director.
    pub life: TeamLife,
    /// The director; `None` if no process directs it.
    pub director: Option<DirectorScene>,
    /// The lead.
    pub lead: LeadScene,
    /// The prompt of its session; may have several lines.
    pub prompt: Option<String>,
    /// The branch finished work lands on; `None` if the session names none.
    pub into: Option<String>,
    /// `auto`, `ask` or `never`: when finished work lands. Empty without a session.
    pub merge: String,
    /// The start of its session.
    pub since_ms: Option<i64>,
    /// The end of its session.
    pub ended_ms: Option<i64>,
    /// All agents of the present session, oldest first, and those of earlier ones that still run.
    /// Ended agents are kept, with time and outcome.
    pub agents: Vec<AgentScene>,
    /// Number of earlier ended agents that are not in `agents`.
    pub earlier_agents: usize,
    /// The board, by number; without internal tasks. The same value as long as the board does not
    /// change, so that a look at thousands of tasks costs nothing then.
    pub tasks: Arc<Vec<TaskScene>>,
    /// Number of tasks in each state.
    pub counts: Counts,
    /// The dependencies of the tasks.
    pub graph: Arc<GraphScene>,
    /// The last messages and requests, oldest first.
    pub mail: Vec<MailScene>,
    /// The progress, with estimates.
    pub progress: RunProgress,
    /// The total usage of all agents, and its limits.
    pub totals: Totals,
    /// The items of this team that need a person; [`Scene::attention`] contains them too.
    pub attention: Vec<Attention>,
    /// The read errors, one line each.
    pub troubles: Vec<String>,
}

impl TeamScene {
    /// The agent with this id or name; of several with one name the one that runs, else the last.
    pub fn agent(&self, given: &str) -> Option<&AgentScene> {
        let meant = |agent: &&AgentScene| agent.id == given || agent.name == given;
        let alive = self.agents.iter().filter(meant).rfind(|agent| agent.alive);
        alive.or_else(|| self.agents.iter().rfind(meant))
    }

    /// The task of this number.
    pub fn task(&self, id: TaskId) -> Option<&TaskScene> {
        self.tasks.iter().find(|task| task.id == id)
    }
}

/// One agent, while it runs and after.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentScene {
    /// Unique in its team; names its run.
    pub id: String,
    /// Its address. Several runs may have had it one after another.
    pub name: String,
    /// Its definition, such as `general-purpose`.
    pub agent_type: String,
    /// The runtime: `claude`, `shell`, …
    pub runtime: String,
    /// The model, if it is known.
    pub model: Option<String>,
    /// The host it is on, if that is another machine: then only the roster and the board describe
    /// it.
    pub machine: Option<String>,
    /// Its state. An agent that is not supervised and has no recorded end is [`RunState::Lost`].
    pub state: RunState,
    /// True if a process supervises it.
    pub alive: bool,
    /// True if it leads the team.
    pub leads: bool,
    /// True if it lives on between tasks and reads messages in between.
    pub teammate: bool,
    /// True if it reads messages; a shell command does not.
    pub reads_mail: bool,
    /// The task it was started for.
    pub task: Option<TaskId>,
    /// Its work, on one line: the task's `activeForm`, else its own description.
    pub doing: String,
    /// The start of its present life.
    pub since_ms: i64,
    /// The end of that life.
    pub ended_ms: Option<i64>,
    /// The outcome, on one line: the error, or the first line of the result.
    pub outcome: Option<String>,
    /// Tokens in all its lives.
    pub tokens: u64,
    /// US dollars in all its lives, as reported by the provider.
    pub cost_usd: f64,
    /// Number of tool calls in all its lives.
    pub tool_uses: u64,
    /// Its last message, action or output, on one line.
    pub last: Option<String>,
    /// The time of `last`.
    pub last_ms: Option<i64>,
    /// The time without a sign of life, in ms, rounded to minutes; `None` if it is short.
    pub silent_ms: Option<i64>,
    /// The reason of a stall that the engine noticed, such as waiting for input.
    pub stalled: Option<String>,
    /// Its warnings: it repeats itself, or changes nothing.
    pub marks: Vec<Mark>,
    /// The colour its definition asks for: one of [`team::COLORS`].
    pub color: Option<String>,
    /// The agent that started it and is notified of its end.
    pub parent: String,
    /// True if it continues its parent's conversation.
    pub fork: bool,
    /// For a fork, its own order; may have several lines.
    pub order: Option<String>,
    /// The name of its worktree.
    pub worktree: Option<String>,
    /// The branch of that worktree.
    pub branch: Option<String>,
}

/// The state of a task, as a person sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskState {
    /// An agent or a person works on it.
    InProgress,
    /// It can start.
    Ready,
    /// It has an owner that has not begun.
    Assigned,
    /// It waits for other tasks.
    Blocked,
    /// It failed too often and waits for a person.
    Parked,
    /// Its agent says it is done, and its check has not been run yet.
    Reported,
    /// Completed.
    Completed,
    /// Its file cannot be read.
    Unreadable,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskScene {
    /// Its number.
    pub id: TaskId,
    /// The subject, on one line.
    pub subject: String,
    /// The description; may have several lines.
    pub description: String,
    /// The subject as an action in progress.
    pub active_form: String,
    /// The state.
    pub state: TaskState,
    /// The agent or person that works on it, or will.
    pub owner: Option<String>,
    /// The open tasks it waits for.
    pub blocked_by: Vec<TaskId>,
    /// The reason why it is parked or cannot be read, on one line.
    pub why: Option<String>,
    /// A task with a higher number starts first.
    pub priority: i64,
    /// The command that does it without a model.
    pub command: Option<String>,
    /// The command that proves it.
    pub check: Option<String>,
    /// The state of its check.
    pub check_state: CheckState,
    /// The reason why a completed task is unproven, on one line.
    pub unchecked: Option<String>,
    /// The failed attempts, oldest first, each with the difference from the one before.
    pub attempts: Vec<AttemptScene>,
    /// Number of consecutive equal failures without a change in between.
    pub stuck: Option<usize>,
    /// The landing state of its work.
    pub landing: LandState,
    /// The worktree with the work.
    pub worktree: Option<String>,
    /// The time it was completed, if the board's history still has it.
    pub done_ms: Option<i64>,
}

/// The dependencies of the tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphScene {
    /// `(a, b)`: `b` waits for `a`, whether or not `a` is done.
    pub edges: Vec<(TaskId, TaskId)>,
    /// The tasks in the order in which they can be done: each level needs only those before it.
    pub levels: Vec<Vec<TaskId>>,
    /// The longest chain of open tasks.
    pub critical_path: Vec<TaskId>,
    /// Tasks that wait for each other, which only other tools can create.
    pub cycles: Vec<Vec<TaskId>>,
}

/// A message, or a request.
#[derive(Debug, Clone, PartialEq)]
pub struct MailScene {
    /// Unique.
    pub id: String,
    /// The sender.
    pub from: String,
    /// The recipient; `*` for everyone.
    pub to: String,
    /// `message`, `permission_request`, …
    pub kind: String,
    /// The time.
    pub sent_ms: i64,
    /// A summary on one line.
    pub summary: String,
    /// All of it, cut at 16 KiB; may have several lines.
    pub text: String,
}

/// The total usage of a team's agents, and its limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Tokens.
    pub tokens: u64,
    /// US dollars, as reported by providers.
    pub cost_usd: f64,
    /// Number of tool calls.
    pub tool_uses: u64,
    /// Maximum number of tokens.
    pub token_limit: Option<u64>,
    /// Maximum cost in US dollars.
    pub cost_limit_usd: Option<f64>,
    /// The exhausted limit, in words.
    pub spent: Option<String>,
    /// A provider refuses calls: the end of the pause, and its message.
    pub paused: Option<(i64, String)>,
}
