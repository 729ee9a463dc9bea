//! `limits`: how much agents may use, each alone and all together, and how long everybody waits
//! when a provider refuses.
//!
//! Of several files the lowest limit counts: what one forbids, another cannot take back.

use std::time::Duration;

use serde_json::{Map, Value};

use super::file::File;
use crate::error::Result;

/// What one life of an agent may use. None: as much as it likes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AgentLimits {
    /// `turns`: how often it may call its model.
    pub turns: Option<u32>,
    /// `wallClockMs`: how long it may take.
    pub wall_clock: Option<Duration>,
    /// `tokens`: read and written together.
    pub tokens: Option<u64>,
    /// `costUsd`: as far as its runtime says what it costs.
    pub cost_usd: Option<f64>,
}

/// What all agents of a team together may use.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TeamLimits {
    /// `spawnsPerMinute`: how many may be started within a minute.
    pub spawns_per_minute: Option<u32>,
    /// `wallClockMs`: how long they may work, counted from when the first was started.
    pub wall_clock: Option<Duration>,
    /// `tokens`: read and written together.
    pub tokens: Option<u64>,
    /// `costUsd`: as far as runtimes say what they cost.
    pub cost_usd: Option<f64>,
}

/// What happens when a provider refuses for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaSettings {
    /// `firstPauseMs`: how long everybody waits the first time; twice as long each time after.
    pub first_pause: Duration,
    /// `longestPauseMs`: but never longer than this, unless the provider says so.
    pub longest_pause: Duration,
    /// `giveUpMs`: an agent that was held up this long in a row ends.
    pub give_up: Duration,
}

impl Default for QuotaSettings {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_secs(30),
            longest_pause: Duration::from_secs(15 * 60),
            // Longer than the windows providers count in.
            give_up: Duration::from_secs(6 * 3600),
        }
    }
}

/// Everything under `limits`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// `agent`: each alone.
    pub agent: AgentLimits,
    /// `team`: all together.
    pub team: TeamLimits,
    /// `quota`: when a provider refuses.
    pub quota: QuotaSettings,
}

const WEEK_MS: u64 = 7 * 24 * 3_600_000;
const MOST_TOKENS: u64 = 1_000_000_000_000_000;
/// The largest amount of money a limit can be.
pub const MOST_USD: f64 = 1_000_000.0;

impl Limits {
    pub(super) fn apply(&mut self, section: &Map<String, Value>, file: &File<'_>) -> Result<()> {
        file.check_keys(section, "limits.", &["agent", "quota", "team"])?;
        if let Some(value) = section.get("agent") {
            self.agent
                .apply(file.object(value, "limits.agent")?, file)?;
        }
        if let Some(value) = section.get("team") {
            self.team.apply(file.object(value, "limits.team")?, file)?;
        }
        if let Some(value) = section.get("quota") {
            self.quota
                .apply(file.object(value, "limits.quota")?, file)?;
        }
        Ok(())
    }
}

impl AgentLimits {
    fn apply(&mut self, section: &Map<String, Value>, file: &File<'_>) -> Result<()> {
        let keys = ["costUsd", "tokens", "turns", "wallClockMs"];
        file.check_keys(section, "limits.agent.", &keys)?;
        let of = Of {
            section,
            file,
            prefix: "limits.agent",
        };
        self.turns = lower(self.turns, of.small("turns")?);
        self.wall_clock = lower(self.wall_clock, of.time("wallClockMs")?);
        self.tokens = lower(self.tokens, of.number("tokens", MOST_TOKENS)?);
        self.cost_usd = lower(self.cost_usd, of.money("costUsd")?);
        Ok(())
    }

    /// Both at once: the lower of each.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            turns: lower(self.turns, other.turns),
            wall_clock: lower(self.wall_clock, other.wall_clock),
            tokens: lower(self.tokens, other.tokens),
            cost_usd: lower(self.cost_usd, other.cost_usd),
        }
    }

    /// `self` where it says something, else `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            turns: self.turns.or(other.turns),
            wall_clock: self.wall_clock.or(other.wall_clock),
            tokens: self.tokens.or(other.tokens),
            cost_usd: self.cost_usd.or(other.cost_usd),
        }
    }
}

impl TeamLimits {
    fn apply(&mut self, section: &Map<String, Value>, file: &File<'_>) -> Result<()> {
        let keys = ["costUsd", "spawnsPerMinute", "tokens", "wallClockMs"];
        if section.contains_key("agents") {
            let why = "limits.team.agents: how many run at once is agents.maxAgents";
            return Err(file.error(why));
        }
        file.check_keys(section, "limits.team.", &keys)?;
        let of = Of {
            section,
            file,
            prefix: "limits.team",
        };
        self.spawns_per_minute = lower(self.spawns_per_minute, of.small("spawnsPerMinute")?);
        self.wall_clock = lower(self.wall_clock, of.time("wallClockMs")?);
        self.tokens = lower(self.tokens, of.number("tokens", MOST_TOKENS)?);
        self.cost_usd = lower(self.cost_usd, of.money("costUsd")?);
        Ok(())
    }
}

