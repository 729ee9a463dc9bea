//! Limits on what one agent may use.

use std::time::Duration;

use clap::Args;
use store::duration::DurationFormat;
use store::settings::{AgentLimits, MOST_USD};

const DEADLINE: DurationFormat = DurationFormat::WITH_UNIT.at_least(Duration::from_millis(1));

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits [default: limits.agent in the settings]")]
pub(super) struct LimitArgs {
    /// End it after so many calls of its model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// End it when it has used so many tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// End it when it has cost so many US dollars
    #[arg(long, value_name = "USD", value_parser = money)]
    max_cost: Option<f64>,
    /// End it after this time, such as 90s, 15m or 1h30m
    #[arg(long, value_name = "TIME", value_parser = |text: &str| DEADLINE.read(text))]
    deadline: Option<Duration>,
}

impl LimitArgs {
    pub(super) fn limits(&self) -> AgentLimits {
        AgentLimits {
            turns: self.max_turns,
            wall_clock: self.deadline,
            tokens: self.max_tokens,
            cost_usd: self.max_cost,
        }
    }
}

fn money(text: &str) -> Result<f64, String> {
    let usd: Option<f64> = text.parse().ok();
    usd.filter(|usd| *usd > 0.0 && *usd <= MOST_USD)
        .ok_or_else(|| format!("must be a number above 0, at most {MOST_USD}"))
}
