//! The keys of a plan. The published schema is made from these types.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use store::duration::{DurationFormat, short};

use super::whole_check::CheckSpec;

/// The newest format of plans this version knows.
pub const PLAN_VERSION: u64 = 1;

/// Work for many agents: tasks one by one, and tasks made from lists of things.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "ccb fanout plan")]
pub struct Plan {
    /// Where editors find this schema; not used otherwise.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// The version of this format: 1.
    pub v: Option<u64>,
    /// The name of the run in reports.
    pub name: Option<String>,
    /// Values for every task that sets no others.
    pub defaults: Defaults,
    /// The check that landing results must pass, besides the checks of the tasks: a command, or
    /// `{no-new-failures: …}`. `--check` takes its place.
    pub check: Option<CheckSpec>,
    /// Patterns of files that no task may change, besides those protected by default (CI
    /// configuration, git's own files, the program of the check). `!pattern` removes a protection.
    pub protect: Texts,
    /// Number of failed tasks that keep their worktrees. All other failed tasks keep only the
    /// commit and the patch. Default 20.
    #[serde(alias = "keep-failed")]
    pub keep_failed: Option<usize>,
    /// Tasks, one by one.
    pub tasks: Vec<TaskSpec>,
    /// Tasks made from a template, one for each of a list of things.
    pub foreach: Vec<Foreach>,
}

/// Values for every task that sets no others.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Defaults {
    /// The runtime of the agents: shell, claude, codex, opencode, …, or one of the settings.
    pub runtime: Option<String>,
    /// The model of the agents.
    pub model: Option<String>,
    /// The type of agent.
    pub agent: Option<String>,
    /// The command that proves a task: run in its worktree, at its commit; exit code 0 is a pass.
    pub verify: Option<String>,
    /// Number of retries after a failure (0 to 20). Default 1.
    #[schemars(range(min = 0, max = 20))]
    pub retries: Option<u32>,
    /// The budget of one attempt.
    pub budget: Option<Budget>,
    /// Where agents work. Default worktree.
    pub isolation: Option<TaskIsolation>,
    /// Patterns of the files that a task's result depends on. With them, a proven result counts as
    /// long as these files are the same, also at another base commit; without them, only at the
    /// same one. Tasks that depend on others always need the same base commit.
    pub inputs: Texts,
    /// The commit everything starts from. Default HEAD.
    pub base: Option<String>,
    /// Time limit of one attempt: seconds, or text such as 90s, 10m, 1h30m.
    pub timeout: Option<Span>,
    /// Environment variables for agents and checks.
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub env: BTreeMap<String, String>,
    /// Number of times a failed check is repeated on the same commit (0 to 10). A check that passes
    /// then counts, and the task is reported as flaky. Default 0.
    #[serde(alias = "check-retries")]
    #[schemars(range(min = 0, max = 10))]
    pub check_retries: Option<u32>,
}

/// One task.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TaskSpec {
    /// The id in the plan and in reports: letters, digits, '.', '_', '-'; at most 64. In a template
    /// it may be left out: then ccb makes it from the task's thing.
    pub id: Option<String>,
    /// The task in one line.
    pub subject: Option<String>,
    /// The prompt of the agent. Either this or `run`.
    pub prompt: Option<String>,
    /// A shell command that does the work; needs no model. Either this or `prompt`.
    pub run: Option<String>,
    /// Tasks that must be done first; the id of a `foreach` means all of its tasks.
    pub depends_on: Texts,
    /// The files or directories it may change; tasks that share some do not run at the same time. A
    /// task that changes others is out of bounds.
    pub paths: Texts,
    /// Patterns of files it may not change, besides those of the plan. `!pattern` removes a
    /// protection.
    pub protect: Texts,
    /// The command that proves it; an empty one means no check.
    pub verify: Option<String>,
    /// The type of agent.
    pub agent: Option<String>,
    /// The runtime of the agent.
    pub runtime: Option<String>,
    /// The model of the agent.
    pub model: Option<String>,
    /// Tasks with a higher number start first. Default 0.
    pub priority: Option<i64>,
    /// Environment variables, besides those of the defaults.
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub env: BTreeMap<String, String>,
    /// Number of retries after a failure (0 to 20).
    #[schemars(range(min = 0, max = 20))]
    pub retries: Option<u32>,
    /// The budget of one attempt.
    pub budget: Option<Budget>,
    /// Time limit of one attempt.
    pub timeout: Option<Span>,
    /// Where the agent works.
    pub isolation: Option<TaskIsolation>,
    /// Patterns of the files that its result depends on, in place of those of the defaults.
    pub inputs: Texts,
    /// Number of times a failed check is repeated on the same commit (0 to 10).
    #[serde(alias = "check-retries")]
    #[schemars(range(min = 0, max = 10))]
    pub check_retries: Option<u32>,
}

