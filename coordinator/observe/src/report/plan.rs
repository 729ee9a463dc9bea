//! The report of a plan: from the plan's own report, with the agents over time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use fanout::{Outcome, TaskReport};
use runs::Agents;
use store::clock::parse_rfc3339;
use swarm::redact::Secrets;

use super::gather::{Found, gather};
use super::model::{
    CheckPart, Excerpt, LandingPart, LeftPart, REPORT_VERSION, Report, ReportKind, TaskPart,
    Timeline,
};
use super::trim::{self, Room};
use super::{id_of, of_verdict, timeline, whole};

/// The report of the plan's `report`, whose patches and logs are in `dir`. Without `agents`, which
/// merged reports do not have, there is no timeline.
pub fn of_plan(
    report: &fanout::Report,
    dir: &Path,
    agents: Option<&Agents>,
    secrets: &Arc<Secrets>,
) -> Report {
    let since = parse_rfc3339(&report.started_at).unwrap_or(0);
    let mut room = Room::default();
    let mut found = match agents.map(|agents| gather(agents, None, since, None, &mut room)) {
        Some(Ok(found)) => found,
        _ => nothing(since, parse_rfc3339(&report.ended_at).unwrap_or(since)),
    };
    rename(&mut found, agents);
    let mut read: HashMap<String, TaskPart> = found
        .tasks
        .drain(..)
        .map(|part| (part.id.clone(), part))
        .collect();
    for task in &report.tasks {
        let part = read.remove(&task.id).unwrap_or_default();
        found.tasks.push(task_part(
            task,
            part,
            dir,
            report.landed.is_some(),
            &mut room,
        ));
    }
    found.timeline.critical_path = timeline::critical_path(&found.tasks, since);
    found.earlier_tasks = 0;
    found.landings = report
        .landed
        .iter()
        .map(|landed| LandingPart {
            into: landed.branch.clone(),
            commit: landed.commit.clone(),
            at: report.ended_at.clone(),
            ..LandingPart::default()
        })
        .collect();
    let team = agents.map_or_else(
        || report.name.clone(),
        |agents| agents.team_name().to_string(),
    );
    let landed = match report.landed {
        Some(_) => found
            .tasks
            .iter()
            .filter(|task| task.landing == "landed")
            .count(),
        None => 0,
    };
    let mut whole = Report {
        v: REPORT_VERSION,
        id: id_of(&team, &report.started_at),
        team,
        kind: ReportKind::Fanout,
        title: report.name.clone(),
        branch: report.landed.as_ref().map(|landed| landed.branch.clone()),
        started_at: report.started_at.clone(),
        ended_at: Some(report.ended_at.clone()),
        state: of_verdict(report.verdict),
        words: format!("{}: {}", report.title(), report.done_text()),
        left: left(report),
        notes: report.broken.iter().chain(&report.notes).cloned().collect(),
        omitted: room.words().into_iter().collect(),
        ..whole(found)
    };
    whole.totals.landed = landed;
    whole.totals.duration_ms = i64::try_from(report.duration_ms()).unwrap_or(0);
    if agents.is_none() {
        // The costs of the parts, as far as they are known.
        let cost = report.cost();
        (whole.totals.input_tokens, whole.totals.cost_usd) = (cost.tokens, cost.usd);
    }
    trim::outputs(&mut whole);
    trim::redacted(&whole, secrets)
}

fn nothing(from_ms: i64, to_ms: i64) -> Found {
    Found {
        agents: Vec::new(),
        timeline: Timeline {
            from_ms,
            to_ms,
            ..Timeline::default()
        },
        tasks: Vec::new(),
        landings: Vec::new(),
        earlier_tasks: 0,
        alive: false,
    }
}

