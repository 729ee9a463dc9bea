use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use runs::{Agents, Launched, Outcome};
use serde_json::json;
use store::duration::DurationFormat;
use store::{Category, Failure};
use swarm::run::{ExitReason, ExitStatus, Meta, RunState};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, RED, YELLOW, clean, clean_line};
use crate::signals::Signals;

/// Poll interval for a signal while the command waits.
const SLICE: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// The agent's id, the beginning of it, or its name
    #[arg(value_name = "AGENT")]
    who: String,
    /// Do not wait for its end
    #[arg(long)]
    no_wait: bool,
    /// Wait at most this long, such as 500ms or 10m; a plain number means milliseconds
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30s",
        value_parser = |text: &str| DurationFormat::MILLISECONDS.read(text),
        conflicts_with = "no_wait"
    )]
    timeout: Duration,
}

pub(crate) fn run(args: &OutputArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    let meta = agents.find(&args.who)?;
    let limit = match args.no_wait {
        true => Duration::ZERO,
        false => args.timeout,
    };
    if let Some(output) = agents.output(&meta, context.agent(), limit)? {
        let exit = print(&output.outcome, context)?;
        output.passed_on()?;
        return Ok(exit);
    }
    so_far(&agents, &meta, context)?;
    Ok(if args.no_wait {
        Exit::Done
    } else {
        Exit::Not(Category::TimedOut)
    })
}

/// Waits for the result of a new agent, and prints it. After `limit` the agent continues in the
/// background.
pub(super) fn wait_and_print(
    agents: &Agents,
    launched: Launched,
    limit: Option<Duration>,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let signals = Signals::catch()?;
    let started = Instant::now();
    let mut progress = Progress::new(&launched, context);
    loop {
        let left = match limit {
            Some(limit) => limit.saturating_sub(started.elapsed()),
            None => SLICE,
        };
        if let Some(outcome) = agents.wait(&launched, left.min(SLICE))? {
            progress.clear();
            let exit = print(&outcome, context)?;
            agents.delivered(&launched)?;
            return Ok(exit);
        }
        if let Some(exit) = signals.came() {
            progress.clear();
            context.out.note("stopping the agent …");
            let by = context.agent().to_owned();
            let outcome = agents.stop(&launched.meta, &by, Some("interrupted".into()), None)?;
            print(&outcome, context)?;
            agents.delivered(&launched)?;
            return Ok(exit);
        }
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            progress.clear();
            return background(agents, launched, context);
        }
        progress.show(started.elapsed());
    }
}

/// Waits until an agent in the background ends or, if it is a teammate, until its turn is over and
/// it waits for mail. The agent continues if the command is interrupted.
pub(super) fn wait_until_idle(
    agents: &Agents,
    meta: &Meta,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let signals = Signals::catch()?;
    loop {
        if let Some(output) = agents.output(meta, context.agent(), SLICE)? {
            let exit = print(&output.outcome, context)?;
            output.passed_on()?;
            return Ok(exit);
        }
        if agents.run(&meta.agent_id).meta()?.state == RunState::Idle {
            so_far(agents, meta, context)?;
            return Ok(Exit::Done);
        }
        if let Some(exit) = signals.came() {
            return Ok(exit);
        }
    }
}

/// Prints what an unfinished agent has said.
fn so_far(agents: &Agents, meta: &Meta, context: &mut Context) -> Result<(), Failure> {
    let run = agents.run(&meta.agent_id);
    let so_far = swarm::run::tail_of_output(&run, 16 * 1024)?;
    let state = run.meta()?.state.as_str();
    let id = &meta.agent_id;
    context.out.answer(
        || {
            json!({"agent": {
                "status": state, "agentId": id, "content": so_far,
                "outputFile": run.output_path(),
            }})
        },
        || clean(so_far.trim_end()),
    )?;
    if !context.out.is_json() {
        // On stderr, because the agent could say the same.
        context.out.note(&format!("{DIM}[{id} is {state}]{DIM:#}"));
    }
    Ok(())
}

/// Leaves the agent running in the background.
fn background(agents: &Agents, launched: Launched, context: &mut Context) -> Result<Exit, Failure> {
    let answer = launched.to_json(&launched.run.prompt()?);
    let id = launched.meta.agent_id.clone();
    if let Some(outcome) = agents.to_background(launched)? {
        return print(&outcome, context);
    }
    let output = context.out.command(&format!("agent output {id}"));
    context.out.done(
        || json!({ "agent": answer }),
        || {
            format!(
                "{YELLOW}◐{YELLOW:#} {BOLD}{id}{BOLD:#} takes long and continues in the \
                 background\n  {DIM}wait for its result: {output}{DIM:#}"
            )
        },
    )
}

/// Prints how an agent ended.
pub(super) fn print(outcome: &Outcome, context: &mut Context) -> Result<Exit, Failure> {
    let exit = match (outcome.exit.status, outcome.exit.reason) {
        (ExitStatus::Completed, _) => Exit::Done,
        (_, Some(ExitReason::Limit)) => Exit::Not(Category::Budget),
        (_, Some(ExitReason::Quota)) => Exit::Not(Category::Quota),
        _ => Exit::Not(Category::Failed),
    };
    if context.out.is_json() {
        context.out.json(&json!({ "agent": outcome.to_json() }))?;
        return Ok(exit);
    }
    context.out.text(&clean(&outcome.exit.text()))?;
    context.out.note(&verdict(outcome));
    Ok(exit)
}

/// One line for people that says how the agent ended.
fn verdict(outcome: &Outcome) -> String {
    let Outcome { meta, exit } = outcome;
    let mark = match exit.status {
        ExitStatus::Completed => format!("{GREEN}✔{GREEN:#}"),
        ExitStatus::Killed => format!("{YELLOW}⊘{YELLOW:#}"),
        _ => format!("{RED}✘{RED:#}"),
    };
    let seconds = Duration::from_millis(exit.duration_ms).as_secs_f64();
    let mut text = format!(
        "{mark} {BOLD}{}{BOLD:#} {} after {seconds:.1} s",
        meta.address(),
        exit.status.as_str()
    );
    if let Some(tree) = &meta.worktree
        && let Some(outcome) = &tree.outcome
    {
        let what = match outcome.kept {
            true if super::is_gone(tree) => "its worktree was kept and is removed since".to_owned(),
            true => format!("its worktree {} is kept", clean_line(&tree.path)),
            false => "its worktree is removed".to_owned(),
        };
        text.push_str(&format!(
            "\n  {DIM}{what}: {}{DIM:#}",
            clean_line(&outcome.why)
        ));
    }
    text
}

/// A line on the terminal that shows that the agent still works.
struct Progress {
    what: String,
    shown: bool,
    enabled: bool,
}

impl Progress {
    fn new(launched: &Launched, context: &Context) -> Self {
        let meta = &launched.meta;
        Self {
            what: format!("{} {}", meta.address(), clean_line(&meta.description)),
            shown: false,
            enabled: !context.out.is_json() && std::io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, elapsed: Duration) {
        if self.enabled && elapsed >= Duration::from_secs(1) {
            let seconds = elapsed.as_secs();
            let line: String = format!("⋯ {} · {seconds} s", self.what);
            let line: String = line.chars().take(78).collect();
            write!(anstream::stderr(), "\r\x1b[2K{DIM}{line}{DIM:#}").ok();
            self.shown = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            write!(anstream::stderr(), "\r\x1b[2K").ok();
        }
    }
}
