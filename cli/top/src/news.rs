//! The events between two scenes, as lines: for a person who watches a team that another process
//! directs.

use observe::live::{LandState, Scene, TaskScene, TaskState, TeamLife, TeamScene};
use taskboard::Unchecked;

use super::model::{LogLine, Tone};

/// The differences between two scenes that interest a person.
pub(crate) fn news(before: &Scene, now: &Scene) -> Vec<LogLine> {
    let mut lines = Vec::new();
    let mut add = |tone, text: String| {
        lines.push(LogLine {
            at_ms: now.at_ms,
            text,
            tone,
        });
    };
    for team in &now.teams {
        let Some(old) = before.team(&team.name) else {
            add(Tone::Plain, format!("team {} is there", team.name));
            continue;
        };
        life(old, team, &mut add);
        for task in team.tasks.iter() {
            match old.task(task.id) {
                None => add(Tone::Plain, format!("+ #{} {}", task.id, task.subject)),
                Some(was) => changed(was, task, &mut add),
            }
        }
    }
    lines
}

fn life(old: &TeamScene, team: &TeamScene, add: &mut dyn FnMut(Tone, String)) {
    if old.life == team.life {
        return;
    }
    let name = &team.name;
    match team.life {
        TeamLife::Running => add(Tone::Good, format!("team {name} is running")),
        TeamLife::Ended => add(Tone::Plain, format!("the session of team {name} has ended")),
        TeamLife::Interrupted => add(
            Tone::Warn,
            format!("team {name} has no director any more. Resume: ccb --team {name}"),
        ),
        TeamLife::Open => add(Tone::Plain, format!("nobody directs team {name} any more")),
        TeamLife::Vanished => add(Tone::Bad, format!("team {name} is gone")),
    }
}

fn changed(was: &TaskScene, task: &TaskScene, add: &mut dyn FnMut(Tone, String)) {
    let (id, subject) = (task.id, &task.subject);
    let owner = task.owner.as_deref().unwrap_or("somebody");
    if task.attempts.len() > was.attempts.len()
        && let Some(last) = task.attempts.last()
    {
        add(Tone::Warn, format!("✘ #{id} failed: {}", last.why));
    }
    if was.state != task.state {
        match task.state {
            TaskState::InProgress => add(Tone::Plain, format!("▶ {owner} #{id} {subject}")),
            TaskState::Completed if task.unchecked.is_some() => {
                let mark = Unchecked::MARK;
                add(Tone::Warn, format!("{mark}: #{id} {subject} is done"));
            }
            TaskState::Completed => add(Tone::Good, format!("✔ #{id} {subject} is done")),
            TaskState::Parked => {
                let why = task.why.as_deref().unwrap_or("it failed too often");
                add(Tone::Bad, format!("‖ #{id} is parked: {why}"));
            }
            TaskState::Unreadable => add(Tone::Bad, format!("⚠ #{id} cannot be read")),
            _ => {}
        }
    }
    if was.landing != task.landing {
        match task.landing {
            LandState::Landed => add(Tone::Good, format!("⇥ #{id} has landed")),
            LandState::Undone => add(Tone::Warn, format!("↶ the landing of #{id} was undone")),
            _ => {}
        }
    }
}