impl QuotaSettings {
    fn apply(&mut self, section: &Map<String, Value>, file: &File<'_>) -> Result<()> {
        let keys = ["firstPauseMs", "giveUpMs", "longestPauseMs"];
        file.check_keys(section, "limits.quota.", &keys)?;
        let of = Of {
            section,
            file,
            prefix: "limits.quota",
        };
        self.first_pause = of.time("firstPauseMs")?.unwrap_or(self.first_pause);
        self.longest_pause = of.time("longestPauseMs")?.unwrap_or(self.longest_pause);
        if let Some(value) = section.get("giveUpMs") {
            let ms = file.number(value, "limits.quota.giveUpMs", 0, WEEK_MS)?;
            self.give_up = Duration::from_millis(ms);
        }
        Ok(())
    }
}

/// The lower of two limits, of which each may be none.
fn lower<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) if other < one => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// One object of the section.
struct Of<'a> {
    section: &'a Map<String, Value>,
    file: &'a File<'a>,
    prefix: &'static str,
}

impl Of<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn number(&self, key: &str, most: u64) -> Result<Option<u64>> {
        match self.section.get(key) {
            // No limit here; another file may have one.
            None | Some(Value::Null) => Ok(None),
            Some(value) => self.file.number(value, &self.name(key), 1, most).map(Some),
        }
    }

    fn small(&self, key: &str) -> Result<Option<u32>> {
        let number = self.number(key, 1_000_000)?;
        Ok(number.and_then(|number| u32::try_from(number).ok()))
    }

    fn time(&self, key: &str) -> Result<Option<Duration>> {
        Ok(self.number(key, WEEK_MS)?.map(Duration::from_millis))
    }

    fn money(&self, key: &str) -> Result<Option<f64>> {
        match self.section.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let money = value.as_f64();
                let money = money.filter(|usd| *usd > 0.0 && *usd <= MOST_USD);
                money.map(Some).ok_or_else(|| {
                    let name = self.name(key);
                    let why = format!("{name} must be a number above 0, at most {MOST_USD}");
                    self.file.error(why)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn the_lowest_of_all_files_counts() {
        let settings = load(&[
            r#"{"limits":{"agent":{"turns":9,"tokens":500,"costUsd":2},"team":{"costUsd":50.5,"spawnsPerMinute":30}}}"#,
            r#"{"limits":{"agent":{"turns":20,"tokens":100,"costUsd":null,"wallClockMs":1000},"team":{"tokens":7,"wallClockMs":5}}}"#,
        ])
        .unwrap();
        let Limits { agent, team, quota } = settings.limits;
        assert_eq!(agent.turns, Some(9), "a later file does not raise it");
        assert_eq!(agent.tokens, Some(100));
        assert_eq!(agent.cost_usd, Some(2.0), "nor take it back");
        assert_eq!(agent.wall_clock, Some(Duration::from_secs(1)));
        assert_eq!(team.cost_usd, Some(50.5));
        assert_eq!(team.spawns_per_minute, Some(30));
        assert_eq!(
            (team.tokens, team.wall_clock),
            (Some(7), Some(Duration::from_millis(5)))
        );
        assert_eq!(quota, QuotaSettings::default());
        let none = load(&[]).unwrap().limits;
        assert_eq!(none, Limits::default());
    }

    #[test]
    fn what_is_said_for_one_agent_beats_the_settings_or_adds_to_them() {
        let settings = AgentLimits {
            turns: Some(5),
            tokens: Some(100),
            ..AgentLimits::default()
        };
        let said = AgentLimits {
            turns: Some(9),
            cost_usd: Some(1.0),
            ..AgentLimits::default()
        };
        let beats = said.or(settings);
        assert_eq!(
            (beats.turns, beats.tokens, beats.cost_usd),
            (Some(9), Some(100), Some(1.0))
        );
        let adds = said.and(settings);
        assert_eq!(
            (adds.turns, adds.tokens, adds.cost_usd),
            (Some(5), Some(100), Some(1.0))
        );
    }

    #[test]
    fn mistakes_are_refused_and_named() {
        for (bad, says) in [
            (
                r#"{"limits":{"agents":{}}}"#,
                "did you mean \"limits.agent\"",
            ),
            (
                r#"{"limits":{"agent":{"turn":1}}}"#,
                "did you mean \"limits.agent.turns\"",
            ),
            (r#"{"limits":{"agent":{"turns":0}}}"#, "limits.agent.turns"),
            (r#"{"limits":{"agent":{"costUsd":0}}}"#, "above 0"),
            (
                r#"{"limits":{"agent":{"costUsd":"1"}}}"#,
                "limits.agent.costUsd",
            ),
            (r#"{"limits":{"team":{"agents":3}}}"#, "agents.maxAgents"),
            (
                r#"{"limits":{"team":{"wallClockMs":-1}}}"#,
                "limits.team.wallClockMs",
            ),
            (
                r#"{"limits":{"quota":{"firstPauseMs":0}}}"#,
                "limits.quota.firstPauseMs",
            ),
            (r#"{"limits":{"quota":{"giveup":0}}}"#, "did you mean"),
        ] {
            let error = load(&[bad]).expect_err(bad).to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
