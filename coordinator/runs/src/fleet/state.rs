//! The governor's state and its transitions: no files, no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::clock::{parse_rfc3339, rfc3339};
use swarm::run::{FleetOptions, Meta};
use swarm::runtime::Usage;

/// The version of the format that this code writes.
pub(super) const VERSION: u64 = 1;
/// Spawns are counted over this long.
const MINUTE: i64 = 60_000;
/// Milliseconds that the agent that tries may take before another one tries.
const TRYING: i64 = 5 * MINUTE;
/// Maximum duration of one wait for a provider.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of a stored reason.
const REASON: usize = 300;

/// The answer to the question if an agent may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// An agent may start.
    Open,
    /// A provider refuses, and all agents wait.
    Paused {
        /// The end of the pause, in ms since the epoch; then an agent asks again.
        until: i64,
        /// The provider's words.
        reason: String,
    },
    /// Too many were started within a minute.
    Crowded {
        /// The time when there is room again, in ms since the epoch.
        until: i64,
        /// Maximum number of starts per minute.
        most: u32,
    },
    /// The team has used up what it may.
    Spent {
        /// The limit, in words.
        what: String,
    },
}

impl Gate {
    /// The time to ask again; `None` if that does not help.
    pub fn until(&self) -> Option<i64> {
        match self {
            Self::Paused { until, .. } | Self::Crowded { until, .. } => Some(*until),
            Self::Open | Self::Spent { .. } => None,
        }
    }
}

/// Times are written as everywhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Time(i64);

impl Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = parse_rfc3339(&text).map(Self);
        time.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no time")))
    }
}

/// A pause of all agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pause {
    since: Time,
    until: Time,
    reason: String,
    /// Number of pauses before this one that did not help.
    step: u32,
    /// The agent that tries when the pause is over; `None` before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probe: Option<Probe>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Probe {
    by: String,
    since: Time,
}

/// The last pause, in case the next one comes soon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Calm {
    since: Time,
    step: u32,
}

