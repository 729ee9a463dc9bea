//! `limits`: the resources that agents may use, each alone and all together, and the pauses of all
//! agents when a provider refuses.
//!
//! Of several files the lowest limit counts: what one forbids, another cannot allow.

use std::time::Duration;

use serde_json::Value;

use super::set;
use crate::fields::{Fields, Read};

/// Limits of one life of an agent. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AgentLimits {
    /// `turns`: maximum of model calls.
    pub turns: Option<u32>,
    /// `wallClockMs`: maximum duration.
    pub wall_clock: Option<Duration>,
    /// `tokens`: read and written together.
    pub tokens: Option<u64>,
    /// `costUsd`: maximum cost, as far as the agent's runtime reports it.
    pub cost_usd: Option<f64>,
}

/// Limits of all agents of a team together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TeamLimits {
    /// `spawnsPerMinute`: maximum of agents started within a minute.
    pub spawns_per_minute: Option<u32>,
    /// `wallClockMs`: maximum duration, counted from the start of the first agent.
    pub wall_clock: Option<Duration>,
    /// `tokens`: read and written together.
    pub tokens: Option<u64>,
    /// `costUsd`: maximum cost, as far as the runtimes report it.
    pub cost_usd: Option<f64>,
}

/// The reaction to a provider that refuses for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaSettings {
    /// `firstPauseMs`: the first pause of all agents; each further one is twice as long.
    pub first_pause: Duration,
    /// `longestPauseMs`: the longest pause, unless the provider asks for a longer one.
    pub longest_pause: Duration,
    /// `giveUpMs`: uninterrupted delay after which an agent ends.
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
    pub(super) fn read(&mut self, section: &Fields<'_>) -> Read<()> {
        section.check_keys(&["agent", "quota", "team"])?;
        if let Some(section) = section.section("agent")? {
            self.agent.read(&section)?;
        }
        if let Some(section) = section.section("team")? {
            self.team.read(&section)?;
        }
        if let Some(section) = section.section("quota")? {
            self.quota.read(&section)?;
        }
        Ok(())
    }
}

impl AgentLimits {
    fn read(&mut self, section: &Fields<'_>) -> Read<()> {
        section.check_keys(&["costUsd", "tokens", "turns", "wallClockMs"])?;
        self.turns = lower(self.turns, small(section, "turns")?);
        self.wall_clock = lower(self.wall_clock, time(section, "wallClockMs")?);
        self.tokens = lower(self.tokens, number(section, "tokens", MOST_TOKENS)?);
        self.cost_usd = lower(self.cost_usd, money(section, "costUsd")?);
        Ok(())
    }

    /// The lower of each pair of limits.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            turns: lower(self.turns, other.turns),
            wall_clock: lower(self.wall_clock, other.wall_clock),
            tokens: lower(self.tokens, other.tokens),
            cost_usd: lower(self.cost_usd, other.cost_usd),
        }
    }

    /// The limits of `self`, and those of `other` where `self` has none.
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
    fn read(&mut self, section: &Fields<'_>) -> Read<()> {
        if section.value("agents").is_some() {
            let why = "limits.team.agents: how many run at once is agents.maxAgents";
            return Err(section.wrong("agents", why));
        }
        section.check_keys(&["costUsd", "spawnsPerMinute", "tokens", "wallClockMs"])?;
        let spawns = small(section, "spawnsPerMinute")?;
        self.spawns_per_minute = lower(self.spawns_per_minute, spawns);
        self.wall_clock = lower(self.wall_clock, time(section, "wallClockMs")?);
        self.tokens = lower(self.tokens, number(section, "tokens", MOST_TOKENS)?);
        self.cost_usd = lower(self.cost_usd, money(section, "costUsd")?);
        Ok(())
    }
}

impl QuotaSettings {
    fn read(&mut self, section: &Fields<'_>) -> Read<()> {
        section.check_keys(&["firstPauseMs", "giveUpMs", "longestPauseMs"])?;
        set(&mut self.first_pause, time(section, "firstPauseMs")?);
        set(&mut self.longest_pause, time(section, "longestPauseMs")?);
        set(&mut self.give_up, section.millis("giveUpMs", 0..=WEEK_MS)?);
        Ok(())
    }
}

/// The lower of two limits, either of which may be missing.
fn lower<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) if other < one => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// A limit from 1 to `most`. `null` is no limit here; another file may set one.
fn number(section: &Fields<'_>, key: &str, most: u64) -> Read<Option<u64>> {
    match section.is_null(key) {
        true => Ok(None),
        false => section.number(key, 1..=most),
    }
}

fn small(section: &Fields<'_>, key: &str) -> Read<Option<u32>> {
    let number = number(section, key, 1_000_000)?;
    Ok(number.and_then(|number| u32::try_from(number).ok()))
}

fn time(section: &Fields<'_>, key: &str) -> Read<Option<Duration>> {
    match section.is_null(key) {
        true => Ok(None),
        false => section.millis(key, 1..=WEEK_MS),
    }
}

fn money(section: &Fields<'_>, key: &str) -> Read<Option<f64>> {
    if section.is_null(key) {
        return Ok(None);
    }
    let what = format!("a number above 0, at most {MOST_USD}");
    let usd = |value: &Value| value.as_f64().filter(|usd| *usd > 0.0 && *usd <= MOST_USD);
    section.read(key, &what, usd)
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
