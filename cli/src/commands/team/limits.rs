use clap::Args;
use runs::fleet::Account;
use serde_json::{Value, json};
use store::Failure;

use crate::context::Context;
use crate::cost::short_count;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct LimitsArgs {
    /// Reset the counters and let agents continue
    #[arg(long)]
    reset: bool,
}

pub(crate) fn run(args: &LimitsArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    let fleet = agents.fleet();
    if args.reset {
        fleet.reset()?;
    }
    let account = fleet.account()?;
    let team = agents.team_name().as_str();
    context.out.done(
        || json!({ "limits": to_json(&account, team) }),
        || text(&account, team),
    )
}

fn to_json(account: &Account, team: &str) -> Value {
    let mut answer = json!({ "team": team, "usage": account.used.to_json() });
    if let Some(since) = &account.since {
        answer["since"] = since.as_str().into();
    }
    if let Some((until, reason)) = &account.paused {
        answer["paused"] = json!({ "until": until, "reason": reason });
    }
    answer
}

fn text(account: &Account, team: &str) -> String {
    let used = &account.used;
    let mut text = format!(
        "{BOLD}{team}{BOLD:#}  {} tokens, {}",
        used.total_tokens(),
        match used.known_cost() {
            Some(_) => used.cost_in_words(),
            None => "cost unknown".to_owned(),
        }
    );
    if used.cache_read_tokens > 0 {
        let cached = short_count(used.cache_read_tokens);
        text.push_str(&format!(" {DIM}({cached} read from cache){DIM:#}"));
    }
    if let Some(since) = &account.since {
        text.push_str(&format!("  {DIM}at work since {since}{DIM:#}"));
    }
    if let Some((until, reason)) = &account.paused {
        let reason = clean_line(reason);
        text.push_str(&format!(
            "\n  {YELLOW}held back until {until}{YELLOW:#}: {reason}"
        ));
    }
    text
}
