//! The report of a plan: all other forms of report are made from it.

use std::collections::BTreeMap;

use director::Verdict;
use runs::failure_text::FailureText;
use serde::{Deserialize, Serialize};
use store::clock::rfc3339;
use swarm::run::CheckPlace;

use super::conflicts::shell_word;
use super::items::Origin;
use super::markdown::time;
use super::outcome::{Outcome, Skip};
use super::task::PlannedTask;

/// The newest format of reports this version knows.
pub const REPORT_VERSION: u64 = 1;

/// The report of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of this format.
    pub v: u64,
    /// The name of the run.
    pub name: String,
    /// The commit everything started from.
    pub base: String,
    /// The start.
    pub started_at: String,
    /// The end.
    pub ended_at: String,
    /// The part of the plan that this is; `None` for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Identifies the way a plan was cut into parts: the same in all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// The parts that are missing, in a report of several parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_shards: Vec<String>,
    /// The signal that interrupted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// The verdict.
    pub verdict: Verdict,
    /// The branch with the results; `None` if nothing landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landing>,
    /// The problem of the whole, although its parts may be proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Notes for every reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The command that runs it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// Every task, in the order of the plan.
    pub tasks: Vec<TaskReport>,
}

impl Report {
    /// The verdict in a few words.
    pub fn title(&self) -> &'static str {
        match self.verdict {
            Verdict::Done => "all done",
            Verdict::Failed => "some tasks failed",
            Verdict::Conflicts => "done, with conflicts left to land",
            Verdict::Budget => "stopped by budget or deadline",
            Verdict::Quota => "stopped: no quota left",
            Verdict::Interrupted(_) => "interrupted",
            Verdict::Internal => "ended by a bug in ccb",
        }
    }
}

impl TaskReport {
    /// The size of all changes, in one line.
    pub fn diffstat(&self) -> String {
        let sum =
            |of: fn(&FileChange) -> Option<u64>| self.changes.iter().filter_map(of).sum::<u64>();
        let lines = format!("+{} −{}", sum(|it| it.added), sum(|it| it.deleted));
        match self.changes.as_slice() {
            [] => String::new(),
            [one] => format!("{} {lines}", one.path),
            [first, rest @ ..] => format!("{} and {} more {lines}", first.path, rest.len()),
        }
    }
}

/// A file that a task changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// From the top of the repository.
    pub path: String,
    /// Number of new lines; `None` for a binary file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Number of deleted lines; `None` for a binary file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<u64>,
}

/// A branch that got results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Landing {
    /// The branch.
    pub branch: String,
    /// Its head.
    pub commit: String,
}

/// The report of one task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskReport {
    /// Its id in the plan.
    pub id: String,
    /// The task in one line.
    pub subject: String,
    /// Its content key.
    pub key: String,
    /// The tasks it depended on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The `foreach` it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The runtime of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Number of attempts.
    pub attempts: u32,
    /// Total duration in milliseconds.
    pub duration_ms: u64,
    /// The cost.
    #[serde(default)]
    pub cost: Cost,
    /// The last run of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckReport>,
    /// The branch its commits are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The files it was to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The files it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// The thing it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// For a task about several things: the place and the text of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Origin>,
    /// Its worktree; `None` if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// The commands that resolve its conflict, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolve: Vec<String>,
    /// Files of the results that belong to it, by what they are: patch, transcript, check.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Default for Outcome {
    fn default() -> Self {
        Self::Skipped {
            why: Skip::Interrupted,
        }
    }
}

/// A cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// US dollars, as far as the runtimes say.
    pub usd: f64,
    /// Tokens read and written.
    pub tokens: u64,
}

/// A check that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// The command.
    pub command: String,
    /// Its exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The first failure, if it passed only when repeated on the same commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<String>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The place it ran in: the commit, or the directory of the agent.
    #[serde(default)]
    pub place: CheckPlace,
    /// The end of what it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

impl TaskReport {
    /// The report of a task that has not run yet: interrupted, until a later result.
    pub fn new(task: &PlannedTask) -> Self {
        Self {
            id: task.id.clone(),
            subject: task.subject.clone(),
            key: task.key.clone(),
            depends_on: task.depends_on.clone(),
            group: task.group.clone(),
            runtime: task.runtime.clone(),
            paths: task.paths.clone(),
            origin: task.origin.clone(),
            findings: task.findings.clone(),
            ..Self::default()
        }
    }

    /// A description in one sentence.
    pub fn words(&self) -> String {
        let words = self.outcome.words();
        let in_place = self.check.as_ref().map(|check| check.place) == Some(CheckPlace::InPlace);
        match self.outcome {
            Outcome::Proven { .. } if in_place => format!("{words} (checked in place)"),
            _ if self.is_flaky() => format!("{words} only when it was run again: flaky"),
            _ => words,
        }
    }

