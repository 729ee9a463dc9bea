use std::time::Duration;

use clap::Args;
use mailbox::Priority;
use project::rights::may_control;
use serde_json::json;
use store::Failure;
use store::duration::DurationFormat;

use super::output;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN};

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The agent's id, the beginning of it, or its name
    #[arg(value_name = "AGENT")]
    who: String,
    /// The message
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// The message in one line [default: its first line]
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// now (interrupts what it does), next, or later
    #[arg(long, value_name = "WHEN", default_value = "next")]
    priority: String,
}

/// Sends a message to an agent; a finished agent resumes.
pub(crate) fn send(args: &SendArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    let meta = agents.find(&args.who)?;
    let priority: Priority = args.priority.parse()?;
    let first = args.text.lines().next().unwrap_or_default();
    let summary = args.summary.clone().unwrap_or_else(|| {
        let short: String = first.chars().take(200).collect();
        short
    });
    let from = context.agent_name().clone();
    let sent = agents.send(&meta, &from, args.text.clone(), Some(summary), priority)?;
    let name = sent.meta.address().to_owned();
    let alone = !sent.meta.runtime.kind.has_model();
    context.out.done(
        || {
            json!({"message": {
                "id": sent.posted.id, "seq": sent.posted.seq, "to": name,
                "resumed": sent.resumed,
            }})
        },
        || {
            let what = match (sent.resumed, alone) {
                (true, _) => "it had ended and resumes",
                (false, true) => "it runs a command, which sees it with `ccb mail read`",
                (false, false) => "it gets it at its next step",
            };
            format!("{GREEN}✔{GREEN:#} sent to {BOLD}{name}{BOLD:#} {DIM}({what}){DIM:#}")
        },
    )
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The agent's id, the beginning of it, or its name
    #[arg(value_name = "AGENT")]
    who: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// How long it may take to end by itself; a plain number means milliseconds
    /// [default: agents.stopGraceMs, 5s]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = |text: &str| DurationFormat::MILLISECONDS.read(text),
    )]
    grace: Option<Duration>,
}

/// Ends a running agent.
pub(crate) fn stop(args: &StopArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    let meta = agents.find(&args.who)?;
    may_control(&meta, "stop", context)?;
    let by = context.agent().to_owned();
    let outcome = agents.stop(&meta, &by, args.reason.clone(), args.grace)?;
    let word = outcome.exit.status.as_str();
    context.out.done(
        || json!({ "agent": outcome.to_json() }),
        || {
            format!(
                "{GREEN}✔{GREEN:#} {BOLD}{}{BOLD:#} is {word}",
                outcome.meta.address()
            )
        },
    )
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The agent's id, the beginning of it, or its name
    #[arg(value_name = "AGENT")]
    who: String,
    /// A message for it
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,
    /// Do not wait for its result
    #[arg(long, visible_alias = "bg")]
    background: bool,
}

/// Resumes a finished agent.
pub(crate) fn resume(args: &ResumeArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    let meta = agents.find(&args.who)?;
    may_control(&meta, "resume", context)?;
    let run = agents.run(&meta.agent_id);
    let running = || {
        Failure::refused("running", format!("agent {} is running", meta.agent_id))
            .with_hint("`ccb agent send` gives it a message")
    };
    if agents.is_alive(&meta)? {
        return Err(running());
    }
    if let Some(text) = &args.text {
        agents.leave_message(&meta, context.agent_name(), text.clone())?;
    }
    let Some(launched) = agents.resume(&run, args.background)? else {
        return Err(running());
    };
    if !args.background {
        let limit = Some(context.agent_settings().auto_background);
        return output::wait_and_print(&agents, launched, limit, context);
    }
    let answer = launched.to_json(&run.prompt()?);
    let name = launched.meta.address().to_owned();
    context.out.done(
        || json!({ "agent": answer }),
        || format!("{GREEN}✔{GREEN:#} {BOLD}{name}{BOLD:#} resumes"),
    )
}
