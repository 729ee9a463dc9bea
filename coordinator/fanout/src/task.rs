//! A task in the form for the engine: all values are decided, and the plan is not needed any more.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::graph::Graph;
use super::items::Origin;
use super::plan::{Budget, TaskIsolation};

/// The work of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Work {
    /// The prompt for an agent.
    Prompt(String),
    /// The command for a shell.
    Run(String),
}

/// One task of a plan, ready to run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedTask {
    /// Its name, unique in the plan without regard to case, and usable as a file's.
    pub id: String,
    /// The task in one line.
    pub subject: String,
    /// The work.
    #[serde(flatten)]
    pub work: Work,
    /// The ids of the tasks that must be done first, sorted.
    pub depends_on: Vec<String>,
    /// The files it will change.
    pub paths: Vec<String>,
    /// The files it must not change; see `file_rules`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// Patterns of the files that its result depends on; none means all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// The command that proves it.
    pub verify: Option<String>,
    /// Number of times a failed check is repeated on the same commit.
    #[serde(skip_serializing_if = "is_zero")]
    pub check_retries: u32,
    /// The type of agent.
    pub agent: Option<String>,
    /// The runtime of the agent; `shell` for a command.
    pub runtime: Option<String>,
    /// The model the agent uses.
    pub model: Option<String>,
    /// Tasks with a higher number start first.
    pub priority: i64,
    /// Environment variables for the agent and the check.
    pub env: BTreeMap<String, String>,
    /// Maximum number of attempts, at least one.
    pub attempts: u32,
    /// Time limit of one attempt.
    #[serde(rename = "timeoutSeconds", serialize_with = "seconds")]
    pub timeout: Option<Duration>,
    /// The budget of one attempt.
    pub budget: Budget,
    /// Where the agent works.
    pub isolation: TaskIsolation,
    /// The `foreach` it comes from, if that has an id.
    pub group: Option<String>,
    /// The thing it is about, for outputs that point at files.
    pub origin: Option<Origin>,
    /// For a task about several things: the place and the text of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Origin>,
    /// A hash of everything its result depends on: the same key, the same work.
    pub key: String,
}

fn seconds<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs()).serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// SHA-256 as 64 hex digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The places of tasks in the plan, by their ids.
pub(super) fn places(tasks: &[PlannedTask]) -> HashMap<&str, usize> {
    let each = tasks.iter().enumerate();
    each.map(|(at, task)| (task.id.as_str(), at)).collect()
}

/// The dependencies among these.
pub(super) fn graph(tasks: &[PlannedTask]) -> Graph {
    let each = tasks.iter();
    Graph::new(each.map(|task| (task.id.as_str(), &task.depends_on[..])))
}

impl PlannedTask {
    /// True if its proof does not depend on the base as a whole.
    pub(super) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty() && self.depends_on.is_empty()
    }

    /// The content key: the task, the base (or the part of it that counts), the agents' settings
    /// and the keys of its dependencies.
    ///
    /// Values that only limit when or how long it may run (priority, time, attempts, budget) are
    /// not part of it: proven work stays proven when a limit is raised.
    pub(super) fn content_key(&self, base: &str, settings: &str, before: &mut [&str]) -> String {
        before.sort_unstable();
        let (kind, work) = match &self.work {
            Work::Prompt(text) => ("prompt", text),
            Work::Run(text) => ("run", text),
        };
        // A shell runs a command, whatever the settings of agents are.
        let settings = match self.work {
            Work::Prompt(_) => settings,
            Work::Run(_) => "",
        };
        let content = json!([
            "ccb-task-2",
            base,
            settings,
            self.id,
            self.subject,
            kind,
            work,
            self.paths,
            self.protect,
            self.verify,
            self.agent,
            self.runtime,
            self.model,
            self.env,
            self.isolation.as_str(),
            before,
        ]);
        sha256(content.to_string().as_bytes())
    }

    /// For `--dry-run --json`.
    pub fn to_json(&self) -> Value {
        let mut value = json!(self);
        if let Value::Object(map) = &mut value {
            map.retain(|_, value| !value.is_null());
        }
        value
    }
}
