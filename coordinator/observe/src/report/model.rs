//! The content of a report. Everything here can be written as JSON and read again.
//!
//! Texts are as agents wrote them, without secrets and cut to a length. They may contain anything:
//! a view must make them harmless before it shows them.

use serde::{Deserialize, Serialize};
use swarm::runtime::Usage;

pub use fanout::FileChange;

/// The newest format this version knows.
pub const REPORT_VERSION: u64 = 1;

/// A session, a plan or one agent, from its beginning to its end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// The version of this format.
    pub v: u64,
    /// The id for `ccb runs` and `ccb report`.
    pub id: String,
    /// The team it belongs to.
    pub team: String,
    /// The kind of report.
    pub kind: ReportKind,
    /// The title: the prompt, the plan's name, or the agent's description.
    pub title: String,
    /// The branch finished work goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The first start, RFC 3339.
    pub started_at: String,
    /// The last end; `None` while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The state.
    pub state: ReportState,
    /// The state in words.
    pub words: String,
    /// The figures.
    pub totals: Totals,
    /// The agents over time.
    pub timeline: Timeline,
    /// The tasks, by number or in the order of the plan.
    pub tasks: Vec<TaskPart>,
    /// The agents, oldest first.
    pub agents: Vec<AgentPart>,
    /// The usage of each model, the most expensive first.
    pub models: Vec<ModelPart>,
    /// The landings, oldest first; undone ones are marked.
    pub landings: Vec<LandingPart>,
    /// The remaining actions for a person.
    pub left: Vec<LeftPart>,
    /// Other notes for every reader.
    pub notes: Vec<String>,
    /// The parts that this report leaves out because they are large, in words.
    pub omitted: Vec<String>,
}

/// The kind of report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportKind {
    /// A session with teammates.
    #[default]
    Session,
    /// A session with a coordinator.
    Coordinator,
    /// A plan.
    Fanout,
    /// A board that people and programs share.
    Board,
    /// One agent.
    Agent,
}

impl ReportKind {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Coordinator => "coordinator session",
            Self::Fanout => "fan-out",
            Self::Board => "board",
            Self::Agent => "agent",
        }
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportState {
    /// It is in progress.
    Running,
    /// Everything is done, and nothing is left to land.
    Done,
    /// Done, with work left to land.
    Conflicts,
    /// A task, an agent or a check failed.
    Failed,
    /// It is not in progress, and tasks are open.
    #[default]
    Open,
    /// A budget, a deadline or a quota ended it.
    Stopped,
    /// A person interrupted it, or it was killed.
    Interrupted,
}

impl ReportState {
    /// The mark that represents it.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Running => "◐",
            Self::Done => "✔",
            Self::Conflicts => "⚠",
            Self::Failed => "✘",
            Self::Open => "○",
            Self::Stopped | Self::Interrupted => "⊘",
        }
    }
}

/// The figures of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Totals {
    /// Number of tasks in this report.
    pub tasks: usize,
    /// Number of completed tasks.
    pub done: usize,
    /// Number of failed or parked tasks.
    pub failed: usize,
    /// Number of tasks on the board that were done before, and are not in this report.
    pub earlier_tasks: usize,
    /// Number of started agents.
    pub agents: usize,
    /// Number of failed attempts.
    pub failed_attempts: usize,
    /// Number of landings that were not undone.
    pub landed: usize,
    /// Number of undone landings.
    pub undone: usize,
    /// Duration from the beginning to the end, in ms.
    pub duration_ms: i64,
    /// Total working time of all agents, in ms.
    pub work_ms: i64,
    /// Total waiting time of all agents, in ms.
    pub wait_ms: i64,
    /// Total duration of checks, in ms.
    pub check_ms: i64,
    /// Tokens read, including cached ones.
    pub input_tokens: u64,
    /// Tokens of these that came from the providers' caches.
    pub cache_read_tokens: u64,
    /// Tokens of these that were added to the providers' caches.
    pub cache_write_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars, as reported by providers.
    pub cost_usd: f64,
    /// Tokens of their parents' conversations that forks found in the cache.
    pub forked_tokens: u64,
    /// US dollars saved compared with fresh agents that get the same prompt.
    pub saved_usd: f64,
}

impl Totals {
    /// The usage.
    pub fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens,
            cache_read_tokens: self.cache_read_tokens,
            cache_write_tokens: self.cache_write_tokens,
            output_tokens: self.output_tokens,
            cost_usd: self.cost_usd,
            forked_tokens: self.forked_tokens,
            saved_usd: self.saved_usd,
            ..Usage::default()
        }
    }
}

