//! What a view is given to draw: everything that runs, at one moment.
//!
//! All text here is safe to print: [`store::text`] has replaced what would steer a terminal or
//! reorder its text, and what is one line in a view is one line here. A view only cuts it to its
//! width. Times are ms since the epoch.

use std::sync::Arc;

use swarm::run::RunState;
use taskboard::TaskId;

use super::progress::{AttemptScene, CheckState, Mark, RunProgress};
pub use crate::overview::{Attention, Counts, Kind, Need};
pub use landing::LandState;

/// Everything that runs in a repository or left something there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scene {
    /// When it was looked at.
    pub at_ms: i64,
    /// The teams that belong to the repository, those at work first. Teams that had nothing to
    /// show when the view began are among them only if the workplace names them.
    pub teams: Vec<TeamScene>,
    /// What needs a person in any of them, the most urgent first.
    pub attention: Vec<Attention>,
    /// What could not be read and why, one line each.
    pub troubles: Vec<String>,
}

impl Scene {
    /// The team of this name.
    pub fn team(&self, name: &str) -> Option<&TeamScene> {
        self.teams.iter().find(|team| team.name == name)
    }
}

/// Whether somebody directs a team.
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
    /// It was there, and is gone: deleted, or its home was removed. The rest of the scene is as
    /// it was last seen.
    Vanished,
}

/// The process that directs a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectorScene {
    /// In words, as far as the system tells: `pid 1234 (ccb)`.
    pub who: String,
    /// It writes a format that this version does not know completely: what is shown may be
    /// incomplete, and changes may be refused. The number of that format.
    pub newer: Option<u64>,
}

/// Who leads a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadScene {
    /// The person at the terminal. What is said to the lead becomes a task.
    Person,
    /// An agent; its id once it was started. What is said to the lead is mail to it.
    Agent(Option<String>),
    /// Nobody: the team has no session.
    Nobody,
}

/// One team.
#[derive(Debug, Clone, PartialEq)]
pub struct TeamScene {
    /// The name, also what acts are addressed with.
    pub name: String,
    /// What it is there for.
    pub kind: Kind,
    /// Whether somebody directs it.
    pub life: TeamLife,
    /// Who directs it, while somebody does.
    pub director: Option<DirectorScene>,
    /// Who leads it.
    pub lead: LeadScene,
    /// What its session is about, all of it; may have several lines.
    pub prompt: Option<String>,
    /// The branch finished work lands on, where the session says so.
    pub into: Option<String>,
    /// `auto`, `ask` or `never`: when finished work lands. Empty without a session.
    pub merge: String,
    /// When its session began.
    pub since_ms: Option<i64>,
    /// When its session was ended.
    pub ended_ms: Option<i64>,
    /// All agents of the present session, oldest first, and those of earlier ones that still run.
    /// Those that have ended stay, with how and when.
    pub agents: Vec<AgentScene>,
    /// How many agents ended before those in `agents`, and are left out.
    pub earlier_agents: usize,
    /// The board, by number; without internal tasks. The same one as long as nothing on it changes, so
    /// that looking at thousands of tasks costs nothing then.
    pub tasks: Arc<Vec<TaskScene>>,
    /// How many tasks are in each state.
    pub counts: Counts,
    /// What waits for what.
    pub graph: Arc<GraphScene>,
    /// The last messages and requests, oldest first.
    pub mail: Vec<MailScene>,
    /// Whether it gets somewhere.
    pub progress: RunProgress,
    /// What all agents have used together, and what they may.
    pub totals: Totals,
    /// What needs a person here; all of them are in [`Scene::attention`] as well.
    pub attention: Vec<Attention>,
    /// What could not be read and why, one line each.
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
    /// How it is addressed. Several runs may have had it one after the other.
    pub name: String,
    /// Its definition, such as `general-purpose`.
    pub agent_type: String,
    /// What runs it: `claude`, `shell`, …
    pub runtime: String,
    /// The model, if it said or was told which.
    pub model: Option<String>,
    /// The host it is on, if that is another machine: then no more is known of it than what the
    /// roster and the board say.
    pub machine: Option<String>,
    /// How far it is. One that is not supervised and never ended is [`RunState::Lost`].
    pub state: RunState,
    /// Somebody supervises it.
    pub alive: bool,
    /// It leads the team.
    pub leads: bool,
    /// It lives on between tasks and can be written to.
    pub teammate: bool,
    /// It reads messages; a shell command does not.
    pub reads_mail: bool,
    /// The task it was started for.
    pub task: Option<TaskId>,
    /// What it does, on one line: the task's `activeForm`, else its own description.
    pub doing: String,
    /// When its present life began.
    pub since_ms: i64,
    /// When that life ended.
    pub ended_ms: Option<i64>,
    /// How it ended, on one line: the error, or the first line of the result.
    pub outcome: Option<String>,
    /// Tokens in all its lives.
    pub tokens: u64,
    /// US dollars in all its lives, as far as the provider says.
    pub cost_usd: f64,
    /// How often it used a tool, in all its lives.
    pub tool_uses: u64,
    /// What it said, did or printed last, on one line.
    pub last: Option<String>,
    /// When that was.
    pub last_ms: Option<i64>,
    /// For how long it has shown nothing, if that is long enough to be worth a look, in ms; whole
    /// minutes.
    pub silent_ms: Option<i64>,
    /// Why it gets nowhere, if the engine has noticed: it waits for input, for example.
    pub stalled: Option<String>,
    /// It repeats itself, or changes nothing; each with the reason in words.
    pub marks: Vec<Mark>,
    /// The colour its definition asks for: one of [`team::COLORS`].
    pub color: Option<String>,
    /// Who started it and is told of its end.
    pub parent: String,
    /// It continues its parent's conversation.
    pub fork: bool,
    /// For a fork, what it was told to do; may have several lines.
    pub order: Option<String>,
    /// The name of its worktree.
    pub worktree: Option<String>,
    /// The branch of that worktree.
    pub branch: Option<String>,
}

