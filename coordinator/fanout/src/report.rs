//! What became of a plan: the truth that every other form of report is made from.

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

/// What became of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of this format.
    pub v: u64,
    /// What the run is called.
    pub name: String,
    /// The commit everything started from.
    pub base: String,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub ended_at: String,
    /// Which part of the plan this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// What tells one way to cut the plan into parts from another: the same in all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// The parts that are missing, in a report of several parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_shards: Vec<String>,
    /// The signal that interrupted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// What it came to.
    pub verdict: Verdict,
    /// Where the results landed, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landing>,
    /// What is wrong with the whole, though its parts may be proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// What everybody should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The command that runs it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// Every task, in the order of the plan.
    pub tasks: Vec<TaskReport>,
}

impl Report {
    /// What it came to, in a few words.
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
    /// How much it changed, and where, in one line.
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
    /// Lines that are new; none for a binary file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Lines that are gone; none for a binary file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<u64>,
}

/// A branch that got results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Landing {
    /// The branch.
    pub branch: String,
    /// Where it is now.
    pub commit: String,
}

/// What became of one task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskReport {
    /// Its id in the plan.
    pub id: String,
    /// What was to be done.
    pub subject: String,
    /// Its content key.
    pub key: String,
    /// What it waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The `foreach` it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// How often it was tried.
    pub attempts: u32,
    /// How long it took in all.
    pub duration_ms: u64,
    /// What it cost.
    #[serde(default)]
    pub cost: Cost,
    /// The check as it was last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckReport>,
    /// The branch its commits are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What it was going to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The files it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// If it is about several things: where each of them is, and what it says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Origin>,
    /// Its worktree, if that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// What resolves its conflict, one step after the other.
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

/// What something cost.
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
    /// How it failed at first, if it passed only when it was run again on the same commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// What it is true of: the commit, or the place where the agent worked.
    #[serde(default)]
    pub place: CheckPlace,
    /// The end of what it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

impl TaskReport {
    /// Of a task that has not run yet: interrupted, until something better is known.
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

    /// What there is to say about it, in a sentence.
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

    /// Why it failed: one line with the command and how it ended, then the last lines that were
    /// printed.
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

    /// The file of the results with all that was printed.
    pub fn log(&self) -> Option<&str> {
        let file = self.files.get("check").or(self.files.get("transcript"));
        file.map(String::as_str)
    }

    /// Its check failed and passed on the same commit.
    pub fn is_flaky(&self) -> bool {
        let check = self.check.as_ref();
        self.outcome.is_success() && check.is_some_and(|check| check.flaky.is_some())
    }
}

impl Report {
    /// Of these tasks; what it came to follows from them.
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

    /// It was interrupted by this signal.
    pub fn interrupted(mut self, signal: u8) -> Self {
        self.signal = Some(signal);
        self.judge();
        self
    }

    /// Finds out again what it came to.
    pub fn judge(&mut self) {
        let own = self.signal.map(Verdict::Interrupted);
        let unexplained = || {
            // Somebody must have said why the rest was not done.
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

    /// How many tasks ended in each way.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for task in &self.tasks {
            *counts.entry(task.outcome.kind()).or_insert(0) += 1;
        }
        counts
    }

    /// The same in words.
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
        // What chooses tasks already is left as it is.
        let chosen = [" --only", " --shard"]
            .iter()
            .any(|flag| again.contains(flag));
        Some(match chosen {
            true => again.clone(),
            false => format!("{again} --only {}", shell_word(&task.id)),
        })
    }

    /// How many tasks are done, of how many, in which time.
    pub fn done_text(&self) -> String {
        let done = self.tasks.iter().filter(|task| task.outcome.is_success());
        let (done, all) = (done.count(), self.tasks.len());
        let time = time(self.duration_ms());
        format!("{done} of {} done in {time}", store::counted(all, "task"))
    }

    /// What everything cost.
    pub fn cost(&self) -> Cost {
        self.tasks.iter().fold(Cost::default(), |sum, task| Cost {
            usd: sum.usd + task.cost.usd,
            tokens: sum.tokens.saturating_add(task.cost.tokens),
        })
    }

    /// How long it took, in milliseconds.
    pub fn duration_ms(&self) -> u64 {
        let at = |text: &str| store::clock::parse_rfc3339(text).unwrap_or(0);
        u64::try_from(at(&self.ended_at) - at(&self.started_at)).unwrap_or(0)
    }
}
