use std::collections::BTreeMap;

use clap::Args;
use coordinator::SessionFile;
use serde_json::{Value, json};
use taskboard::Status;

use crate::context::Context;
use crate::error::{CommandError, Exit};
use crate::output::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {}

/// How many tasks are in each state.
#[derive(Debug, Default)]
struct Counts {
    pending: usize,
    ready: usize,
    in_progress: usize,
    completed: usize,
    parked: usize,
    unreadable: usize,
}

/// How everything stands: session, tasks, agents, requests, trees.
pub(crate) fn run(_: &StatusArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let team = context.team()?;
    let session = SessionFile {
        home: context.home(),
        team: &team,
    }
    .session()?;
    let agents = context.agents()?;
    let directed = store::lock::is_held(&coordinator::engine::director_lock(&agents))?;
    let counts = counts(context)?;
    let (all, _) = agents.list()?;
    let alive: Vec<_> = all.iter().filter(|listed| listed.alive).collect();
    let requests = context.mailbox()?.requests()?.requests;
    let open: Vec<_> = requests
        .iter()
        .filter(|request| request.state == mailbox::RequestState::Pending)
        .collect();
    let trees = match context.trees() {
        Ok(trees) => trees.list()?,
        Err(_) => Vec::new(),
    };
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for tree in trees.iter().filter(|tree| tree.is_live()) {
        *kinds.entry(tree.status.as_str()).or_default() += 1;
    }
    let json = || {
        let agents: Vec<Value> = alive
            .iter()
            .map(|listed| {
                let meta = &listed.meta;
                json!({
                    "agentId": meta.agent_id, "name": meta.name, "state": meta.state.as_str(),
                    "task": meta.task_id, "description": meta.description,
                    "tokens": meta.usage.total_tokens(), "stalled": meta.stalled,
                })
            })
            .collect();
        json!({
            "session": session.as_ref().map(|session| {
                let mut json = serde_json::to_value(session).unwrap_or_default();
                json["directed"] = directed.into();
                json
            }),
            "team": team.as_str(),
            "tasks": {
                "pending": counts.pending, "ready": counts.ready,
                "inProgress": counts.in_progress, "completed": counts.completed,
                "parked": counts.parked, "unreadable": counts.unreadable,
            },
            "agents": agents,
            "requests": open.iter().map(|request| request.to_json()).collect::<Vec<_>>(),
            "worktrees": kinds,
        })
    };
    let text = || {
        let mut lines = Vec::new();
        lines.push(match &session {
            Some(session) => format!(
                "{BOLD}team {team}{BOLD:#}: a {} session, {}",
                clean_line(&session.mode),
                if directed { "under way" } else { "not running" }
            ),
            None => format!("{BOLD}team {team}{BOLD:#}"),
        });
        let Counts {
            ready,
            in_progress,
            completed,
            parked,
            unreadable,
            pending,
        } = counts;
        lines.push(format!(
            "tasks: {GREEN}{completed} done{GREEN:#}, {CYAN}{in_progress} under way{CYAN:#}, {ready} \
             ready, {} waiting{}{}",
            pending.saturating_sub(ready + parked),
            match parked {
                0 => String::new(),
                some => format!(", {RED}{some} parked{RED:#}"),
            },
            match unreadable {
                0 => String::new(),
                some => format!(", {RED}{some} unreadable{RED:#}"),
            },
        ));
        for listed in &alive {
            let meta = &listed.meta;
            let task = meta.task_id.as_deref().map(|id| format!(" #{id}"));
            let stalled = meta.stalled.as_deref().map(clean_line);
            lines.push(format!(
                "  {BOLD}{}{BOLD:#} {}{} {}{}",
                clean_line(meta.address()),
                meta.state.as_str(),
                task.unwrap_or_default(),
                clean_line(&meta.description),
                stalled.map_or_else(String::new, |why| format!(" {YELLOW}({why}){YELLOW:#}")),
            ));
        }
        for request in &open {
            lines.push(format!(
                "  {YELLOW}?{YELLOW:#} {} waits for an answer: `ccb mail requests`, `ccb mail approve {}`",
                clean_line(&request.from),
                request.id
            ));
        }
        let trees: Vec<String> = kinds
            .iter()
            .map(|(kind, n)| format!("{n} {kind}"))
            .collect();
        if !trees.is_empty() {
            lines.push(format!("worktrees: {}", trees.join(", ")));
        }
        if alive.is_empty() && session.is_some() && !directed && ready > 0 {
            lines.push(format!("{DIM}`ccb --team {team}` goes on{DIM:#}"));
        }
        lines.join("\n")
    };
    context.out.answer(json, text)?;
    Ok(Exit::Done)
}

fn counts(context: &Context) -> Result<Counts, CommandError> {
    let board = context.board();
    let mut counts = Counts::default();
    // A list nobody made is not made by looking.
    if !board.dir().is_dir() {
        return Ok(counts);
    }
    let snapshot = board.snapshot()?;
    counts.unreadable = snapshot.unreadable().len();
    for task in snapshot.tasks().filter(|task| !task.is_internal()) {
        match task.status {
            Status::Completed => counts.completed += 1,
            Status::InProgress => counts.in_progress += 1,
            Status::Pending => {
                counts.pending += 1;
                counts.parked += usize::from(task.parked().is_some());
                counts.ready += usize::from(snapshot.is_ready(task));
            }
        }
    }
    Ok(counts)
}
