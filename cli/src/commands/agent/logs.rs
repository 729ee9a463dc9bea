use std::time::Duration;

use clap::Args;
use serde_json::Value;
use store::Failure;
use store::watch::DirWatch;
use swarm::run::{Entry, Record, RunDir, read_transcript};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, clean_line, failure_lines, hanging};
use crate::signals::Signals;

/// Poll interval for a signal while the command follows a log.
const SLICE: Duration = Duration::from_millis(250);
/// Maximum characters shown of a tool's answer.
const SHOWN: usize = 400;

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The agent's id, the beginning of it, or its name
    #[arg(value_name = "AGENT")]
    who: String,
    /// Follow it until it ends
    #[arg(short, long)]
    follow: bool,
    /// Only the last N entries
    #[arg(short = 'n', long, value_name = "N")]
    tail: Option<usize>,
}

pub(crate) fn run(args: &LogsArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    let meta = agents.find(&args.who)?;
    let run = agents.run(&meta.agent_id);
    let signals = Signals::catch()?;
    let mut watch = args.follow.then(|| DirWatch::new(run.path()));
    let (mut records, mut offset) = read_transcript(&run, 0)?;
    if let Some(tail) = args.tail {
        let surplus = records.len().saturating_sub(tail);
        records.drain(..surplus);
    }
    loop {
        for record in &records {
            print(record, context)?;
        }
        let Some(watch) = &mut watch else {
            return end(&run, context);
        };
        // Read before the transcript, so that the last entries are shown too.
        let ended = !run.is_alive()?;
        let before = offset;
        (records, offset) = read_transcript(&run, offset)?;
        if offset != before {
            continue;
        }
        if ended {
            return end(&run, context);
        }
        if let Some(exit) = signals.came() {
            return Ok(exit);
        }
        watch.wait(SLICE);
    }
}

/// Prints the failed check of an agent's work, which comes after the agent's own end.
fn end(run: &RunDir, context: &mut Context) -> Result<Exit, Failure> {
    let meta = run.meta()?;
    let exit = run.exit(meta.life)?;
    let check = exit
        .as_ref()
        .and_then(|exit| exit.proof.as_ref()?.check.as_ref());
    if let (Some(exit), Some(check)) = (&exit, check)
        && !check.passed
        && !context.out.is_json()
    {
        let why = exit.error.as_deref().unwrap_or("its check failed");
        let why = failure_lines(why, Some(&run.check_path()), None);
        context.out.text(&format!("{RED}✘{RED:#} {why}"))?;
    }
    Ok(Exit::Done)
}

fn print(record: &Record, context: &mut Context) -> Result<(), Failure> {
    if context.out.is_json() {
        return context
            .out
            .json(&serde_json::to_value(record).unwrap_or_default());
    }
    match line(record) {
        Some(line) => context.out.text(&line),
        None => Ok(()),
    }
}

/// An entry in words for people; `None` if it is not shown.
fn line(record: &Record) -> Option<String> {
    let time = record.ts.get(11..19).unwrap_or_default();
    let text = match &record.entry {
        Entry::Prompt { text } => format!("{CYAN}prompt{CYAN:#} {}", hanging(text.trim_end())),
        Entry::Started { pid, model, .. } => {
            let pid = pid
                .map(|pid| format!(", process {pid}"))
                .unwrap_or_default();
            let model = model.as_ref().map(|m| format!(", {m}")).unwrap_or_default();
            format!("{DIM}up{}{}{DIM:#}", clean_line(&pid), clean_line(&model))
        }
        Entry::Output { text, .. } => hanging(text.trim_end_matches('\n')),
        Entry::Text { text } => format!("{BOLD}says{BOLD:#} {}", hanging(text.trim_end())),
        Entry::ToolUse { name, input, .. } => {
            format!(
                "{YELLOW}{}{YELLOW:#} {}",
                clean_line(name),
                brief(&argument(input))
            )
        }
        Entry::ToolResult { output, error, .. } => {
            let style = if *error { RED } else { DIM };
            format!("  {style}{}{style:#}", brief(output))
        }
        Entry::Message { text, .. } => format!("{CYAN}mail{CYAN:#} {}", hanging(text.trim_end())),
        Entry::Permission { tool, input, .. } => {
            let input = brief(&argument(input));
            format!("{YELLOW}asks for {}{YELLOW:#} {input}", clean_line(tool))
        }
        Entry::Answer { allow, reason, .. } => {
            let word = if *allow { "allowed" } else { "denied" };
            let reason = reason.as_deref().unwrap_or_default();
            format!("{YELLOW}{word}{YELLOW:#} {}", clean_line(reason))
        }
        Entry::Stalled { why } => format!("{YELLOW}stalled{YELLOW:#} {}", clean_line(why)),
        Entry::TurnEnded { status, error, .. } => {
            let error = error.as_deref().unwrap_or_default();
            format!(
                "{DIM}turn {}{DIM:#} {}",
                clean_line(status),
                clean_line(error)
            )
        }
        Entry::Note { text } => format!("{DIM}{}{DIM:#}", clean_line(text)),
        Entry::Ended { status, error } => {
            let style = if status == "completed" { GREEN } else { RED };
            let error = error.as_deref().unwrap_or_default();
            format!(
                "{style}{}{style:#} {}",
                clean_line(status),
                clean_line(error)
            )
        }
        Entry::Usage(_) | Entry::Unknown => return None,
    };
    Some(format!("{DIM}{time}{DIM:#} {text}"))
}

/// The arguments of a tool as text: the only one, or all of them as JSON.
fn argument(input: &Value) -> String {
    match input {
        Value::Object(map) if map.len() == 1 => map.values().map(plain).collect(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn brief(text: &str) -> String {
    let line = clean_line(text.trim());
    if line.chars().count() <= SHOWN {
        return line;
    }
    let cut: String = line.chars().take(SHOWN).collect();
    format!("{cut}…")
}
