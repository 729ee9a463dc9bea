//! Reports: a session, a plan or one agent from beginning to end, as data and as a page.
//!
//! Everything is read from the disk; nothing is locked or changed. [`history`] keeps reports of
//! ended runs, because their team may be deleted.

mod gather;
pub mod history;
mod html;
mod model;
mod plan;
mod timeline;
mod trim;

use std::collections::HashMap;

use director::Verdict;
use project::workplace::Workplace;
use runs::session_file::{SessionFile, TeamSession};
use store::clock::{parse_rfc3339, rfc3339};
use store::{Category, Failure, counted};
use taskboard::{TaskId, Unchecked};

pub use self::gather::moment;
use self::gather::{Found, gather, models, totals};
pub use self::html::{escape, page as html};
pub use self::model::*;
pub use self::plan::of_plan;
use self::trim::Room;

/// The report of `given`: a run that `ccb runs` lists, a team, or an agent of the workplace's team.
/// Without it, of the workplace's team, or of the last run in this repository.
pub fn find(given: Option<&str>, workplace: &Workplace) -> Result<Report, Failure> {
    let Some(given) = given else {
        return match of_team(workplace) {
            Err(error)
                if error.category() == Category::NotFound && !workplace.team_is_explicit() =>
            {
                let kept = history::list(workplace)?;
                let last = kept.first().ok_or(error)?;
                history::load(&last.id, workplace)
            }
            other => other,
        };
    };
    if let Some(id) = history::resolve(given, workplace)? {
        return history::load(&id, workplace);
    }
    if let Ok(name) = store::name::Name::new("team", given) {
        let there = workplace.in_team(&name);
        let roster = there.home().team(&name).is_dir() || there.home().list(&name).is_dir();
        if roster {
            return of_team(&there);
        }
        // A team that was deleted at its end.
        if let Some(id) = history::last_of_team(given, workplace)? {
            return history::load(&id, workplace);
        }
    }
    of_agent(given, workplace).map_err(|error| match error.category() {
        Category::NotFound => {
            let message = format!("there is no run, team or agent {given:?} to report on");
            Failure::new(Category::NotFound, "not_found", message)
                .with_hint("`ccb runs` lists what has ended, `ccb status` what runs")
        }
        _ => error,
    })
}

/// The report of the workplace's team, as it is now.
pub fn of_team(workplace: &Workplace) -> Result<Report, Failure> {
    let name = workplace.team()?;
    let session = SessionFile::new(workplace.home(), &name).session()?;
    team_report(workplace, session.as_ref(), None, Room::default())
}

/// The same without diffs and without the output of checks, which is cheap.
pub fn of_team_without_diffs(workplace: &Workplace) -> Result<Report, Failure> {
    let name = workplace.team()?;
    let session = SessionFile::new(workplace.home(), &name).session()?;
    let mut report = team_report(workplace, session.as_ref(), None, Room::none())?;
    for check in report
        .tasks
        .iter_mut()
        .filter_map(|task| task.check.as_mut())
    {
        check.output = Excerpt::default();
    }
    report.omitted.clear();
    Ok(report)
}

/// The report of a session that ends just now with this verdict.
pub fn of_session_end(
    workplace: &Workplace,
    session: &TeamSession,
    verdict: Verdict,
) -> Result<Report, Failure> {
    team_report(workplace, Some(session), Some(verdict), Room::default())
}

