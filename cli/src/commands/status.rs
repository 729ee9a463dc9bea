use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use mailbox::Request;
use observe::overview::{self, AgentView, Attention, Counts, Kind, Need, Overview, TeamView};
use runs::Usage;
use serde_json::{Value, json};
use store::{Failure, counted};
use term::table::fit;

use crate::context::Context;
use crate::cost::{saved_line, short_count, usage_line};
use crate::exit::Exit;
use crate::output::{
    BOLD, CYAN, DIM, GREEN, PLAIN, RED, YELLOW, age, clean_line, colored, terminal_width,
};
use crate::signals::Signals;

/// Interval between two displays with `--watch`.
const EVERY: Duration = Duration::from_millis(1000);
/// Poll interval for a signal between two displays.
const SLICE: Duration = Duration::from_millis(100);
/// Clears the screen and puts the cursor in the top left corner.
const CLEAR: &str = "\x1b[H\x1b[J";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ccb status                 everything that runs in this repository or needs you
  ccb status --watch         the same, kept up to date until Ctrl-C
  ccb --team fixers status   one team")]
pub(crate) struct StatusArgs {
    /// Show it again whenever something changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
}

/// Shows what runs in the repository, what it left, and what needs a person.
pub(crate) fn run(args: &StatusArgs, context: &mut Context) -> Result<Exit, Failure> {
    if args.watch {
        return watch(context);
    }
    let overview = overview::look(context)?;
    let team = context.team()?.to_string();
    context.out.done(
        || to_json(&overview, &team),
        || text(&overview, context_width()),
    )
}

fn context_width() -> usize {
    terminal_width().unwrap_or(usize::MAX)
}

/// Shows the status after each change, until the user ends the command.
fn watch(context: &mut Context) -> Result<Exit, Failure> {
    let signals = Signals::catch()?;
    let team = context.team()?.to_string();
    let on_terminal = std::io::stdout().is_terminal() && !context.out.is_json();
    let workplace = context.for_view();
    let mut before = None;
    loop {
        let (json, shown) = match overview::look(&workplace) {
            Ok(overview) => (to_json(&overview, &team), text(&overview, context_width())),
            // A server that restarts is back in a moment.
            Err(error) if before.is_some() && workplace.is_in_database() => (
                error.to_json(),
                format!("{RED}✘{RED:#} {}", clean_line(&error.in_a_line())),
            ),
            Err(error) => return Err(error),
        };
        let now = match context.out.is_json() {
            true => json.to_string(),
            false => shown.clone(),
        };
        if before.as_ref() != Some(&now) {
            match (context.out.is_json(), on_terminal) {
                (true, _) => context.out.json(&json)?,
                (false, true) => redraw(&shown, context)?,
                (false, false) => context.out.text(&shown)?,
            }
            before = Some(now);
        }
        for _ in 0..EVERY.as_millis() / SLICE.as_millis() {
            if let Some(exit) = signals.came() {
                return Ok(exit);
            }
            std::thread::sleep(SLICE);
        }
    }
}

/// Replaces the shown text, cut to the height of the screen.
fn redraw(text: &str, context: &mut Context) -> Result<(), Failure> {
    let rows = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(24, |size| size.ws_row);
    let room = usize::from(rows).saturating_sub(2).max(1);
    let mut lines: Vec<&str> = text.lines().collect();
    let more = lines.len().saturating_sub(room);
    lines.truncate(room);
    let mut shown = lines.join("\n");
    if more > 0 {
        let more = counted(more, "more line");
        shown.push_str(&format!("\n{DIM}… {more}: ccb status{DIM:#}"));
    }
    // Written directly, because the output's filter for colours would remove this sequence.
    std::io::stdout().write_all(CLEAR.as_bytes()).ok();
    context.out.text(&shown)
}

fn to_json(overview: &Overview, team: &str) -> Value {
    let plans = overview
        .teams
        .iter()
        .filter(|view| view.kind == Kind::Fanout && view.running);
    let plan = |view: &TeamView| json!({"team": view.name, "done": view.tasks.completed, "tasks": view.tasks.total()});
    let plans: Vec<Value> = plans.map(plan).collect();
    let own = overview.teams.iter().find(|view| view.name == team);
    let session = own.and_then(|own| {
        let mut json = serde_json::to_value(own.session.as_ref()?).ok()?;
        json["directed"] = own.running.into();
        Some(json)
    });
    let requests = own.map(|own| own.requests.iter().map(Request::to_json));
    json!({
        "session": session,
        "team": team,
        "tasks": own.map(|own| &own.tasks),
        "agents": own.map(|own| &own.agents),
        "requests": requests.map(Iterator::collect::<Vec<_>>),
        "worktrees": overview.worktrees,
        "plans": plans,
        "teams": overview.teams,
        "attention": overview.attention,
    })
}

