//! The settings of a run's starter, kept with it: a settings file that is broken later must not
//! keep the run from ending well.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::settings::{Limits, LockMode, MatesIn, QuotaSettings, Settings, TeamLimits};

/// The engine's options for one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunOptions {
    /// True if locks are those every tool takes, not the kernel's.
    pub shared_locks: bool,
    /// True if changes of tasks are on the disk before they count.
    pub board_durable: bool,
    /// True if messages are on the disk before they count.
    pub mail_durable: bool,
    /// True if changes of worktrees are on the disk before they count.
    pub trees_durable: bool,
    /// Maximum wait for a lock, in milliseconds.
    pub lock_timeout_ms: u64,
    /// Maximum time for a stopped agent to end by itself, in milliseconds.
    pub stop_grace_ms: u64,
    /// Maximum bytes of an agent's output that are kept.
    pub output_max_bytes: u64,
    /// Maximum agents at once; `None` without a limit.
    pub max_agents: Option<usize>,
    /// True if agents that are not confined have a `.git` of their own as well.
    pub private_git: bool,
    /// Days for which removed worktrees are kept.
    pub trash_days: u32,
    /// Days for which unused worktrees are kept.
    pub gc_days: u32,
    /// The largest rescued change.
    pub rescue_max_bytes: u64,
    /// The limits of the whole team.
    pub fleet: FleetOptions,
    /// True if a hook itself called ccb, so that hooks have no say.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_hook: bool,
    /// The place where agents on `native` run.
    #[serde(skip_serializing_if = "is_usual")]
    pub mates_in: MatesIn,
    /// Maximum bytes of memory of one of them, where they share a process.
    pub mate_max_bytes: u64,
    /// Silence in milliseconds after which one of them is ended.
    pub mate_blocked_ms: u64,
    /// The place of board and mail, if several machines share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedPlace>,
    /// Fields written by a later version.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A board and mail that several machines share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedPlace {
    /// The address of the database, without a password.
    pub board: String,
    /// Maximum silence of a run before its tasks are given to others, in milliseconds.
    pub lease_ms: u64,
    /// The git remote by which results get to other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
}

impl SharedPlace {
    /// Maximum silence of a run.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_usual(mates: &MatesIn) -> bool {
    *mates == MatesIn::default()
}

impl Default for RunOptions {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}

impl From<&Settings> for RunOptions {
    fn from(settings: &Settings) -> Self {
        Self {
            shared_locks: settings.lock_mode == LockMode::Shared,
            board_durable: settings.durable,
            mail_durable: settings.mail_durable,
            trees_durable: settings.worktree.durable,
            lock_timeout_ms: ms(settings.lock_timeout),
            stop_grace_ms: ms(settings.agents.stop_grace),
            output_max_bytes: settings.agents.output_max_bytes,
            max_agents: settings.agents.max_agents,
            private_git: settings.worktree.private_git,
            trash_days: settings.worktree.trash_days,
            gc_days: settings.worktree.gc_days,
            rescue_max_bytes: settings.worktree.rescue_max_bytes,
            fleet: FleetOptions::from(&settings.limits),
            in_hook: false,
            mates_in: settings.agents.mates_in,
            mate_max_bytes: settings.agents.mate_max_bytes,
            mate_blocked_ms: ms(settings.agents.mate_blocked),
            shared: None,
            other: Map::new(),
        }
    }
}

/// The limits of a team, and its pauses.
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
    /// The limits of the team.
    pub fn team(&self) -> TeamLimits {
        TeamLimits {
            spawns_per_minute: self.spawns_per_minute,
            wall_clock: self.wall_clock_ms.map(Duration::from_millis),
            tokens: self.tokens,
            cost_usd: self.cost_usd,
        }
    }

    /// True if the team has to be done by a time.
    pub fn has_deadline(&self) -> bool {
        self.wall_clock_ms.is_some()
    }

    /// The length of the pause after `step` pauses that did not help.
    pub fn pause(&self, step: u32) -> Duration {
        let factor = 1_u64.checked_shl(step).unwrap_or(u64::MAX);
        let ms = self.first_pause_ms.saturating_mul(factor);
        Duration::from_millis(ms.min(self.longest_pause_ms.max(self.first_pause_ms)))
    }

    /// Time after which an agent that is held up ends.
    pub fn give_up(&self) -> Duration {
        Duration::from_millis(self.give_up_ms)
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
