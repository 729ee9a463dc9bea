//! The end of a session: teammates and lead are asked to stop, then ended; the rest is reported.

use std::time::{Duration, Instant};

use director::Verdict;
use director::{Ending, LeftTree};
use mailbox::{Question, RequestState, Shutdown};
use observe::report;
use runs::failure_text::log_of_task;
use runs::session_file::TeamSession;
use runs::{AgentError, Agents};
use store::Failure;
use store::agent_id::LEAD;
use store::clock::{Clock, SystemClock, rfc3339};
use store::name::Name;
use swarm::run::Meta;
use swarm::runtime::Usage;
use taskboard::Status;

use super::lead;
use super::{ParkedTask, Session, SessionEvent, SessionUi, Summary, unlanded, verdict_of};
use crate::actions::team as team_actions;

/// Time that an agent gets to end after it was asked.
const GRACE: Duration = Duration::from_secs(5);
/// Time that teammates get to agree to end, and to end.
const ASKED: Duration = Duration::from_secs(20);

/// Ends all agents and returns the state. Whatever happens on the way, the session can be resumed
/// later.
pub(super) fn close(
    session: &Session,
    ending: &Ending,
    signal: Option<u8>,
    ui: &dyn SessionUi,
) -> Result<Verdict, Failure> {
    let note = |text: &str| ui.show(&SessionEvent::Note(text));
    let agents = session.workplace.agents()?;
    // The state before the agents are stopped.
    let (_, lead_failure) = lead::account(session, &agents);
    if signal.is_none() {
        ask_to_leave(&agents)?;
    }
    for problem in end_everybody(session, &agents) {
        note(&problem);
    }
    if session.trees
        && let Err(error) = session.workplace.trees()?.drop_check_trees(true)
    {
        note(&format!("a worktree for checks is left: {error}"));
    }
    let trees = match session.record.has_coordinator() {
        true => director::left_trees(&agents)?,
        false => Vec::new(),
    };
    let verdict = match signal {
        Some(number) => Verdict::Interrupted(number),
        None => match verdict_of(session, ending)? {
            _ if lead_failure.is_some() => Verdict::Failed,
            // Some work has not landed, whatever the lead reports.
            Verdict::Done if trees.iter().any(|tree| !tree.stopped) => Verdict::Conflicts,
            verdict => verdict,
        },
    };
    let mut record = session.record.clone();
    let file = session.file();
    if let Some(now) = file.session()? {
        // The lead may have started since.
        record.lead_run = now.lead_run;
    }
    record.ended_at = Some(rfc3339(SystemClock.now_ms()));
    file.put_session(&record)?;
    let (report, _) = lead::account(session, &agents);
    let summary = Summary {
        report,
        lead_failure,
        ..summary(session, ending, verdict, trees, &agents)?
    };
    let usage = keep_report(session, &record, verdict, &note);
    let summary = Summary { usage, ..summary };
    ui.show(&SessionEvent::Closing(verdict));
    let nothing_left = summary.unlanded.is_empty() && summary.left.is_empty();
    if session.own_team && verdict == Verdict::Done && nothing_left {
        // Nothing is left that could be resumed.
        if let Err(error) = team_actions::delete(session.team.as_str(), false, &session.workplace) {
            note(&format!("team {} stays: {}", session.team, error.message()));
        }
    }
    ui.show(&SessionEvent::Ended(&summary));
    Ok(verdict)
}

/// Keeps a report, before the team may be deleted; returns the usage. The session has ended whether
/// or not that works.
fn keep_report(
    session: &Session,
    record: &TeamSession,
    verdict: Verdict,
    note: &dyn Fn(&str),
) -> Option<Usage> {
    let kept = report::of_session_end(&session.workplace, record, verdict).and_then(|report| {
        report::history::keep(&report, &session.workplace)?;
        Ok(report.totals.usage())
    });
    kept.map_err(|error| {
        note(&format!(
            "`ccb runs` will not list this session: {}",
            error.message()
        ));
    })
    .ok()
}

/// Running teammates of the team, without its lead.
fn living_mates(agents: &Agents) -> Vec<Meta> {
    let ids = swarm::run::active(agents.runs_dir()).unwrap_or_default();
    let metas = ids.iter().filter_map(|id| agents.run(id).meta().ok());
    let alive = |meta: &Meta| agents.is_alive(meta).unwrap_or(false);
    metas
        .filter(|meta| meta.teammate && meta.address() != LEAD && alive(meta))
        .collect()
}

/// Asks the running teammates to end, and waits for them. Those that do not agree are stopped
/// afterwards.
fn ask_to_leave(agents: &Agents) -> Result<(), Failure> {
    let lead = Name::new("agent", LEAD)?;
    let mut asked = Vec::new();
    for meta in living_mates(agents) {
        let question = Question::Shutdown(Shutdown {
            reason: Some("the session ends".into()),
        });
        let name = Name::new("agent", meta.address())?;
        let request = agents.mailbox().ask(&lead, &name, question, ASKED)?;
        asked.push((request.id, meta));
    }
    let deadline = Instant::now() + ASKED;
    while Instant::now() < deadline {
        asked.retain(|(id, meta)| {
            let state = agents.mailbox().request(id).map(|request| request.state);
            let may_agree = matches!(state, Ok(RequestState::Pending | RequestState::Approved));
            may_agree && agents.is_alive(meta).unwrap_or(false)
        });
        if asked.is_empty() {
            break;
        }
        std::thread::sleep(GRACE / 100);
    }
    Ok(())
}

/// Stops the lead and all other running agents; returns the agents that do not stop.
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
            log: log_of_task(agents, task),
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
        unchecked: shown()
            .filter(|task| task.unchecked().is_some())
            .map(|task| task.id)
            .collect(),
        parked: parked.collect(),
        unlanded: unlanded(session)?,
        left,
        staying: landing::staying_trees(agents)?,
        stopped: ending.stopped.clone(),
        report: None,
        lead_failure: None,
        usage: None,
    })
}