/// A list of things, with one task for each. Exactly one of `files`, `lines`, `jsonl`, `junit` and
/// `sarif` gives the list.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Foreach {
    /// The name of all its tasks in `dependsOn`; also the start of their ids.
    #[serde(default)]
    pub id: Option<String>,
    /// Files of the base commit that match one of these patterns.
    #[serde(default)]
    pub files: Option<Texts>,
    /// But not those that match one of these.
    #[serde(default)]
    pub exclude: Texts,
    /// The lines of this file that are not empty; "-" is standard input.
    #[serde(default)]
    pub lines: Option<String>,
    /// The lines of this file, each a JSON object; "-" is standard input.
    #[serde(default)]
    pub jsonl: Option<String>,
    /// The failed tests of a JUnit report; "-" is standard input.
    #[serde(default)]
    pub junit: Option<Texts>,
    /// The findings of a SARIF log; "-" is standard input.
    #[serde(default)]
    pub sarif: Option<Texts>,
    /// One task for all things that have this in common: the name of a value such as path or
    /// rule, or a text with `{{name}}` in it.
    #[serde(default, alias = "group-by")]
    pub group_by: Option<String>,
    /// Only those whose task's id is one of these, or matches one of these patterns (`*`, `?`).
    #[serde(default)]
    pub only: Texts,
    /// But not those whose task's id is one of these, or matches one of these patterns.
    #[serde(default)]
    pub skip: Texts,
    /// Number of things to choose by their content: the same ones every time.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub sample: Option<usize>,
    /// Maximum number of things, the first ones.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// The treatment of a thing whose file lies outside of the repository. Default refuse.
    #[serde(default)]
    pub outside: Option<Outside>,
    /// The task for each thing, with `{{name}}` for the thing's values.
    pub task: TaskSpec,
}

/// The treatment of a thing whose file lies outside of the repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outside {
    /// ccb refuses the plan and names the thing.
    #[default]
    Refuse,
    /// ccb leaves the thing out and notes that.
    Skip,
}

/// The budget of one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budget {
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub usd: Option<f64>,
    /// Tokens, read and written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// Where an agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Isolation")]
pub enum TaskIsolation {
    /// In a git worktree of its own.
    #[default]
    Worktree,
    /// In the repository itself, one task at a time: ccb cannot undo its changes.
    None,
}

impl TaskIsolation {
    /// As written in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worktree => "worktree",
            Self::None => "none",
        }
    }
}

/// One text or several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Texts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        from.deserialize_any(Read)
    }
}

impl JsonSchema for Texts {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Texts".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}}
        ]})
    }
}

/// A text, or an unquoted value that stands for itself: a number, true, false.
#[derive(Debug)]
struct Scalar;

impl JsonSchema for Scalar {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
}

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    /// From a second to 30 days; a number without a unit means seconds.
    pub const FORMAT: DurationFormat = DurationFormat::SECONDS
        .at_least(Duration::from_secs(1))
        .at_most(Duration::from_secs(30 * 86400));
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&Span::FORMAT.expected())
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                let read = Span::FORMAT.read(text).map(Span);
                read.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Span, E> {
                self.visit_str(&seconds.to_string())
            }
            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Span, E> {
                self.visit_str(&seconds.to_string())
            }
        }
        from.deserialize_any(Read)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.subsec_nanos() {
            0 => to.serialize_u64(self.0.as_secs()),
            _ => to.serialize_str(&short(self.0)),
        }
    }
}

impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 2_592_000},
            {"type": "string", "pattern": "^([0-9]+|([0-9]+(ms|[smhd]))+)$"}
        ]})
    }
}

/// The schema of plans, as published.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Plan).to_value()
}
