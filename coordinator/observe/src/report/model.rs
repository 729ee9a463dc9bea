//! What a report says. Everything here can be written as JSON and read again.
//!
//! Texts are as agents wrote them, without secrets and cut to a length. They may hold anything:
//! whoever shows them has to make them harmless first.

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
    /// By what `ccb runs` and `ccb report` know it.
    pub id: String,
    /// The team it belongs to.
    pub team: String,
    /// What it is a report of.
    pub kind: ReportKind,
    /// What it was about: the prompt, the plan's name, or the agent's description.
    pub title: String,
    /// The branch finished work goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// When the first of it began, RFC 3339.
    pub started_at: String,
    /// When the last of it ended; none while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// How it stands or ended.
    pub state: ReportState,
    /// The same in words.
    pub words: String,
    /// The figures.
    pub totals: Totals,
    /// Who did what when.
    pub timeline: Timeline,
    /// The tasks, by number or in the order of the plan.
    pub tasks: Vec<TaskPart>,
    /// The agents, oldest first.
    pub agents: Vec<AgentPart>,
    /// What each model used, the most expensive first.
    pub models: Vec<ModelPart>,
    /// What landed, oldest first; those that were undone are marked.
    pub landings: Vec<LandingPart>,
    /// What is left to do for somebody.
    pub left: Vec<LeftPart>,
    /// What else everybody should know.
    pub notes: Vec<String>,
    /// What was left out of this report because it is large, in words.
    pub omitted: Vec<String>,
}

/// What a report is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportKind {
    /// A session with mates.
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
    /// As people say it.
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

/// How a run stands or ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportState {
    /// Somebody works on it.
    Running,
    /// Everything is done, and nothing is left to land.
    Done,
    /// Done, with something left to land.
    Conflicts,
    /// A task, an agent or a check failed.
    Failed,
    /// Nobody works on it, and tasks are open.
    #[default]
    Open,
    /// A budget, a deadline or a quota ended it.
    Stopped,
    /// Somebody interrupted or killed it.
    Interrupted,
}

impl ReportState {
    /// The mark that stands for it.
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
    /// Tasks in this report.
    pub tasks: usize,
    /// Of these, done.
    pub done: usize,
    /// Of these, failed or parked.
    pub failed: usize,
    /// Tasks on the board that were done before, and are not in this report.
    pub earlier_tasks: usize,
    /// Agents that were started.
    pub agents: usize,
    /// Attempts that came to nothing.
    pub failed_attempts: usize,
    /// Landings that stand.
    pub landed: usize,
    /// Landings that were taken back.
    pub undone: usize,
    /// From the beginning to the end, in ms.
    pub duration_ms: i64,
    /// What all agents worked together, in ms.
    pub work_ms: i64,
    /// What all agents waited together, in ms.
    pub wait_ms: i64,
    /// How long checks took together, in ms.
    pub check_ms: i64,
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Those of them that providers had in their caches.
    pub cache_read_tokens: u64,
    /// Those of them that providers put into their caches.
    pub cache_write_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars, as far as providers say.
    pub cost_usd: f64,
    /// Tokens of their parents' conversations that forks found in the cache.
    pub forked_tokens: u64,
    /// US dollars that this saved against fresh agents that are told as much.
    pub saved_usd: f64,
}

impl Totals {
    /// What was used.
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

/// Who did what when.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Timeline {
    /// Where it begins, ms since the epoch.
    pub from_ms: i64,
    /// Where it ends.
    pub to_ms: i64,
    /// One row for each agent, in the order in which they began.
    pub rows: Vec<Row>,
    /// The chain of tasks that decided how long all of it took, in order.
    pub critical_path: Vec<CriticalStep>,
}

/// One agent over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Row {
    /// The agent's id.
    pub agent: String,
    /// What it did, without gaps or overlaps.
    pub spans: Vec<Span>,
}

/// What an agent did for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// What.
    pub what: SpanKind,
    /// From when on, ms since the epoch.
    pub from_ms: i64,
    /// Until when.
    pub to_ms: i64,
}

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// It is being started: its worktree is made, its program comes up.
    Starting,
    /// It works.
    Working,
    /// It waits for an answer, or for the next message.
    Waiting,
    /// Its work is checked.
    Check,
}

/// A task on the chain that decided how long all of it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CriticalStep {
    /// The task, as the report names it.
    pub task: String,
    /// How long it could have begun and did not, in ms.
    pub waited_ms: i64,
    /// How long it took, in ms.
    pub took_ms: i64,
}

/// One task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPart {
    /// Its number, or its id in the plan.
    pub id: String,
    /// What it is about.
    pub subject: String,
    /// All that was said about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How it ended: `done`, `failed`, `parked`, `open`, `running`, `skipped`, `unreadable`.
    pub state: String,
    /// The same in a sentence.
    pub words: String,
    /// Why nothing proves that it is done; none if a check passed, or if it is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// The tasks it waited for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// When the first attempt began, ms since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<i64>,
    /// When the last one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<i64>,
    /// How often it was tried.
    pub tries: usize,
    /// The tries that came to nothing, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptPart>,
    /// The check as it was last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckPart>,
    /// The files it changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// What it changed, as `git diff` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Excerpt>,
    /// What became of its work: `landed`, `undone`, `waiting`, `nothing`, or empty.
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
    /// How many bytes are missing; of a check's output at the beginning, else at the end.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A try that came to nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttemptPart {
    /// The run that made it.
    pub run: String,
    /// How it ended, in one word.
    pub status: String,
    /// What went wrong, on one line.
    pub what: String,
    /// What was printed last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub printed: String,
    /// When, RFC 3339.
    pub at: String,
    /// Whether it counts against the task.
    pub counts: bool,
}

/// A check that was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckPart {
    /// For the shell.
    pub command: String,
    /// It passed.
    pub passed: bool,
    /// How it ended, in words.
    pub words: String,
    /// How it failed at first, if it passed only when it was run again on the same commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flaky: Option<String>,
    /// How long it took, in ms.
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
    /// How it is addressed.
    pub name: String,
    /// Its definition.
    pub agent_type: String,
    /// What ran it.
    pub runtime: String,
    /// The model, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The task it was started for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How far it is, in one word.
    pub state: String,
    /// Its result or what went wrong, cut.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// What the engine found out besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How often it was started or resumed.
    pub lives: u32,
    /// Whether it is a copy of another agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Those of them that the provider had in its cache.
    pub cache_read_tokens: u64,
    /// Those of them that it put into its cache.
    pub cache_write_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// How often it used a tool.
    pub tool_uses: u64,
    /// Of a fork: tokens of its parent's conversation that it found in the cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub forked_tokens: u64,
    /// US dollars that this saved against a fresh agent that is told as much.
    #[serde(skip_serializing_if = "is_free")]
    pub saved_usd: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_free(usd: &f64) -> bool {
    *usd <= 0.0
}

/// What one model used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelPart {
    /// The model, or the runtime where no model is known.
    pub name: String,
    /// How many agents used it.
    pub agents: usize,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
}

/// Something that landed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LandingPart {
    /// As `ccb undo` names it, such as `L7`; empty where a whole plan landed.
    pub id: String,
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The branch.
    pub into: String,
    /// Where that went.
    pub commit: String,
    /// When, RFC 3339.
    pub at: String,
    /// When it was undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_at: Option<String>,
}

/// Something that is left for somebody.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeftPart {
    /// What it is, in words.
    pub what: String,
    /// The command that deals with it.
    pub command: String,
}
