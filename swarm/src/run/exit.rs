//! How a run ended: `exit.json`, written once per life.

use serde::{Deserialize, Serialize};
use store::clock::{Clock, SystemClock, parse_rfc3339, rfc3339};

use super::meta::{Meta, RunState, VERSION};
use crate::process::Ending;
use crate::runtime::Usage;

store::words! {
    /// How a run ended, in one word.
    pub enum ExitStatus {
        /// It did what it was asked.
        Completed = "completed",
        /// It did not.
        Failed = "failed",
        /// Somebody stopped it.
        Killed = "killed",
        /// It is gone, and nobody knows why.
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
    /// What ended a run that might have gone on: what can be done about it differs.
    pub enum ExitReason {
        /// A limit on turns, time, tokens or money. It can be resumed.
        Limit = "limit",
        /// The provider refuses for now. It can be resumed later.
        Quota = "quota",
        /// The same failure again, and nothing had changed.
        NoProgress = "no_progress",
        /// Something could not be read or written before its agent began. Nobody else can begin now.
        Broken = "broken",
    }
}

store::words! {
    /// Who wrote down how a run ended.
    pub enum By {
        /// Its host, as it should be.
        Host = "host",
        /// Its guard, because the host died.
        Guard = "guard",
        /// Somebody who found it with nobody left.
        Sweep = "sweep",
        /// Whoever started it, because it could not be started.
        Starter = "starter",
    }
}

/// The content of `exit.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// The format's version.
    pub v: u64,
    /// Which life ended.
    pub life: u32,
    /// How, in one word.
    pub status: ExitStatus,
    /// Its result, or what there was of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What ended it, if it might have gone on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ExitReason>,
    /// What else is worth knowing, found out by the engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What it used in this life.
    #[serde(default)]
    pub usage: Usage,
    /// How long this life was.
    pub duration_ms: u64,
    /// When it ended, RFC 3339.
    pub ended_at: String,
    /// How its program ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// What is there to show for it, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Who wrote this.
    pub by: By,
}

/// What an agent that says it is done has done, and whether that was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// Everything it did, as one commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit it started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Something differs between the two.
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
    /// It succeeded.
    pub passed: bool,
    /// How it ended; earlier versions did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<CheckEnd>,
    /// The same in words, and what it printed last, if it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// How it failed at first, if it succeeded only when it was run again on the same commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// Where its output is.
    pub log: String,
    /// What it is true of.
    #[serde(default)]
    pub place: CheckPlace,
}

/// How a check ended.
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
    /// Nobody knows.
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

    /// Whether somebody killed it, not by us, who would say so: that says nothing about the work.
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
    /// Where a check ran, and so what it says something about.
    #[derive(Default)]
    pub enum CheckPlace {
        /// On the commit, in a worktree of its own that no agent works in.
        Commit = "commit",
        /// Where the agent worked, with whatever else is there. So did all checks of earlier
        /// versions, which did not say so.
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

    /// Whether its program, or its check, was killed by somebody: not by us, who would say so.
    pub fn was_killed(&self) -> bool {
        let check = self.proof.as_ref().and_then(|proof| proof.check.as_ref());
        let failed = check.filter(|check| !check.passed);
        let killed = match failed {
            Some(check) => check.end.is_some_and(CheckEnd::is_kill),
            None => self.ending.is_some_and(Ending::is_kill),
        };
        killed && self.status == ExitStatus::Failed && self.reason.is_none()
    }

    /// What a model or a person is told: the result, what went wrong, and what the engine noticed.
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
