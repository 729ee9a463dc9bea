//! Carries out a person's decision from a view: each is the code of a command.

use std::sync::atomic::AtomicBool;

use landing::{Everything, LandReport, Landed, UndoRequest};
use observe::act::Act;
use project::rights::{self, may_control};
use project::workplace::{Who, Workplace};
use runs::session_file::{SessionFile, TeamSession};
use store::agent_id::LEAD;
use store::name::Name;
use store::text::{clean_cut, clean_line};
use store::{Failure, counted};
use taskboard::{Status, TaskId, Unchecked, Update};

use crate::actions::land::{self, LandRequest};
use crate::actions::{Said, Steer, mail, task, write_to};
use crate::agent;

/// Maximum characters of a subject or reason that an answer repeats.
const REPEATED: usize = 80;

/// Carries out the action, and returns the result on one line. It works from any process of the
/// user, whichever process directs the team. A view calls it on a thread of its own: stopping an
/// agent takes as long as its grace, landing as long as the checks, and setting `stop` ends a
/// landing between two tasks.
///
/// # Errors
///
/// The same as those of [`Act::command`]. A second answer to a request is refused with the first
/// answer and its author.
pub fn act(
    act: &Act,
    team: &str,
    workplace: &Workplace,
    stop: &AtomicBool,
) -> Result<String, Failure> {
    if let Some(missing) = act.asks_for() {
        let message = format!("this needs {missing}");
        return Err(Failure::usage("no_text", message));
    }
    let mut there = workplace.in_team(&Name::new("team", team)?);
    if there.who() == Who::Person && there.named_agent().is_none() {
        there.act_as(Name::new("agent", LEAD)?);
    }
    rights::check(act.right(), &there)?;
    match act {
        Act::Message { to, text } if to == LEAD => say(text, &there),
        Act::Message { to, text } => {
            write_to(to, text, &there.agents()?)?;
            Ok(format!("sent to {to}"))
        }
        Act::Say { text } => say(text, &there),
        Act::Approve { request, comment } => answer(request, true, comment.clone(), &there),
        Act::Deny { request, why } => answer(request, false, Some(why.clone()), &there),
        Act::Stop { agent, why } => stop_agent(agent, why.clone(), &there),
        Act::Resume { agent, text } => resume(agent, text.clone(), &there),
        Act::Land { tasks } => land(tasks, &there, stop),
        Act::Undo { task } => undo(*task, &there, stop),
        Act::Reject { task, feedback } => reject(*task, feedback, &there),
        Act::Retry { task } => retry(*task, &there),
        Act::AddTask { subject, command } => {
            let steer = steer(&there)?;
            let task = steer.add_task(subject, command.as_deref())?;
            Ok(added(&task))
        }
        Act::ResetLimits => {
            there.agents()?.fleet().reset()?;
            Ok(format!("what team {team} has used no longer counts"))
        }
    }
}

/// The lead's role, from the files of the team's session.
fn steer(workplace: &Workplace) -> Result<Steer<'_>, Failure> {
    let session = SessionFile::new(workplace.home(), &workplace.team()?).session()?;
    Ok(Steer {
        workplace,
        leads: session.as_ref().is_none_or(|now| now.lead.is_none()),
        commands_only: session.is_some_and(|now| runs_commands_only(&now, workplace)),
    })
}

fn runs_commands_only(session: &TeamSession, workplace: &Workplace) -> bool {
    let spec = agent::session_runtime(session.runtime.as_deref(), workplace);
    spec.is_ok_and(|spec| !spec.kind.has_model())
}

fn say(text: &str, workplace: &Workplace) -> Result<String, Failure> {
    let said = steer(workplace)?.say(text, &workplace.agents()?)?;
    Ok(match said {
        Said::Delivered => "sent to the lead".to_owned(),
        Said::Added(task) => added(&task),
    })
}

fn added(task: &taskboard::Task) -> String {
    let subject = clean_cut(&task.subject, REPEATED);
    format!("added task #{}: {subject}", task.id)
}

fn answer(
    request: &str,
    approve: bool,
    why: Option<String>,
    workplace: &Workplace,
) -> Result<String, Failure> {
    let id = mail::open_request(request, None, workplace)?;
    let request = mail::answer(&id, approve, why, workplace)?;
    let what = clean_cut(&mailbox::in_short(&request.question), REPEATED);
    let (state, from) = (request.state.as_str(), clean_line(&request.from));
    Ok(format!("{state}: {what}; ccb told {from}"))
}

fn stop_agent(given: &str, why: Option<String>, workplace: &Workplace) -> Result<String, Failure> {
    let agents = workplace.agents()?;
    let meta = agents.find(given)?;
    may_control(&meta, "stop", workplace)?;
    let outcome = agents.stop(&meta, workplace.agent(), why, None)?;
    let status = outcome.exit.status.as_str();
    Ok(format!("{} is {status}", outcome.meta.address()))
}