/// How far a task is, as a person sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskState {
    /// Somebody works on it.
    InProgress,
    /// Somebody could begin it.
    Ready,
    /// It belongs to somebody who has not begun.
    Assigned,
    /// It waits for other tasks.
    Blocked,
    /// It failed too often and waits for a person.
    Parked,
    /// Its agent says it is done, and its check has not been run yet.
    Reported,
    /// Done.
    Completed,
    /// Its file cannot be read.
    Unreadable,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskScene {
    /// Its number.
    pub id: TaskId,
    /// What it is about, on one line.
    pub subject: String,
    /// All that is said about it; may have several lines.
    pub description: String,
    /// The same as something that is being done.
    pub active_form: String,
    /// How far it is.
    pub state: TaskState,
    /// Who works on it, or will.
    pub owner: Option<String>,
    /// The open tasks it waits for.
    pub blocked_by: Vec<TaskId>,
    /// Why it is parked or cannot be read, on one line.
    pub why: Option<String>,
    /// The higher, the sooner.
    pub priority: i64,
    /// It runs this command and needs no model.
    pub command: Option<String>,
    /// The command that proves it.
    pub check: Option<String>,
    /// Whether that has failed or passed.
    pub check_state: CheckState,
    /// Why nothing proves that it is done, if it is completed, on one line.
    pub unchecked: Option<String>,
    /// The attempts that came to nothing, oldest first, each with what changed since the last.
    pub attempts: Vec<AttemptScene>,
    /// The same failure again and nothing changed in between: how often in a row.
    pub stuck: Option<usize>,
    /// What became of the work.
    pub landing: LandState,
    /// The worktree with the work.
    pub worktree: Option<String>,
    /// When it was completed, if the board's history still says so.
    pub done_ms: Option<i64>,
}

/// What waits for what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphScene {
    /// `(a, b)`: `b` waits for `a`, whether or not `a` is done.
    pub edges: Vec<(TaskId, TaskId)>,
    /// The tasks in the order in which they can be done: each level needs only those before it.
    pub levels: Vec<Vec<TaskId>>,
    /// The longest chain of open tasks.
    pub critical_path: Vec<TaskId>,
    /// Tasks that wait for each other, which only other tools can bring about.
    pub cycles: Vec<Vec<TaskId>>,
}

/// A message, or a request.
#[derive(Debug, Clone, PartialEq)]
pub struct MailScene {
    /// Unique.
    pub id: String,
    /// Who sent it.
    pub from: String,
    /// Who is to read it; `*` for everyone.
    pub to: String,
    /// `message`, `permission_request`, …
    pub kind: String,
    /// When.
    pub sent_ms: i64,
    /// What it says on one line.
    pub summary: String,
    /// All of it, cut at 16 KiB; may have several lines.
    pub text: String,
}

/// What the agents of a team have used together, and what they may.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Tokens.
    pub tokens: u64,
    /// US dollars, as far as providers say.
    pub cost_usd: f64,
    /// How often a tool was used.
    pub tool_uses: u64,
    /// How many tokens they may use.
    pub token_limit: Option<u64>,
    /// How many US dollars they may cost.
    pub cost_limit_usd: Option<f64>,
    /// They have used up what they may: which limit, in words.
    pub spent: Option<String>,
    /// A provider refuses: until when everybody waits, and what it said.
    pub paused: Option<(i64, String)>,
}