fn team_report(
    workplace: &Workplace,
    session: Option<&TeamSession>,
    verdict: Option<Verdict>,
    mut room: Room,
) -> Result<Report, Failure> {
    let name = workplace.team()?;
    let agents = workplace.agents()?;
    let trees = workplace.trees().ok();
    let since = session.and_then(|session| parse_rfc3339(&session.started_at));
    let waiting = waiting(workplace);
    let mut found = gather(&agents, trees.as_ref(), since.unwrap_or(0), None, &mut room)?;
    if found.tasks.is_empty() && found.agents.is_empty() && session.is_none() {
        let message = format!("nothing has run in team {name}");
        return Err(
            Failure::new(Category::NotFound, "nothing_to_report", message)
                .with_hint("`ccb runs` lists what has ended, `ccb status` what runs"),
        );
    }
    say_what_waits(&mut found, &waiting);
    let lock = fanout::lock_of(&workplace.home().team(&name));
    let plan_runs = lock.exists() && store::lock::is_held(&lock).unwrap_or(false);
    let running = verdict.is_none() && (plan_runs || found.alive || agents.are_directed()?);
    let kind = kind_of(workplace, session, plan_runs);
    let from = since.unwrap_or(found.timeline.from_ms);
    found.timeline.from_ms = from.min(found.timeline.from_ms);
    let ended = session.and_then(|session| session.ended_at.clone());
    let ended = ended.unwrap_or_else(|| rfc3339(found.timeline.to_ms));
    let cut_short = session.is_some_and(|session| session.ended_at.is_none());
    let state = match verdict {
        Some(verdict) => of_verdict(verdict),
        None if running => ReportState::Running,
        None => state_of(&found, cut_short),
    };
    let left = left_of(&found, &name.to_string(), running);
    let title = session.and_then(|session| session.prompt.clone());
    let started_at = rfc3339(from);
    let report = Report {
        v: REPORT_VERSION,
        id: id_of(name.as_str(), &started_at),
        team: name.to_string(),
        kind,
        title: trim::text(&title.unwrap_or_default()),
        branch: session.and_then(|session| session.into.clone()),
        started_at,
        ended_at: (!running).then_some(ended),
        state,
        left,
        omitted: room.words().into_iter().collect(),
        ..whole(found)
    };
    Ok(finished(report, workplace))
}

/// The report of one agent of the workplace's team, with the task it was started for.
fn of_agent(given: &str, workplace: &Workplace) -> Result<Report, Failure> {
    let agents = workplace.agents()?;
    let meta = agents.find(given)?;
    let trees = workplace.trees().ok();
    let mut room = Room::default();
    let waiting = waiting(workplace);
    let id = Some(meta.agent_id.as_str());
    let mut found = gather(&agents, trees.as_ref(), 0, id, &mut room)?;
    say_what_waits(&mut found, &waiting);
    found.landings.retain(|one| one.task == meta.task_id);
    found.earlier_tasks = 0;
    let started_at = rfc3339(found.timeline.from_ms);
    let (alive, to_ms) = (found.alive, found.timeline.to_ms);
    let state = match meta.state {
        _ if alive => ReportState::Running,
        swarm::run::RunState::Completed => ReportState::Done,
        swarm::run::RunState::Killed => ReportState::Interrupted,
        _ => ReportState::Failed,
    };
    let report = Report {
        v: REPORT_VERSION,
        id: meta.agent_id.clone(),
        team: workplace.team()?.to_string(),
        kind: ReportKind::Agent,
        title: trim::text(&meta.description),
        started_at,
        ended_at: (!alive).then(|| rfc3339(to_ms)),
        state,
        omitted: room.words().into_iter().collect(),
        ..whole(found)
    };
    Ok(finished(report, workplace))
}

fn kind_of(workplace: &Workplace, session: Option<&TeamSession>, plan_runs: bool) -> ReportKind {
    match session {
        Some(session) if session.has_coordinator() => return ReportKind::Coordinator,
        Some(_) => return ReportKind::Session,
        None => {}
    }
    let board = workplace.board();
    let planned = || {
        let snapshot = board.snapshot().ok();
        snapshot.is_some_and(|all| all.tasks().any(|task| fanout::planned_as(task).is_some()))
    };
    match plan_runs || (board.exists() && planned()) {
        true => ReportKind::Fanout,
        false => ReportKind::Board,
    }
}

/// The id of a run: its team, and its start to the millisecond: a second is long enough for two
/// runs of one team.
fn id_of(team: &str, started_at: &str) -> String {
    let digits: String = started_at.chars().filter(char::is_ascii_digit).collect();
    let (day, time) = (digits.get(..8), digits.get(8..17));
    format!("{team}-{}-{}", day.unwrap_or("0"), time.unwrap_or("0"))
}

/// The parts that follow from the gathered data.
fn whole(found: Found) -> Report {
    Report {
        totals: totals(&found),
        models: models(&found.agents),
        timeline: found.timeline,
        tasks: found.tasks,
        agents: found.agents,
        landings: found.landings,
        ..Report::default()
    }
}