/// Uses the tasks' ids in the plan everywhere.
fn rename(found: &mut Found, agents: Option<&Agents>) {
    let Some(snapshot) = agents.and_then(|agents| agents.board().snapshot().ok()) else {
        return;
    };
    let planned = |task: &taskboard::Task| {
        let (id, _) = fanout::planned_as(task)?;
        Some((task.id.to_string(), id.to_owned()))
    };
    let names: HashMap<String, String> = snapshot.tasks().filter_map(planned).collect();
    for task in &mut found.tasks {
        if let Some(name) = names.get(&task.id) {
            task.id.clone_from(name);
        }
    }
    for task in found
        .agents
        .iter_mut()
        .filter_map(|agent| agent.task.as_mut())
    {
        if let Some(name) = names.get(task) {
            task.clone_from(name);
        }
    }
}

fn task_part(
    task: &TaskReport,
    read: TaskPart,
    dir: &Path,
    landed: bool,
    room: &mut Room,
) -> TaskPart {
    let outcome = &task.outcome;
    let state = match outcome {
        Outcome::Conflict { .. } => "conflict",
        Outcome::Skipped { .. } => "skipped",
        outcome if outcome.is_success() => "done",
        _ => "failed",
    };
    let check = task.check.as_ref().map(|check| CheckPart {
        command: check.command.clone(),
        passed: check.exit_code == Some(0),
        words: match check.exit_code {
            Some(0) => "passed".into(),
            Some(code) => format!("failed with exit code {code}"),
            None => "did not end by itself".into(),
        },
        flaky: check.flaky.clone(),
        duration_ms: check.duration_ms,
        output: match task.files.get("check") {
            Some(file) => super::gather::tail(&dir.join(file)),
            None => Excerpt {
                text: check.tail.clone(),
                cut: 0,
            },
        },
    });
    let has_work = outcome.is_success() && outcome.commit().is_some();
    TaskPart {
        id: task.id.clone(),
        subject: task.subject.clone(),
        state: state.into(),
        words: task.words(),
        unchecked: matches!(outcome, Outcome::Unchecked { .. }).then(|| "it has no check".into()),
        after: task.depends_on.clone(),
        tries: usize::try_from(task.attempts).unwrap_or(usize::MAX),
        check: check.or(read.check),
        changes: task.changes.clone(),
        diff: task
            .files
            .get("patch")
            .and_then(|file| patch(&dir.join(file), room)),
        landing: match (landed, outcome) {
            (true, _) if has_work => "landed".into(),
            (_, Outcome::Conflict { .. }) => "waiting".into(),
            _ => String::new(),
        },
        tokens: task.cost.tokens,
        cost_usd: task.cost.usd,
        description: read.description,
        agent: read.agent,
        from_ms: read.from_ms,
        to_ms: read.to_ms,
        attempts: read.attempts,
    }
}

/// The diff of a patch, without the mail around it.
fn patch(path: &Path, room: &mut Room) -> Option<Excerpt> {
    use std::io::Read;
    let most = room.next();
    if most == 0 {
        return None;
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    let more = file.metadata().map_or(0, |file| file.len());
    file.take(most as u64).read_to_end(&mut bytes).ok()?;
    room.took(bytes.len());
    let text = String::from_utf8_lossy(&bytes);
    let start = text.find("\ndiff --git ").map_or(0, |at| at + 1);
    Some(Excerpt {
        text: text[start..].to_owned(),
        cut: more.saturating_sub(bytes.len() as u64),
    })
}

/// Conflicts with the commands that resolve them, and the command that runs the plan again.
fn left(report: &fanout::Report) -> Vec<LeftPart> {
    let mut left: Vec<LeftPart> = report
        .tasks
        .iter()
        .filter(|task| matches!(task.outcome, Outcome::Conflict { .. }))
        .map(|task| LeftPart {
            what: format!("{}: {}", task.id, task.headline()),
            command: task.resolve.join(" && "),
        })
        .collect();
    let open = report
        .tasks
        .iter()
        .filter(|task| !task.outcome.is_success());
    let open = open
        .filter(|task| !matches!(task.outcome, Outcome::Conflict { .. }))
        .count();
    if let (1.., Some(again)) = (open, &report.again) {
        left.push(LeftPart {
            what: format!("{} not done", store::counted(open, "task")),
            command: again.clone(),
        });
    }
    left
}