fn resume(given: &str, text: Option<String>, workplace: &Workplace) -> Result<String, Failure> {
    let agents = workplace.agents()?;
    let meta = agents.find(given)?;
    may_control(&meta, "resume", workplace)?;
    let running = || {
        Failure::refused("running", format!("agent {} is running", meta.address()))
            .with_hint("send it a message instead")
    };
    if agents.is_alive(&meta)? {
        return Err(running());
    }
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        agents.leave_message(&meta, workplace.agent_name(), text)?;
    }
    match agents.resume(&agents.run(&meta.agent_id), true)? {
        Some(launched) => Ok(format!("{} resumes", launched.meta.address())),
        None => Err(running()),
    }
}

fn undo(id: TaskId, workplace: &Workplace, stop: &AtomicBool) -> Result<String, Failure> {
    let agents = workplace.agents()?;
    landing::settle(&agents)?;
    let landing = landing::find(Some(&id.to_string()), &agents)?.landing;
    let report = land::undo(&landing, &UndoRequest::default(), workplace, stop)?;
    let subject = clean_cut(&report.subject.unwrap_or_default(), REPEATED);
    let into = clean_line(&landing.into);
    Ok(format!("undid L{} (#{id} {subject}) on {into}", landing.id))
}

fn reject(id: TaskId, feedback: &str, workplace: &Workplace) -> Result<String, Failure> {
    let agents = workplace.agents()?;
    landing::settle(&agents)?;
    let rejected = landing::reject(id, feedback, &agents)?;
    let next = match rejected.directed {
        true => "the running session gives it to an agent".to_owned(),
        false => format!("resume the session: ccb --team {}", workplace.team()?),
    };
    Ok(format!("#{id} was sent back; {next}"))
}

fn retry(id: TaskId, workplace: &Workplace) -> Result<String, Failure> {
    let update = Update {
        status: Some(Status::Pending),
        ..Update::default()
    };
    let caller = workplace.caller(None, false);
    let updated = task::update(id, &update, &caller, workplace)?;
    let subject = clean_cut(&updated.task.subject, REPEATED);
    Ok(format!("#{id} {subject} is ready again"))
}

fn land(tasks: &[TaskId], workplace: &Workplace, stop: &AtomicBool) -> Result<String, Failure> {
    let agents = workplace.agents()?;
    landing::settle(&agents)?;
    let everything = match tasks {
        [] => landing::everything(&agents)?,
        named => Everything {
            checked: named.to_vec(),
            ..Everything::default()
        },
    };
    let waiting = &everything.checked;
    let request = LandRequest::default();
    let reports = land::land(waiting, &request, workplace, stop, &mut |_| {})?;
    let landed = |report: &&LandReport| matches!(report.outcome, Landed::At(_) | Landed::Nothing);
    let on_branch: Vec<&LandReport> = reports.iter().filter(landed).collect();
    let done = match on_branch.first() {
        None => String::new(),
        Some(first) => format!("{} landed on {}", ids(&on_branch), clean_line(&first.into)),
    };
    let not: Vec<String> = reports
        .iter()
        .filter(|one| !landed(one))
        .map(not_landed)
        .collect();
    let left = left_unchecked(&everything, workplace);
    match (done.is_empty(), not.is_empty()) {
        (true, true) if left.is_empty() => Ok("nothing is done that has not landed".to_owned()),
        (true, true) => Ok(left),
        (false, true) if left.is_empty() => Ok(done),
        (false, true) => Ok(format!("{done}; {left}")),
        (true, false) => Err(did_not(&not.join("; "), workplace)),
        (false, false) => Err(did_not(&format!("{done}; {}", not.join("; ")), workplace)),
    }
}

/// The work that "land all" left because it is unproven.
fn left_unchecked(everything: &Everything, workplace: &Workplace) -> String {
    if everything.unchecked.is_empty() {
        return String::new();
    }
    let land = Act::Land {
        tasks: everything.rest(),
    };
    let team = workplace.named_team().unwrap_or_default();
    let (mark, words) = (Unchecked::MARK, everything.unchecked_words());
    format!(
        "{mark}, not landed: {words}. Land it with: {}",
        land.command(team)
    )
}

fn did_not(what: &str, workplace: &Workplace) -> Failure {
    let team = workplace.named_team().unwrap_or_default();
    Failure::failed("not_landed", what)
        .with_hint(format!("more about it: ccb --team {team} land --all"))
}

fn ids(reports: &[&LandReport]) -> String {
    match reports {
        [one] => format!("#{}", one.work.task),
        several => counted(several.len(), "task"),
    }
}

fn not_landed(report: &LandReport) -> String {
    let (id, into) = (report.work.task, clean_line(&report.into));
    let why = match &report.outcome {
        Landed::Conflict(files, _) => {
            format!("{into} has changed the same lines of {}", files.join(", "))
        }
        Landed::Rejected { check, .. } => format!("the check `{check}` failed on the result"),
        Landed::Left(why) | Landed::Hindered(why) => why.clone(),
        Landed::At(_) | Landed::Nothing => String::new(),
    };
    format!("#{id} did not land: {}", clean_cut(&why, 2 * REPEATED))
}