/// The state that the governor stores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FleetState {
    v: u64,
    /// The usage before the account was opened.
    before: Usage,
    /// The usage of lives that have ended.
    settled: Usage,
    /// The usage so far of each other life.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lives: BTreeMap<String, Usage>,
    /// The times of the starts in the last minute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spawns: Vec<Time>,
    /// The time of the first start.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause: Option<Pause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calm: Option<Calm>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl FleetState {
    /// The state rebuilt from the usage that the runs record, for an account that is lost. A pause
    /// is forgotten: if it is not over, the next refusal begins another.
    pub(super) fn rebuilt(runs: &[Meta]) -> Self {
        let mut state = Self::default();
        for meta in runs {
            state
                .lives
                .insert(meta.life_id(), meta.usage.since(&meta.used_before));
            if meta.life > 1 {
                let earlier = format!("{}#before-{}", meta.agent_id, meta.life);
                state.lives.insert(earlier, meta.used_before);
            }
        }
        let starts = runs
            .iter()
            .filter_map(|meta| parse_rfc3339(&meta.created_at));
        state.since = starts.min().map(Time);
        state
    }

    pub(super) fn version(&self) -> u64 {
        self.v
    }

    pub(super) fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    pub(super) fn since(&self) -> Option<String> {
        self.since.map(|since| rfc3339(since.0))
    }

    /// True if the state contains a time in the future: the clock was set back.
    pub(super) fn is_ahead_of(&self, now: i64) -> bool {
        self.pause.as_ref().is_some_and(|pause| now < pause.since.0)
    }

    /// A clock that was set back makes nothing last longer than it was to last.
    pub(super) fn heed_clock(&mut self, now: i64) {
        self.v = VERSION.max(self.v);
        if let Some(pause) = &mut self.pause {
            if now < pause.since.0 {
                let length = pause.until.0 - pause.since.0;
                (pause.since, pause.until) = (Time(now), Time(now + length));
            }
            if let Some(probe) = &mut pause.probe {
                probe.since = Time(probe.since.0.min(now));
            }
        }
        if let Some(calm) = &mut self.calm {
            calm.since = Time(calm.since.0.min(now));
        }
        self.since = self.since.map(|since| Time(since.0.min(now)));
        self.spawns
            .retain(|at| (now - MINUTE < at.0) && (at.0 <= now));
    }

    /// Everything that was used since the account was opened.
    pub(super) fn total(&self) -> Usage {
        self.ever().since(&self.before)
    }

    fn ever(&self) -> Usage {
        let mut total = self.settled;
        for used in self.lives.values() {
            total.add(used);
        }
        total
    }

    /// The limit of the team that is reached, in words; `None` if there is none.
    pub(super) fn spent(&self, now: i64, options: &FleetOptions) -> Option<String> {
        let (limits, used) = (options.team(), self.total());
        let tokens = used.total_tokens();
        if let Some(most) = limits.tokens.filter(|most| tokens >= *most) {
            let why = format!("the team has reached its limit of {most} tokens: {tokens} are used");
            return Some(why);
        }
        let cost = used.cost_usd;
        if let Some(most) = limits.cost_usd.filter(|most| cost >= *most) {
            let why = format!("the team has reached its limit of ${most:.2}: ${cost:.2} are spent");
            return Some(why);
        }
        self.late(now, options)
    }

    /// The reason why the team's time is over; `None` if it is not.
    pub(super) fn late(&self, now: i64, options: &FleetOptions) -> Option<String> {
        let worked = now - self.since.map_or(now, |since| since.0);
        let limit = options.team().wall_clock?;
        let over = u128::try_from(worked).is_ok_and(|worked| worked >= limit.as_millis());
        over.then(|| {
            format!(
                "the team has reached its limit of {} s",
                limit.as_secs_f64()
            )
        })
    }

    /// The gate at `now`.
    pub(super) fn gate(&self, now: i64, options: &FleetOptions) -> Gate {
        if let Some(what) = self.spent(now, options) {
            return Gate::Spent { what };
        }
        if let Some(pause) = &self.pause {
            let length = pause.until.0 - pause.since.0;
            // Never longer than the pause is, whatever the clock says.
            let until = pause.until.0.min(now + length);
            let trying = pause.probe.as_ref();
            let trying = trying.filter(|probe| now < probe.since.0 + TRYING);
            let until = match trying {
                _ if now < until => until,
                Some(probe) => probe.since.0 + TRYING,
                None => return self.crowd(now, options),
            };
            let reason = pause.reason.clone();
            return Gate::Paused { until, reason };
        }
        self.crowd(now, options)
    }

    fn crowd(&self, now: i64, options: &FleetOptions) -> Gate {
        let Some(most) = options.team().spawns_per_minute else {
            return Gate::Open;
        };
        let recent = self.spawns.iter().map(|at| at.0);
        let recent: Vec<i64> = recent
            .filter(|at| (now - MINUTE..=now).contains(at))
            .collect();
        let number = usize::try_from(most).unwrap_or(usize::MAX);
        match recent.len().checked_sub(number) {
            // The start that must be a minute old before another one may follow.
            Some(n) => Gate::Crowded {
                until: recent.get(n).map_or(now, |at| at + MINUTE),
                most,
            },
            None => Gate::Open,
        }
    }

    /// The agent `by` is about to start; it counts if it may. A provider's pause does not hold back
    /// an agent without a model.
    pub(super) fn admit(
        &mut self,
        by: &str,
        model: bool,
        now: i64,
        options: &FleetOptions,
        is_alive: impl Fn(&str) -> bool,
    ) -> Gate {
        if let Some(what) = self.spent(now, options) {
            return Gate::Spent { what };
        }
        let gate = match self.crowd(now, options) {
            Gate::Open if model => self.enter(by, now, is_alive),
            other => other,
        };
        if gate == Gate::Open {
            self.spawns.push(Time(now));
            self.since.get_or_insert(Time(now));
        }
        gate
    }

    /// The agent `by` is about to begin a turn. When the pause's time is over the first agent that
    /// asks tries.
    pub(super) fn enter(&mut self, by: &str, now: i64, is_alive: impl Fn(&str) -> bool) -> Gate {
        let Some(pause) = &mut self.pause else {
            return Gate::Open;
        };
        let reason = || pause.reason.clone();
        if now < pause.until.0 {
            let (until, reason) = (pause.until.0, reason());
            return Gate::Paused { until, reason };
        }
        match &pause.probe {
            Some(probe) if probe.by == by => Gate::Open,
            Some(probe) if now < probe.since.0 + TRYING && is_alive(&probe.by) => Gate::Paused {
                until: probe.since.0 + TRYING,
                reason: reason(),
            },
            _ => {
                pause.probe = Some(Probe {
                    by: by.to_owned(),
                    since: Time(now),
                });
                Gate::Open
            }
        }
    }

    /// True if `by` is the agent that tries.
    pub(super) fn tries(&self, by: &str) -> bool {
        let probe = self.pause.as_ref().and_then(|pause| pause.probe.as_ref());
        probe.is_some_and(|probe| probe.by == by)
    }

    /// A provider refused `by`.
    pub(super) fn refused(
        &mut self,
        by: &str,
        now: i64,
        retry_after: Option<Duration>,
        reason: &str,
        options: &FleetOptions,
    ) {
        let asked = retry_after.map(|wait| wait.min(LONGEST)).map(ms);
        let step = match &mut self.pause {
            // A call that was under way when the pause began: the same refusal once more.
            Some(pause) if now < pause.until.0 => {
                let until = asked.map_or(pause.until.0, |wait| now + wait);
                pause.until = Time(pause.until.0.max(until));
                return;
            }
            Some(pause) => match &pause.probe {
                // Another agent tries; the pause it tries to end continues.
                Some(probe) if probe.by != by => pause.step,
                _ => pause.step.saturating_add(1),
            },
            None => match &self.calm {
                // It helped, but not for long.
                Some(calm) if now - calm.since.0 < ms(options.pause(calm.step)) => {
                    calm.step.saturating_add(1)
                }
                _ => 0,
            },
        };
        let length = ms(options.pause(step)).max(asked.unwrap_or(0)).max(1);
        self.calm = None;
        self.pause = Some(Pause {
            since: Time(now),
            until: Time(now + length),
            reason: reason.chars().take(REASON).collect(),
            step,
            probe: None,
        });
    }

    /// The model answered `by`; says whether that ends a pause.
    pub(super) fn answered(&mut self, by: &str, now: i64) -> bool {
        if !self.tries(by) {
            return false;
        }
        if let Some(pause) = self.pause.take() {
            self.calm = Some(Calm {
                since: Time(now),
                step: pause.step,
            });
        }
        true
    }

    /// Removes `by`, which is gone; true if another agent has to try.
    pub(super) fn left(&mut self, by: &str) -> bool {
        let tried = self.tries(by);
        if tried && let Some(pause) = &mut self.pause {
            pause.probe = None;
        }
        tried
    }

    pub(super) fn clear(&mut self) {
        (self.pause, self.calm) = (None, None);
    }

    /// A new account: what was used so far does not count any more.
    pub(super) fn reset(&mut self) {
        self.clear();
        self.before = self.ever();
        self.since = None;
        self.spawns.clear();
    }

    /// Notes what a life has used so far, in all. Saying it twice changes nothing.
    pub(super) fn used(&mut self, life: &str, used: &Usage) {
        if *used == Usage::default() && !self.lives.contains_key(life) {
            return;
        }
        self.lives.insert(life.to_owned(), *used);
    }

    /// Adds up the lives that will report no more usage.
    pub(super) fn forget_over(&mut self, is_active: impl Fn(&str) -> bool) {
        let Self { lives, settled, .. } = self;
        lives.retain(|life, used| {
            let stays = is_active(life);
            if !stays {
                settled.add(used);
            }
            stays
        });
    }
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4)
}
