//! The end of a session: mates and lead are asked to stop, then ended; what is left is said.

use std::time::Duration;

use store::Failure;
use store::clock::{Clock, SystemClock, rfc3339};
use swarm::LEAD;
use taskboard::Status;

use super::{ParkedTask, Session, SessionEvent, SessionUi, Summary, unlanded, verdict_of};
use crate::actions::team as team_actions;
use crate::director::{Ending, LeftTree};
use crate::fanout::Verdict;
use crate::run::{AgentError, Agents};

/// How long somebody who is asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// Ends everybody and says how things stand. Whatever happens on the way, the session can go
/// on later.
pub(super) fn close(
    session: &Session,
    ending: &Ending,
    signal: Option<u8>,
    ui: &dyn SessionUi,
) -> Result<Verdict, Failure> {
    let note = |text: &str| ui.show(&SessionEvent::Note(text));
    let agents = session.workplace.agents()?;
    for problem in end_everybody(session, &agents) {
        note(&problem);
    }
    if session.trees
        && let Err(error) = session.workplace.trees()?.drop_check_trees(true)
    {
        note(&format!("a worktree for checks is left: {error}"));
    }
    let trees = match session.record.has_coordinator() {
        true => crate::director::left_trees(&agents)?,
        false => Vec::new(),
    };
    let verdict = match signal {
        Some(number) => Verdict::Interrupted(number),
        None => match verdict_of(session, ending)? {
            // Somebody's work is not where it belongs, whatever the lead says of it.
            Verdict::Done if trees.iter().any(|tree| !tree.stopped) => Verdict::Conflicts,
            verdict => verdict,
        },
    };
    let mut record = session.record.clone();
    let file = session.file();
    if let Some(now) = file.session()? {
        // The lead may have been started since.
        record.lead_run = now.lead_run;
    }
    record.ended_at = Some(rfc3339(SystemClock.now_ms()));
    file.put_session(&record)?;
    let summary = summary(session, ending, verdict, trees, &agents)?;
    let nothing_left = summary.unlanded.is_empty() && summary.left.is_empty();
    if session.own_team && verdict == Verdict::Done && nothing_left {
        // Nothing is left that somebody could go on with.
        if let Err(error) = team_actions::delete(session.team.as_str(), false, &session.workplace) {
            note(&format!("team {} stays: {}", session.team, error.message()));
        }
    }
    ui.show(&SessionEvent::Ended(&summary));
    Ok(verdict)
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
    let team = session.workplace.team_named(session.team.clone());
    if let Ok(roster) = team.roster() {
        for member in roster.members.iter().filter(|member| member.is_active) {
            if member.name != LEAD {
                team.set_active(&member.name, false).ok();
            }
        }
    }
    problems
}

fn summary(
    session: &Session,
    ending: &Ending,
    verdict: Verdict,
    left: Vec<LeftTree>,
    agents: &Agents,
) -> Result<Summary, Failure> {
    let snapshot = session.workplace.board().snapshot()?;
    let shown = || snapshot.tasks().filter(|task| !task.is_internal());
    let parked = shown().filter_map(|task| {
        Some(ParkedTask {
            id: task.id,
            subject: task.subject.clone(),
            reason: task.parked()?.to_owned(),
        })
    });
    Ok(Summary {
        team: session.team.to_string(),
        verdict,
        stand: ending.stand.clone(),
        total: shown().count(),
        completed: shown()
            .filter(|task| task.status == Status::Completed)
            .count(),
        parked: parked.collect(),
        unlanded: unlanded(session)?,
        left,
        staying: crate::director::staying_trees(agents)?,
        stopped: ending.stopped.clone(),
    })
}
