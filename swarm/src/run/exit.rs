//! The end of a run: `exit.json`, written once per life.

use serde::{Deserialize, Serialize};
use store::clock::{Clock, SystemClock, parse_rfc3339, rfc3339};

use super::meta::{Meta, RunState, VERSION};
use crate::process::Ending;
use crate::runtime::Usage;

store::words! {
    /// The end of a run, in one word.
    pub enum ExitStatus {
        /// It did its task.
        Completed = "completed",
        /// It did not do its task.
        Failed = "failed",
        /// A user or an agent stopped it.
        Killed = "killed",
        /// It is gone, and the reason is unknown.
        Lost = "lost",
    }
}

impl ExitStatus {
    /// The state a run is in after it.
    pub fn state(self) -> RunState {
        match self {
            Self::Completed => RunState::Completed,
            Self::Failed => RunState::Failed,
            Self::Killed => RunState::Killed,
            Self::Lost => RunState::Lost,
        }
    }
}

store::words! {
    /// The reason why a run ended that might have continued: each needs another remedy.
    pub enum ExitReason {
        /// A limit on turns, time, tokens or money. It can be resumed.
        Limit = "limit",
        /// The provider refuses for now. It can be resumed later.
        Quota = "quota",
        /// The same failure again, and nothing had changed.
        NoProgress = "no_progress",
        /// A file could not be read or written before its agent began. No other process can begin
        /// it now.
        Broken = "broken",
    }
}

store::words! {
    /// The process that recorded how a run ended.
    pub enum By {
        /// Its host, as it should be.
        Host = "host",
        /// Its guard, because the host died.
        Guard = "guard",
        /// A command that found it without a supervisor.
        Sweep = "sweep",
        /// Its starter, because it could not be started.
        Starter = "starter",
    }
}

/// The content of `exit.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// The format's version.
    pub v: u64,
    /// The life that ended.
    pub life: u32,
    /// How, in one word.
    pub status: ExitStatus,
    /// Its result, or what there was of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The reason for the end, if the run might have continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ExitReason>,
    /// Further facts that the engine found out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The usage of this life.
    #[serde(default)]
    pub usage: Usage,
    /// The duration of this life.
    pub duration_ms: u64,
    /// The time of its end, RFC 3339.
    pub ended_at: String,
    /// The exit code or signal of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The proof of the work, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The process that wrote this.
    pub by: By,
}

/// The work of an agent that says it is done, and the result of its check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// All its work, as one commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit it started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// True if the two commits differ.
    pub changed: bool,
    /// Files it changed and may not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_bounds: Vec<String>,
    /// The check, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Checked>,
}

/// A check that was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// For the shell.
    pub command: String,
    /// True if it succeeded.
    pub passed: bool,
    /// The end of the check; `None` in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<CheckEnd>,
    /// The same in words, and what it printed last, if it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// The first failure, if it succeeded only when it was run again on the same commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<String>,
    /// Its duration.
    pub duration_ms: u64,
    /// The path of its output.
    pub log: String,
    /// The place of the check, for which the result holds.
    #[serde(default)]
    pub place: CheckPlace,
}

/// The end of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckEnd {
    /// With exit code 0.
    Passed,
    /// By itself, with another code.
    Failed(i32),
    /// By this signal.
    Killed(i32),
    /// By us, because it took too long.
    TimedOut,
    /// By us, because the run had to end.
    Stopped,
    /// It could not be started.
    NotRun,
    /// The result is unknown.
    Unknown,
}

impl CheckEnd {
    /// Its exit code, if it ended by itself.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Passed => Some(0),
            Self::Failed(code) => Some(code),
            _ => None,
        }
    }

    /// True if another process killed it, not ccb, which would record that: that says nothing about
    /// the work.
    pub fn is_kill(self) -> bool {
        matches!(self, Self::Killed(9) | Self::Failed(137))
    }
}

impl From<Ending> for CheckEnd {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Exited(0) => Self::Passed,
            Ending::Exited(code) => Self::Failed(code),
            Ending::Signaled(signal) => Self::Killed(signal),
            Ending::Unknown => Self::Unknown,
        }
    }
}

store::words! {
    /// The place of a check, for which its result holds.
    #[derive(Default)]
    pub enum CheckPlace {
        /// On the commit, in a worktree of its own that no agent works in.
        Commit = "commit",
        /// The agent's working directory, with whatever else is there. All checks of earlier
        /// versions ran there, and did not record it.
        #[default]
        InPlace = "in place",
    }
}

impl Exit {
    /// The end of this life of a run, now, with nothing to show for it.
    pub fn now(meta: &Meta, status: ExitStatus, error: Option<String>, by: By) -> Self {
        let now = SystemClock.now_ms();
        let started = parse_rfc3339(&meta.started_at).unwrap_or(now);
        Self {
            v: VERSION,
            life: meta.life,
            status,
            result: None,
            error,
            reason: None,
            notes: Vec::new(),
            usage: Usage::default(),
            duration_ms: u64::try_from(now.saturating_sub(started)).unwrap_or(0),
            ended_at: rfc3339(now),
            ending: None,
            proof: None,
            by,
        }
    }

    /// True if its program, or its check, was killed by another process: not by ccb, which would
    /// record that.
    pub fn was_killed(&self) -> bool {
        let check = self.proof.as_ref().and_then(|proof| proof.check.as_ref());
        let failed = check.filter(|check| !check.passed);
        let killed = match failed {
            Some(check) => check.end.is_some_and(CheckEnd::is_kill),
            None => self.ending.is_some_and(Ending::is_kill),
        };
        killed && self.status == ExitStatus::Failed && self.reason.is_none()
    }

    /// The text for a model or a person: the result, the error, and the engine's notes.
    pub fn text(&self) -> String {
        let result = self.result.as_deref().unwrap_or("").trim_end();
        let mut text = match (result, &self.error) {
            ("", None) => "(The agent completed but returned no output.)".into(),
            ("", Some(error)) => error.clone(),
            (text, None) => text.to_owned(),
            (text, Some(error)) => format!("{text}\n\n[{}: {error}]", self.status.as_str()),
        };
        for note in &self.notes {
            text.push_str(&format!("\n\n[{note}]"));
        }
        text
    }
}
