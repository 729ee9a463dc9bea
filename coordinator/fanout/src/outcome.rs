//! The outcomes of a task. Each has a name of its own in every report.

use director::Verdict;
use serde::{Deserialize, Serialize};

/// The outcome of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum Outcome {
    /// Its check passed, in its worktree, at this commit.
    Proven {
        /// The commit, by its full name.
        commit: String,
    },
    /// An earlier run with the same content proved it.
    Cached {
        /// The earlier commit; `None` if nothing had to change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// It was done and committed, but has no check.
    Unchecked { commit: String },
    /// Nothing was changed.
    NoChange {
        /// True if its check passed nevertheless.
        proven: bool,
    },
    /// The agent failed.
    Failed {
        /// The agent's message.
        why: String,
    },
    /// The agent finished, but the check failed.
    VerifyFailed {
        /// How the check ended.
        why: String,
    },
    /// It changed files that it must not change.
    OutOfBounds {
        /// The files.
        files: Vec<String>,
    },
    /// The check could not be run: its program is not there.
    VerifyMissing {
        /// The program.
        tool: String,
    },
    /// An attempt took too long.
    TimedOut {
        /// The limit.
        after_ms: u64,
    },
    /// It exhausted its budget.
    Budget {
        /// The budget.
        why: String,
    },
    /// The provider's quota is exhausted for now.
    Quota {
        /// The provider's message.
        why: String,
    },
    /// It is proven, but does not fit with landed work.
    Conflict {
        /// The commit that has still to land.
        commit: String,
        /// The files that both sides changed.
        files: Vec<String>,
        /// The tasks whose results it conflicts with; empty if it conflicts with the original
        /// branch.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        with: Vec<String>,
        /// The same files with the lines, as far as they are known: `src/a.rs:3-5`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        places: Vec<String>,
    },
    /// The task never started.
    Skipped { why: Skip },
    /// It was stopped from outside.
    Killed {
        /// The name or reason that stopped it.
        why: String,
    },
    /// An error in ccb itself.
    Internal { why: String },
}

/// The reason why a task never started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Skip {
    /// A task it depends on did not succeed.
    Dependency {
        /// The id of that task.
        task: String,
    },
    /// Too many others failed (`--max-failures`).
    MaxFailures,
    /// One of the first few failed (`--canary`).
    Canary,
    /// The time of the run was over (`--deadline`).
    Deadline,
    /// The money of the run was spent (`--budget`).
    Budget,
    /// The provider's quota is exhausted for now.
    Quota,
    /// The run was interrupted.
    Interrupted,
}

