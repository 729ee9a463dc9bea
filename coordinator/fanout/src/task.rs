//! A task as the engine gets it: everything decided, nothing left to look up in the plan.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::graph::Graph;
use super::items::Origin;
use super::plan::{Budget, TaskIsolation};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Work {
    /// An agent is told this.
    Prompt(String),
    /// A shell runs this.
    Run(String),
}

/// One task of a plan, ready to run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedTask {
    /// Its name, unique in the plan without regard to case, and usable as a file's.
    pub id: String,
    /// What is to be done, in one line.
    pub subject: String,
    /// What is to be done.
    #[serde(flatten)]
    pub work: Work,
    /// The ids of the tasks that must be done first, sorted.
    pub depends_on: Vec<String>,
    /// What it is going to change.
    pub paths: Vec<String>,
    /// What it must not change; see `file_rules`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// Patterns of the files that its result depends on; none means all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// The command that proves it.
    pub verify: Option<String>,
    /// How often the check is run again on the same commit when it fails.
    #[serde(skip_serializing_if = "is_zero")]
    pub check_retries: u32,
    /// The type of agent.
    pub agent: Option<String>,
    /// What runs the agent; `shell` for a command.
    pub runtime: Option<String>,
    /// The model the agent uses.
    pub model: Option<String>,
    /// Higher ones start first.
    pub priority: i64,
    /// Environment variables for the agent and the check.
    pub env: BTreeMap<String, String>,
    /// How often it is tried at most, at least once.
    pub attempts: u32,
    /// How long one attempt may take.
    #[serde(rename = "timeoutSeconds", serialize_with = "seconds")]
    pub timeout: Option<Duration>,
    /// What one attempt may cost.
    pub budget: Budget,
    /// Where the agent works.
    pub isolation: TaskIsolation,
    /// The `foreach` it comes from, if that has an id.
    pub group: Option<String>,
    /// What it is about, for those who point at files.
    pub origin: Option<Origin>,
    /// If it is about several things: where each of them is, and what it says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Origin>,
    /// What its result depends on, as a hash: the same key, the same work.
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

/// What waits for what among these.
pub(super) fn graph(tasks: &[PlannedTask]) -> Graph {
    let each = tasks.iter();
    Graph::new(each.map(|task| (task.id.as_str(), &task.depends_on[..])))
}

impl PlannedTask {
    /// Whether what it is proven for does not depend on the base as a whole.
    pub(super) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty() && self.depends_on.is_empty()
    }

    /// The content key: the task, the base (or what of it counts), the agents' settings and the keys
    /// of what it builds on.
    ///
    /// What only says when or how long it may run (priority, time, attempts, budget) is not part
    /// of it: proven work stays proven when a limit is raised.
    pub(super) fn content_key(&self, base: &str, settings: &str, before: &mut [&str]) -> String {
        before.sort_unstable();
        let (kind, work) = match &self.work {
            Work::Prompt(text) => ("prompt", text),
            Work::Run(text) => ("run", text),
        };
        // A command is run by a shell, whatever agents are like.
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
