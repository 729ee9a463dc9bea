//! The end of a session: mates and lead are asked to stop, then ended; what is left is said.

use std::time::Duration;

use coordinator::SessionFile;
use coordinator::engine::{Ending, LeftTree, StayingTree};
use coordinator::run::{AgentError, Agents};
use serde_json::json;
use store::clock::{Clock, SystemClock, rfc3339};
use store::{Category, Failure};
use swarm::LEAD;
use taskboard::Status;

use super::view::{View, stand_words};
use super::{Session, exit_of, unlanded};
use crate::actions::team as team_actions;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, RED, YELLOW, clean_line};

/// How long somebody who is asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// Ends everybody and says how things stand. Whatever happens on the way, the session can go
/// on later.
pub(super) fn close(
    session: &Session,
    ending: &Ending,
    signal: Option<Exit>,
    view: &View,
) -> Result<Exit, Failure> {
    let agents = session.context.agents()?;
    for problem in end_everybody(session, &agents) {
        view.note(&problem);
    }
    if session.trees
        && let Err(error) = session.context.trees()?.drop_check_trees(true)
    {
        view.note(&format!("a worktree for checks is left: {error}"));
    }
    let trees = match session.record.has_coordinator() {
        true => coordinator::engine::left_trees(&agents)?,
        false => Vec::new(),
    };
    let exit = match signal {
        Some(exit) => exit,
        None => match exit_of(session, ending)? {
            // Somebody's work is not where it belongs, whatever the lead says of it.
            Exit::Done if trees.iter().any(|tree| !tree.stopped) => Exit::Not(Category::Conflict),
            exit => exit,
        },
    };
    let left = unlanded(session)?;
    let mut record = session.record.clone();
    let file = SessionFile {
        home: session.context.home(),
        team: &session.team,
    };
    if let Some(now) = file.session()? {
        // The lead may have been started since.
        record.lead_run = now.lead_run;
    }
    record.ended_at = Some(rfc3339(SystemClock.now_ms()));
    file.put_session(&record)?;
    let (mut text, mut json) = summary(session, ending, exit, &left, &trees)?;
    say_what_stays(&agents, &mut text, &mut json)?;
    if session.own_team && exit == Exit::Done && left.is_empty() && trees.is_empty() {
        // Nothing is left that somebody could go on with.
        if let Err(error) = team_actions::delete(session.team.as_str(), false, &session.context) {
            view.note(&format!("team {} stays: {}", session.team, error.message()));
        }
    }
    view.end(session, exit, &text, &json);
    Ok(exit)
}

/// Stops the lead and whoever else lives on; one that does not stop is said, the rest go on.
fn end_everybody(session: &Session, agents: &Agents) -> Vec<String> {
    let mut problems = Vec::new();
    let ids = swarm::run::active(agents.runs_dir()).unwrap_or_default();
    let living: Vec<_> = ids
        .iter()
        .filter_map(|id| agents.run(id).meta().ok())
        .filter(|meta| meta.teammate && agents.is_alive(meta).unwrap_or(false))
        .collect();
    std::thread::scope(|scope| {
        let stops: Vec<_> = living
            .iter()
            .map(|meta| {
                scope.spawn(move || {
                    let why = Some("the session ends".to_owned());
                    (meta, agents.stop(meta, LEAD, why, Some(GRACE)))
                })
            })
            .collect();
        for stop in stops {
            if let Ok((meta, Err(error))) = stop.join()
                && !matches!(error, AgentError::NotRunning { .. })
            {
                problems.push(format!("{} does not end: {error}", meta.address()));
            }
        }
    });
    let team = session.context.team_named(session.team.clone());
    if let Ok(roster) = team.roster() {
        for member in roster.members.iter().filter(|member| member.is_active) {
            if member.name != LEAD {
                team.set_active(&member.name, false).ok();
            }
        }
    }
    problems
}

/// How many trees are named at the end; the rest is counted.
const NAMED: usize = 10;

/// Adds which trees of the team's tasks are still there, and why.
fn say_what_stays(
    agents: &Agents,
    text: &mut String,
    json: &mut serde_json::Value,
) -> Result<(), Failure> {
    let staying = coordinator::engine::staying_trees(agents)?;
    let row =
        |tree: &StayingTree| json!({"worktree": tree.worktree, "task": tree.task, "why": tree.why});
    json["stayingTrees"] = staying.iter().map(row).collect();
    for tree in staying.iter().take(NAMED) {
        let (name, task, why) = (&tree.worktree, tree.task, clean_line(&tree.why));
        text.push_str(&format!(
            "\n  {DIM}worktree {name} stays: #{task}, {why}{DIM:#}"
        ));
    }
    if let Some(more @ 1..) = staying.len().checked_sub(NAMED) {
        text.push_str(&format!(
            "\n  {DIM}and {more} more: `ccb worktree list`{DIM:#}"
        ));
    }
    Ok(())
}

fn left_json(tree: &LeftTree) -> serde_json::Value {
    json!({
        "agent": tree.agent,
        "description": tree.description,
        "worktree": tree.worktree,
        "why": tree.why,
    })
}

fn summary(
    session: &Session,
    ending: &Ending,
    exit: Exit,
    unlanded: &[taskboard::TaskId],
    trees: &[LeftTree],
) -> Result<(String, serde_json::Value), Failure> {
    let snapshot = session.context.board().snapshot()?;
    let shown = || snapshot.tasks().filter(|task| !task.is_internal());
    let completed = shown()
        .filter(|task| task.status == Status::Completed)
        .count();
    let parked: Vec<_> = shown().filter(|task| task.parked().is_some()).collect();
    let all = shown().count();
    let colour = match exit {
        Exit::Done => GREEN,
        Exit::Signal(_) => YELLOW,
        _ => RED,
    };
    let mut text = format!(
        "{colour}{BOLD}{completed} of {all} tasks completed{BOLD:#}{colour:#} {DIM}({}){DIM:#}",
        stand_words(&ending.stand)
    );
    for task in &parked {
        let why = task.parked().unwrap_or_default();
        let why = why.lines().next().unwrap_or_default();
        text.push_str(&format!(
            "\n  {RED}‖{RED:#} #{} {}: {}",
            task.id,
            clean_line(&task.subject),
            clean_line(why)
        ));
    }
    if !unlanded.is_empty() {
        let ids: Vec<String> = unlanded.iter().map(|id| format!("#{id}")).collect();
        text.push_str(&format!(
            "\n  not landed: {}; `ccb worktree list` shows their trees, `ccb worktree merge NAME` \
             lands one",
            ids.join(", ")
        ));
    }
    for tree in trees {
        text.push_str(&format!(
            "\n  {YELLOW}not landed:{YELLOW:#} {} left {} in worktree {} ({})",
            tree.agent,
            clean_line(&tree.why),
            tree.worktree,
            clean_line(&tree.description)
        ));
    }
    if completed < all || exit != Exit::Done {
        text.push_str(&format!(
            "\n  {DIM}`ccb --team {}` goes on{DIM:#}",
            session.team
        ));
    }
    let parked: Vec<_> = parked
        .iter()
        .map(|task| json!({"id": task.id, "reason": task.parked()}))
        .collect();
    let json = json!({
        "tasks": {"total": all, "completed": completed},
        "parked": parked,
        "notLanded": unlanded,
        "leftTrees": trees.iter().map(left_json).collect::<Vec<_>>(),
        "stopped": ending.stopped,
    });
    Ok((text, json))
}