impl Outcome {
    /// A stable word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Proven { .. } => "proven",
            Self::Cached { .. } => "cached",
            Self::Unchecked { .. } => "unchecked",
            Self::NoChange { .. } => "no_change",
            Self::Failed { .. } => "failed",
            Self::VerifyFailed { .. } => "verify_failed",
            Self::OutOfBounds { .. } => "out_of_bounds",
            Self::VerifyMissing { .. } => "verify_missing",
            Self::TimedOut { .. } => "timed_out",
            Self::Budget { .. } => "budget",
            Self::Quota { .. } => "quota",
            Self::Conflict { .. } => "conflict",
            Self::Skipped { .. } => "skipped",
            Self::Killed { .. } => "killed",
            Self::Internal { .. } => "internal",
        }
    }

    /// A word or two for people.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NoChange { .. } => "unchanged",
            Self::VerifyFailed { .. } => "check failed",
            Self::OutOfBounds { .. } => "out of bounds",
            Self::VerifyMissing { .. } => "without its check",
            Self::TimedOut { .. } => "timed out",
            Self::Budget { .. } => "over budget",
            Self::Quota { .. } => "out of quota",
            Self::Conflict { .. } => "not landed",
            Self::Killed { .. } => "stopped",
            Self::Internal { .. } => "bug in ccb",
            other => other.kind(),
        }
    }

    /// The mark that represents it everywhere.
    pub fn mark(&self) -> &'static str {
        match self {
            Self::Skipped { .. } => "○",
            Self::Killed { .. } => "⊘",
            Self::Conflict { .. } | Self::Unchecked { .. } => "⚠",
            outcome if outcome.is_success() => "✔",
            _ => "✘",
        }
    }

    /// True if its dependents can start.
    pub fn is_success(&self) -> bool {
        matches!(
            self,
            Self::Proven { .. }
                | Self::Cached { .. }
                | Self::Unchecked { .. }
                | Self::NoChange { .. }
        )
    }

    /// The commit that holds its result, if there is one.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Self::Proven { commit }
            | Self::Unchecked { commit }
            | Self::Conflict { commit, .. } => Some(commit),
            Self::Cached { commit } => commit.as_deref(),
            _ => None,
        }
    }

    /// The meaning of its kind, whatever the task.
    pub fn meaning(&self) -> &'static str {
        match self {
            Self::Proven { .. } => "its check passed",
            Self::Cached { .. } => "proven by an earlier run",
            Self::Unchecked { .. } => "done, unchecked: it has no check",
            Self::NoChange { .. } => "nothing was changed",
            Self::Failed { .. } => "the agent failed",
            Self::VerifyFailed { .. } => "the check did not pass",
            Self::OutOfBounds { .. } => "it changed files that it must not change",
            Self::VerifyMissing { .. } => "the program of the check is not there",
            Self::TimedOut { .. } => "an attempt took too long",
            Self::Budget { .. } => "the budget was used up",
            Self::Quota { .. } => "the provider gives no more for now",
            Self::Conflict { .. } => "proven, but in conflict with what has landed",
            Self::Skipped { .. } => "never started",
            Self::Killed { .. } => "stopped from outside",
            Self::Internal { .. } => "a bug in ccb",
        }
    }

    /// A description in one sentence.
    pub fn words(&self) -> String {
        match self {
            Self::Proven { .. } => "its check passed".into(),
            Self::Cached { .. } => "proven by an earlier run".into(),
            Self::Unchecked { .. } => "done; ⚠ unchecked: it has no check".into(),
            Self::NoChange { proven: true } => "nothing changed; its check passes".into(),
            Self::NoChange { proven: false } => "nothing changed".into(),
            Self::Failed { why } => format!("the agent failed: {why}"),
            Self::VerifyFailed { why } => format!("the check failed: {why}"),
            Self::OutOfBounds { files } => {
                format!(
                    "it changed files that it must not change: {}",
                    files.join(", ")
                )
            }
            Self::VerifyMissing { tool } => format!("its check needs {tool}, which is not there"),
            Self::TimedOut { after_ms } => format!("not done after {} s", after_ms / 1000),
            Self::Budget { why } => format!("over its budget: {why}"),
            Self::Quota { why } => format!("no quota left: {why}"),
            Self::Conflict { files, .. } if files.is_empty() => {
                "its check passed, but it has not landed".into()
            }
            Self::Conflict {
                files,
                with,
                places,
                ..
            } => {
                let with = match with.as_slice() {
                    [] => "the branch".to_owned(),
                    with => with.join(", "),
                };
                let places = if places.is_empty() { files } else { places };
                format!(
                    "did not land: conflicts with {with} in {}",
                    places.join(", ")
                )
            }
            Self::Skipped { why } => why.words(),
            Self::Killed { why } => format!("stopped: {why}"),
            Self::Internal { why } => format!("a bug in ccb: {why}"),
        }
    }

    /// The same with every text in it passed through `clean`.
    pub(super) fn map_texts(&self, clean: &dyn Fn(&str) -> String) -> Self {
        let mut other = self.clone();
        match &mut other {
            Self::Failed { why }
            | Self::VerifyFailed { why }
            | Self::VerifyMissing { tool: why }
            | Self::Budget { why }
            | Self::Quota { why }
            | Self::Killed { why }
            | Self::Internal { why } => *why = clean(why),
            _ => {}
        }
        other
    }
}

impl Skip {
    fn words(&self) -> String {
        match self {
            Self::Dependency { task } => format!("not started: it depends on {task}"),
            Self::MaxFailures => "not started: too many others failed".into(),
            Self::Canary => "not started: one of the first few failed".into(),
            Self::Deadline => "not started: the time was up".into(),
            Self::Budget => "not started: the budget was spent".into(),
            Self::Quota => "not started: no quota left".into(),
            Self::Interrupted => "not started: the run was interrupted".into(),
        }
    }
}

impl Outcome {
    /// The task's part in the verdict of the run.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Internal { .. } => Verdict::Internal,
            Self::Quota { .. } | Self::Skipped { why: Skip::Quota } => Verdict::Quota,
            Self::Budget { .. }
            | Self::Skipped {
                why: Skip::Budget | Skip::Deadline,
            } => Verdict::Budget,
            Self::Conflict { .. } => Verdict::Conflicts,
            // The dependency's outcome itself counts.
            Self::Skipped {
                why: Skip::Dependency { .. },
            } => Verdict::Done,
            // The run's own ending counts.
            Self::Skipped {
                why: Skip::Interrupted,
            } => Verdict::Done,
            outcome if outcome.is_success() => Verdict::Done,
            _ => Verdict::Failed,
        }
    }
}