/// The agents over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Timeline {
    /// The start, in ms since the epoch.
    pub from_ms: i64,
    /// The end, in ms since the epoch.
    pub to_ms: i64,
    /// One row for each agent, in the order in which they began.
    pub rows: Vec<Row>,
    /// The chain of tasks that decided the total duration, in order.
    pub critical_path: Vec<CriticalStep>,
}

/// One agent over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Row {
    /// The agent's id.
    pub agent: String,
    /// Its activities, without gaps or overlaps.
    pub spans: Vec<Span>,
}

/// An activity of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The kind of activity.
    pub what: SpanKind,
    /// The start, in ms since the epoch.
    pub from_ms: i64,
    /// The end, in ms since the epoch.
    pub to_ms: i64,
}

/// The kind of an agent's activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// It starts: its worktree is made, its program is started.
    Starting,
    /// It works.
    Working,
    /// It waits for an answer, or for the next message.
    Waiting,
    /// Its work is being checked.
    Check,
}

/// A task on the chain that decided the total duration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CriticalStep {
    /// The task's id in the report.
    pub task: String,
    /// Time it was ready but had not started, in ms.
    pub waited_ms: i64,
    /// Its duration in ms.
    pub took_ms: i64,
}

/// One task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPart {
    /// Its number, or its id in the plan.
    pub id: String,
    /// The subject.
    pub subject: String,
    /// The description.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The state: `done`, `failed`, `parked`, `open`, `running`, `skipped`, `unreadable`.
    pub state: String,
    /// The state in a sentence.
    pub words: String,
    /// The reason why it is unproven; `None` if a check passed, or if it is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// The tasks it depended on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The agent that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The start of the first attempt, in ms since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<i64>,
    /// The end of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<i64>,
    /// Number of attempts.
    pub tries: usize,
    /// The failed attempts, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptPart>,
    /// The last run of the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckPart>,
    /// The files it changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Its changes, as `git diff` prints them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Excerpt>,
    /// The landing state: `landed`, `undone`, `waiting`, `nothing`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub landing: String,
    /// Tokens of all attempts.
    pub tokens: u64,
    /// US dollars of all attempts.
    pub cost_usd: f64,
}

/// A text that may have been cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Excerpt {
    /// The text, or a part of it.
    pub text: String,
    /// Number of missing bytes; of a check's output at the beginning, else at the end.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A failed attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttemptPart {
    /// The run that made it.
    pub run: String,
    /// The status in one word.
    pub status: String,
    /// The error, on one line.
    pub what: String,
    /// The end of its output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub printed: String,
    /// The time, RFC 3339.
    pub at: String,
    /// True if it counts against the task.
    pub counts: bool,
}

/// A check that was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckPart {
    /// For the shell.
    pub command: String,
    /// True if it passed.
    pub passed: bool,
    /// The result in words.
    pub words: String,
    /// The first failure, if it passed only when repeated on the same commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flaky: Option<String>,
    /// The duration in ms.
    pub duration_ms: u64,
    /// The end of what it printed.
    pub output: Excerpt,
}

/// One agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentPart {
    /// Its id.
    pub id: String,
    /// Its address.
    pub name: String,
    /// Its definition.
    pub agent_type: String,
    /// The runtime.
    pub runtime: String,
    /// The model; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The task it was started for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Its state in one word.
    pub state: String,
    /// Its result or its error, cut.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// Other notes of the engine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Number of starts and resumes.
    pub lives: u32,
    /// True if it is a copy of another agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// Tokens read, including cached ones.
    pub input_tokens: u64,
    /// Tokens of these that came from the provider's cache.
    pub cache_read_tokens: u64,
    /// Tokens of these that were added to the provider's cache.
    pub cache_write_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// Number of tool calls.
    pub tool_uses: u64,
    /// For a fork: tokens of its parent's conversation that it found in the cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub forked_tokens: u64,
    /// US dollars saved compared with a fresh agent that gets the same prompt.
    #[serde(skip_serializing_if = "is_free")]
    pub saved_usd: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_free(usd: &f64) -> bool {
    *usd <= 0.0
}

/// The usage of one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelPart {
    /// The model, or the runtime if no model is known.
    pub name: String,
    /// Number of agents that used it.
    pub agents: usize,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
}

/// A landing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LandingPart {
    /// The id for `ccb undo`, such as `L7`; empty if a whole plan landed.
    pub id: String,
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The branch.
    pub into: String,
    /// The new commit of the branch.
    pub commit: String,
    /// The time, RFC 3339.
    pub at: String,
    /// The time of its undo, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_at: Option<String>,
}

/// A remaining action for a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeftPart {
    /// A description.
    pub what: String,
    /// The command that resolves it.
    pub command: String,
}
