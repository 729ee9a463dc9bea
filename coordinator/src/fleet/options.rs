use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::settings::{Limits, QuotaSettings, TeamLimits};

/// What a team may use and how long pauses are: the settings of whoever started a run, kept with
/// it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FleetOptions {
    spawns_per_minute: Option<u32>,
    wall_clock_ms: Option<u64>,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    first_pause_ms: u64,
    longest_pause_ms: u64,
    give_up_ms: u64,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self::from(&Limits::default())
    }
}

impl From<&Limits> for FleetOptions {
    fn from(limits: &Limits) -> Self {
        let TeamLimits {
            spawns_per_minute,
            wall_clock,
            tokens,
            cost_usd,
        } = limits.team;
        let QuotaSettings {
            first_pause,
            longest_pause,
            give_up,
        } = limits.quota;
        Self {
            spawns_per_minute,
            wall_clock_ms: wall_clock.map(ms),
            tokens,
            cost_usd,
            first_pause_ms: ms(first_pause),
            longest_pause_ms: ms(longest_pause),
            give_up_ms: ms(give_up),
        }
    }
}

impl FleetOptions {
    pub(super) fn team(&self) -> TeamLimits {
        TeamLimits {
            spawns_per_minute: self.spawns_per_minute,
            wall_clock: self.wall_clock_ms.map(Duration::from_millis),
            tokens: self.tokens,
            cost_usd: self.cost_usd,
        }
    }

    pub(super) fn has_deadline(&self) -> bool {
        self.wall_clock_ms.is_some()
    }

    /// How long the pause is after so many that did not help.
    pub(super) fn pause(&self, step: u32) -> Duration {
        let factor = 1_u64.checked_shl(step).unwrap_or(u64::MAX);
        let ms = self.first_pause_ms.saturating_mul(factor);
        Duration::from_millis(ms.min(self.longest_pause_ms.max(self.first_pause_ms)))
    }

    /// After how long an agent that is held up ends.
    pub fn give_up(&self) -> Duration {
        Duration::from_millis(self.give_up_ms)
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