/// The finished report: with words, small, and without secrets.
fn finished(mut report: Report, workplace: &Workplace) -> Report {
    if report.words.is_empty() {
        report.words = words(&report);
    }
    trim::outputs(&mut report);
    trim::redacted(&report, &workplace.secrets())
}

fn words(report: &Report) -> String {
    let totals = &report.totals;
    let done = match totals.tasks {
        0 => "no tasks".to_owned(),
        all => format!("{} of {} done", totals.done, counted(all, "task")),
    };
    match report.state {
        ReportState::Running => format!("running: {done}"),
        ReportState::Done => format!("done: {done}, {} landed", totals.landed),
        ReportState::Conflicts => format!("{done}, with work left to land"),
        ReportState::Failed => format!("failed: {done}"),
        ReportState::Open => format!("open: {done}"),
        ReportState::Stopped => format!("stopped by a budget, a deadline or a quota: {done}"),
        ReportState::Interrupted => format!("interrupted: {done}"),
    }
}

fn of_verdict(verdict: Verdict) -> ReportState {
    match verdict {
        Verdict::Done => ReportState::Done,
        Verdict::Conflicts => ReportState::Conflicts,
        Verdict::Failed | Verdict::Internal => ReportState::Failed,
        Verdict::Budget | Verdict::Quota => ReportState::Stopped,
        Verdict::Interrupted(_) => ReportState::Interrupted,
    }
}

fn state_of(found: &Found, cut_short: bool) -> ReportState {
    let any = |states: &[&str]| {
        let mut tasks = found.tasks.iter();
        tasks.any(|task| states.contains(&task.state.as_str()))
    };
    let waits = found.tasks.iter().any(|task| task.landing == "waiting");
    match () {
        () if any(&["failed", "parked", "unreadable"]) => ReportState::Failed,
        () if any(&["open", "running"]) && cut_short => ReportState::Interrupted,
        () if any(&["open", "running"]) => ReportState::Open,
        () if waits => ReportState::Conflicts,
        () => ReportState::Done,
    }
}

/// The tasks whose work waits to land; true if that is because a landing was undone.
fn waiting(workplace: &Workplace) -> HashMap<TaskId, bool> {
    let all = workplace
        .agents()
        .map(|agents| landing::candidates(&agents).unwrap_or_default());
    all.into_iter()
        .flatten()
        .map(|work| (work.task, work.undone))
        .collect()
}

fn say_what_waits(found: &mut Found, waiting: &HashMap<TaskId, bool>) {
    for task in &mut found.tasks {
        let id: Option<TaskId> = task.id.parse().ok();
        match id.and_then(|id| waiting.get(&id)) {
            Some(true) => task.landing = "undone".into(),
            Some(false) => task.landing = "waiting".into(),
            None => {}
        }
    }
}

/// The remaining actions for a person, each with the command.
fn left_of(found: &Found, team: &str, running: bool) -> Vec<LeftPart> {
    let mut left = Vec::new();
    let ccb = format!("ccb --team {team}");
    for task in &found.tasks {
        let (id, subject) = (&task.id, &task.subject);
        match (task.state.as_str(), task.landing.as_str()) {
            ("parked", _) => left.push(LeftPart {
                what: format!("#{id} {subject} is {}", task.words),
                command: format!("{ccb} task show {id}"),
            }),
            ("unreadable", _) => left.push(LeftPart {
                what: format!("#{id} cannot be read"),
                command: format!("{ccb} doctor --fix"),
            }),
            ("open" | "running", _) if !running => left.push(LeftPart {
                what: format!("#{id} {subject}: {}", task.words),
                command: String::new(),
            }),
            (_, "waiting") => left.push(LeftPart {
                what: match &task.unchecked {
                    None => format!("#{id} {subject} is done and has not landed"),
                    Some(why) => {
                        let mark = Unchecked::MARK;
                        format!("#{id} {subject} is done and has not landed; {mark}: {why}")
                    }
                },
                command: format!("{ccb} land {id}"),
            }),
            _ => {}
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_by_its_team_and_when_it_began() {
        let id = id_of("fixers", "2026-11-17T13:31:22.123Z");
        assert_eq!(id, "fixers-20261117-133122123");
        assert_ne!(id, id_of("fixers", "2026-11-17T13:31:22.124Z"));
        assert_eq!(id_of("t", ""), "t-0-0");
    }
}