    /// The first line of that.
    pub fn headline(&self) -> String {
        let words = self.words();
        let first = words.lines().next().unwrap_or_default();
        FailureText::of(first).what
    }

    /// The reason of the failure: one line with the command and how it ended, then the last lines
    /// of its output.
    pub fn failure(&self) -> String {
        let check = self.check.as_ref();
        match (&self.outcome, check) {
            (Outcome::VerifyFailed { why }, Some(check)) => {
                let how = match check.exit_code {
                    Some(code) => format!("exit code {code}"),
                    None => why.lines().next().unwrap_or_default().to_owned(),
                };
                let command = check.command.lines().next().unwrap_or_default();
                format!("the check `{command}` failed: {how}\n{}", check.tail)
            }
            _ => self.words(),
        }
    }

    /// The file of the results with all of the output.
    pub fn log(&self) -> Option<&str> {
        let file = self.files.get("check").or(self.files.get("transcript"));
        file.map(String::as_str)
    }

    /// True if its check failed and passed on the same commit.
    pub fn is_flaky(&self) -> bool {
        let check = self.check.as_ref();
        self.outcome.is_success() && check.is_some_and(|check| check.flaky.is_some())
    }
}

impl Report {
    /// Makes the report of these tasks; the verdict follows from them.
    pub fn new(name: &str, base: &str, times: (i64, i64), tasks: Vec<TaskReport>) -> Self {
        let mut report = Self {
            v: REPORT_VERSION,
            name: name.to_owned(),
            base: base.to_owned(),
            started_at: rfc3339(times.0),
            ended_at: rfc3339(times.1),
            shard: None,
            cut: None,
            missing_shards: Vec::new(),
            signal: None,
            verdict: Verdict::Done,
            landed: None,
            broken: None,
            notes: Vec::new(),
            again: None,
            tasks,
        };
        report.judge();
        report
    }

    /// Records the signal that interrupted the run.
    pub fn interrupted(mut self, signal: u8) -> Self {
        self.signal = Some(signal);
        self.judge();
        self
    }

    /// Computes the verdict again.
    pub fn judge(&mut self) {
        let own = self.signal.map(Verdict::Interrupted);
        let unexplained = || {
            // Another part of the report must give the reason why the rest was not done.
            let left = self.tasks.iter().any(|task| !task.outcome.is_success());
            left.then_some(Verdict::Failed)
        };
        let of_tasks = self.tasks.iter().map(|task| task.outcome.verdict()).min();
        let broken = self.broken.is_some().then_some(Verdict::Failed);
        let found = own
            .into_iter()
            .chain(of_tasks)
            .chain(broken)
            .min()
            .unwrap_or(Verdict::Done);
        self.verdict = match found {
            Verdict::Done => unexplained().unwrap_or(Verdict::Done),
            found => found,
        };
    }

    /// Number of tasks by outcome.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for task in &self.tasks {
            *counts.entry(task.outcome.kind()).or_insert(0) += 1;
        }
        counts
    }

    /// The same as text.
    pub fn counts_text(&self) -> String {
        let mut counts = BTreeMap::new();
        for task in &self.tasks {
            *counts.entry(task.outcome.label()).or_insert(0) += 1;
        }
        let counts = counts.iter().map(|(label, n)| format!("{n} {label}"));
        counts.collect::<Vec<_>>().join(" · ")
    }

    /// The command that runs this task again.
    pub fn again_for(&self, task: &TaskReport) -> Option<String> {
        let again = self.again.as_ref()?;
        // A command that already selects tasks is left as it is.
        let chosen = [" --only", " --shard"]
            .iter()
            .any(|flag| again.contains(flag));
        Some(match chosen {
            true => again.clone(),
            false => format!("{again} --only {}", shell_word(&task.id)),
        })
    }

    /// The numbers of completed and of all tasks, with the duration, as text.
    pub fn done_text(&self) -> String {
        let done = self.tasks.iter().filter(|task| task.outcome.is_success());
        let (done, all) = (done.count(), self.tasks.len());
        let time = time(self.duration_ms());
        format!("{done} of {} done in {time}", store::counted(all, "task"))
    }

    /// The total cost.
    pub fn cost(&self) -> Cost {
        self.tasks.iter().fold(Cost::default(), |sum, task| Cost {
            usd: sum.usd + task.cost.usd,
            tokens: sum.tokens.saturating_add(task.cost.tokens),
        })
    }

    /// The duration in milliseconds.
    pub fn duration_ms(&self) -> u64 {
        let at = |text: &str| store::clock::parse_rfc3339(text).unwrap_or(0);
        u64::try_from(at(&self.ended_at) - at(&self.started_at)).unwrap_or(0)
    }
}
