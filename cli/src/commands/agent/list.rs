use clap::Args;
use runs::Listed;
use serde_json::json;
use store::Failure;
use swarm::run::Meta;
use team::Roster;
use term::table::{self, Cell};

use crate::context::Context;
use crate::cost::short_count;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, PLAIN, RED, YELLOW, age, colored, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only agents that run
    #[arg(long)]
    alive: bool,
}

pub(crate) fn run(args: &ListArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    let (mut listed, problems) = agents.list()?;
    if args.alive {
        listed.retain(|agent| agent.alive);
    }
    let team = agents.team_name();
    let roster = context.team_named(team.clone()).roster().ok();
    let spawn = context.out.command("agent spawn PROMPT");
    context.out.answer(
        || json!({ "agents": listed.iter().map(Listed::to_json).collect::<Vec<_>>() }),
        || match listed[..] {
            [] => format!("no agents in team {team}. Start one: {spawn}"),
            _ => {
                let color = |agent: &Listed| color_of(&agent.meta, roster.as_ref());
                let rows = listed
                    .iter()
                    .map(|agent| row(agent, color(agent).as_deref()));
                let rows: Vec<[Cell; 9]> = rows.collect();
                let heads = [
                    "AGENT", "NAME", "STATE", "TASK", "AGE", "TOKENS", "COST", "WHAT", "TREE",
                ];
                table::render(heads, &rows, 7, terminal_width())
            }
        },
    )?;
    for problem in problems {
        context.out.warn(problem);
    }
    Ok(Exit::Done)
}

/// The colour that an agent is shown in: the one in its definition, else the one in its team's
/// roster.
pub(super) fn color_of(meta: &Meta, roster: Option<&Roster>) -> Option<String> {
    let in_team = || {
        let member = roster?.member(meta.address()).filter(|_| meta.teammate)?;
        member.color.clone()
    };
    meta.launch.color.clone().or_else(in_team)
}

fn row(agent: &Listed, color: Option<&str>) -> [Cell; 9] {
    let meta = &agent.meta;
    let state = match agent.state() {
        "completed" => Cell::new("✔ completed", GREEN),
        word @ ("failed" | "lost") => Cell::new(format!("✘ {word}"), RED),
        "killed" => Cell::new("⊘ killed", YELLOW),
        word if meta.stalled.is_some() => Cell::new(format!("● {word}, stalled"), YELLOW),
        "idle" => Cell::new("○ idle", DIM),
        word => Cell::new(format!("● {word}"), YELLOW),
    };
    let task = meta.task_id.as_ref().map(|id| format!("#{id}"));
    let tokens = match meta.usage.total_tokens() {
        0 => String::new(),
        count => short_count(count),
    };
    let cost = match meta.usage.known_cost() {
        Some(cost) if cost <= 0.0 => String::new(),
        _ => meta.usage.cost_in_words(),
    };
    let tree = meta.worktree.as_ref().map(|tree| match &tree.outcome {
        Some(outcome) if !outcome.kept || super::is_gone(tree) => "removed".to_owned(),
        Some(_) => format!("kept {}", tree.name),
        None => tree.name.clone(),
    });
    [
        Cell::new(&meta.agent_id, colored(color, BOLD)),
        Cell::new(
            meta.name.as_deref().unwrap_or_default(),
            colored(color, PLAIN),
        ),
        state,
        Cell::new(task.unwrap_or_default(), PLAIN),
        Cell::new(age(&meta.started_at), DIM),
        Cell::new(tokens, PLAIN),
        Cell::new(cost, PLAIN),
        Cell::new(&meta.description, PLAIN),
        Cell::new(tree.unwrap_or_default(), DIM),
    ]
}