fn text(overview: &Overview, width: usize) -> String {
    let mut lines = Vec::new();
    for team in &overview.teams {
        // An agent or a user created the team and never used it.
        if team.is_at_rest() && team.tasks.total() == 0 && team.session.is_none() {
            continue;
        }
        lines.push(team_line(team, width));
        lines.extend(used_lines(&team.usage));
        lines.extend(team.agents.iter().map(|agent| agent_line(agent, width)));
    }
    let trees: Vec<String> = overview
        .worktrees
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if !trees.is_empty() {
        lines.push(format!("{DIM}worktrees: {}{DIM:#}", trees.join(", ")));
    }
    if lines.is_empty() {
        return "Nothing runs here, and nothing is left to do.\n\
                Start a session: ccb \"make the tests pass\". Add a task: ccb task create SUBJECT"
            .into();
    }
    if !overview.attention.is_empty() {
        lines.push(format!("\n{BOLD}Needs you{BOLD:#}"));
        for one in &overview.attention {
            lines.extend(attention_lines(one, width));
        }
    }
    lines.join("\n")
}

fn team_line(team: &TeamView, width: usize) -> String {
    let name = clean_line(&team.name);
    let (word, name) = match team.kind {
        Kind::Session | Kind::Board => ("team", name),
        Kind::Coordinator => ("coordinator", name),
        Kind::Fanout => ("fan-out", name),
    };
    let open = team.tasks.total() - team.tasks.completed;
    let (glyph, style) = match (team.running, open) {
        (true, _) => ("◐", CYAN),
        (false, 0) => ("✔", GREEN),
        (false, _) => ("○", PLAIN),
    };
    let running = match (team.running, team.kind) {
        (true, _) => "running, ",
        (false, Kind::Board) => "",
        (false, _) if open > 0 => "not running, ",
        (false, _) => "",
    };
    let head = format!("{style}{glyph}{style:#} {BOLD}{word} {name}{BOLD:#}: {running}");
    let mut line = format!("{head}{}", counts_text(&team.tasks));
    if let Some(prompt) = &team.prompt {
        let used = anstream::adapter::strip_str(&line)
            .to_string()
            .chars()
            .count();
        let room = width.saturating_sub(used + 3);
        if room > 12 {
            line.push_str(&format!("  {DIM}{}{DIM:#}", fit(&clean_line(prompt), room)));
        }
    }
    line
}

/// Usage of all agents of a team, and what forks saved.
fn used_lines(usage: &Usage) -> impl Iterator<Item = String> {
    let lines = [usage_line(usage), saved_line(usage)];
    let lines = lines.into_iter().flatten();
    lines.map(|line| format!("  {DIM}{line}{DIM:#}"))
}

fn counts_text(counts: &Counts) -> String {
    if counts.total() == 0 {
        return "no tasks".into();
    }
    let mut parts = vec![format!(
        "{} of {} done",
        counts.completed,
        counted(counts.total(), "task")
    )];
    let waiting = counts.pending.saturating_sub(counts.ready + counts.parked);
    for (count, word, style) in [
        (counts.unchecked, "⚠ unchecked", YELLOW),
        (counts.in_progress, "in progress", CYAN),
        (counts.ready, "ready", PLAIN),
        (waiting, "blocked", DIM),
        (counts.parked, "parked", RED),
        (counts.unreadable, "unreadable", RED),
    ] {
        if count > 0 {
            parts.push(format!("{style}{count} {word}{style:#}"));
        }
    }
    parts.join(", ")
}

/// One line about an agent: its task, since when, and what it said last.
fn agent_line(agent: &AgentView, width: usize) -> String {
    let style = colored(agent.color.as_deref(), BOLD);
    let task = agent.task.as_deref().map(|id| format!(" #{id}"));
    let idle = match agent.state {
        "running" => String::new(),
        state => format!(" {state}"),
    };
    let description = clean_line(&agent.description);
    let mut line = format!(
        "  {style}{}{style:#}{idle}{} {}  {DIM}{}{DIM:#}",
        clean_line(&agent.name),
        task.unwrap_or_default(),
        fit(&description, 40),
        age(&agent.since),
    );
    let room_after = |line: &str| {
        let used = anstream::adapter::strip_str(line).to_string();
        width.saturating_sub(used.chars().count() + 3)
    };
    let tokens = tokens_of(agent);
    if tokens.len() <= room_after(&line) {
        line.push_str(&format!("{DIM}{tokens}{DIM:#}"));
    }
    if let Some(last) = &agent.last {
        let room = room_after(&line).min(100);
        if room > 12 {
            line.push_str(&format!("  {DIM}{}{DIM:#}", fit(&clean_line(last), room)));
        }
    }
    line
}

/// The agent's tokens, and how many of those it read came from the cache.
fn tokens_of(agent: &AgentView) -> String {
    let (all, cached) = (agent.tokens, agent.usage.cache_read_tokens);
    match (all, cached) {
        (0, _) => String::new(),
        (_, 0) => format!("  {} tokens", short_count(all)),
        _ => format!(
            "  {} tokens, {} cached",
            short_count(all),
            short_count(cached)
        ),
    }
}

fn attention_lines(one: &Attention, width: usize) -> [String; 2] {
    let (glyph, style) = match one.need {
        Need::Permission | Need::Plan | Need::Request => ("?", YELLOW),
        Need::Check | Need::Parked => ("‖", RED),
        Need::Unlanded => ("⇥", YELLOW),
        Need::Budget | Need::Conflict | Need::Unreadable | Need::Silent | Need::Interrupted => {
            ("⚠", YELLOW)
        }
    };
    let what = fit(&clean_line(&one.what), width.saturating_sub(4));
    [
        format!("{style}{glyph}{style:#} {what}"),
        format!("    {CYAN}{}{CYAN:#}", clean_line(&one.command)),
    ]
}
