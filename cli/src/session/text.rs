//! What happens in a session, in words for people and as JSON for programs.

use std::time::Duration;

use anstyle::Style;
use coordinator::fanout::Verdict;
use coordinator::session::{DirectorEvent, Stand, Summary, TaskEnd};
use serde_json::{Value, json};
use swarm::run::{CheckPlace, Checked};

use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, clean_line, hanging};

/// How many trees are named at the end; the rest is counted.
const NAMED: usize = 10;

pub(super) fn event_json(event: &DirectorEvent) -> Value {
    let mut json = json!(event);
    match event {
        DirectorEvent::Ended {
            end, usage, took, ..
        } => {
            let (word, why) = end_words(end);
            json["outcome"] = word.into();
            json["tokens"] = usage.total_tokens().into();
            json["durationMs"] = ms(*took).into();
            if let Some(why) = why {
                json["why"] = why.into();
            }
            if let TaskEnd::Done {
                proof: Some(proof), ..
            } = end
            {
                json["proof"] = json!(proof);
            }
        }
        DirectorEvent::AtRest { stand } => json["stand"] = stand_words(stand).into(),
        _ => {}
    }
    json
}

/// `style` is how the agent it is about is shown.
pub(super) fn event_text(event: &DirectorEvent, style: Style) -> String {
    match event {
        DirectorEvent::Started {
            task,
            subject,
            agent,
            name,
            attempt,
            adopted,
        } => {
            let who = clean_line(name.as_deref().unwrap_or(agent));
            let again = match (*attempt, *adopted) {
                (_, true) => " (found at work)".to_owned(),
                (1, _) => String::new(),
                (more, _) => format!(" (attempt {more})"),
            };
            format!(
                "{CYAN}▶{CYAN:#} {style}{who}{style:#} #{task} {}{again}",
                clean_line(subject)
            )
        }
        DirectorEvent::Ended {
            task, end, took, ..
        } => {
            let seconds = took.as_secs_f64();
            match end {
                TaskEnd::Done { proof, .. } => {
                    let check = proof.as_ref().and_then(|proof| proof.check.as_ref());
                    let check = check.filter(|check: &&Checked| check.passed);
                    let checked = match check.map(|check| check.place) {
                        Some(CheckPlace::Commit) => ", checked",
                        Some(CheckPlace::InPlace) => ", checked in place",
                        None => "",
                    };
                    format!("{GREEN}✔{GREEN:#} #{task} done{checked} {DIM}{seconds:.1} s{DIM:#}")
                }
                TaskEnd::Failed { why } => {
                    format!(
                        "{YELLOW}✘{YELLOW:#} #{task} failed: {}",
                        clean_line(&short(why))
                    )
                }
                TaskEnd::Parked { why } => {
                    format!("{RED}✘{RED:#} #{task} parked: {}", clean_line(&short(why)))
                }
                TaskEnd::Stopped { why } => {
                    format!("{YELLOW}■{YELLOW:#} #{task} stopped: {}", clean_line(why))
                }
                TaskEnd::Taken => format!("{DIM}#{task} is somebody else's now{DIM:#}"),
            }
        }
        DirectorEvent::Landed { task, into, commit } => {
            let commit = commit.get(..10).unwrap_or(commit);
            format!("{GREEN}⇥{GREEN:#} #{task} is on {into} {DIM}{commit}{DIM:#}")
        }
        DirectorEvent::NotLanded {
            task,
            files,
            why,
            became,
        } => {
            let files = match files.as_slice() {
                [] => String::new(),
                files => format!(" ({})", clean_line(&files.join(", "))),
            };
            let became =
                became.map_or_else(String::new, |id| format!("; task #{id} is to solve it"));
            format!(
                "{YELLOW}⇤{YELLOW:#} #{task} did not land: {}{files}{became}",
                clean_line(&short(why))
            )
        }
        DirectorEvent::AtRest { stand } => {
            format!("{DIM}{}{DIM:#}", clean_line(&stand_words(stand)))
        }
        DirectorEvent::Paused { why } => format!("{YELLOW}paused:{YELLOW:#} {}", clean_line(why)),
        DirectorEvent::Resumed => "it goes on".into(),
        DirectorEvent::Note { text } => clean_line(text),
        other => format!("{other:?}"),
    }
}

fn end_words(end: &TaskEnd) -> (&'static str, Option<&str>) {
    match end {
        TaskEnd::Done { proof, .. } => match proof {
            Some(proof) if proof.commit.is_some() && !proof.changed => ("no_change", None),
            _ => ("done", None),
        },
        TaskEnd::Failed { why } => ("failed", Some(why)),
        TaskEnd::Parked { why } => ("parked", Some(why)),
        TaskEnd::Stopped { why } => ("stopped", Some(why)),
        TaskEnd::Taken => ("taken", None),
    }
}

pub(super) fn stand_words(stand: &Stand) -> String {
    match stand {
        Stand::Working => "at work".into(),
        Stand::Waiting(why) => format!("waiting: {why}"),
        Stand::AllDone => "every task is completed".into(),
        Stand::Stuck(left) => format!("{} tasks cannot go on by themselves", left.len()),
        Stand::GivenUp(why) => format!("given up: {why}"),
    }
}

/// The first line that says something, and not too much of it.
fn short(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().chars().take(160).collect()
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// How it ended, as the last event.
pub(super) fn summary_json(summary: &Summary) -> Value {
    json!({
        "event": "end",
        "team": summary.team,
        "exit": Exit::from(summary.verdict).code(),
        "tasks": {"total": summary.total, "completed": summary.completed},
        "parked": summary.parked,
        "notLanded": summary.unlanded,
        "leftTrees": summary.left,
        "stopped": summary.stopped,
        "report": summary.report,
        "leadFailure": summary.lead_failure,
        "stayingTrees": summary.staying,
    })
}

/// How it ended, for people.
pub(super) fn summary_text(summary: &Summary) -> String {
    let Summary {
        completed, total, ..
    } = summary;
    let colour = match summary.verdict {
        Verdict::Done => GREEN,
        Verdict::Interrupted(_) => YELLOW,
        _ => RED,
    };
    let mut text = String::new();
    if let Some(report) = &summary.report {
        text.push_str(&format!("{}\n", hanging(report)));
    }
    if let Some(failure) = &summary.lead_failure {
        text.push_str(&format!(
            "{RED}the lead failed:{RED:#} {}\n",
            hanging(failure)
        ));
    }
    // A lead may have done everything itself.
    text.push_str(&match (total, summary.verdict) {
        (0, Verdict::Done) => format!("{GREEN}{BOLD}done{BOLD:#}{GREEN:#}"),
        (0, Verdict::Interrupted(_)) => format!("{YELLOW}{BOLD}interrupted{BOLD:#}{YELLOW:#}"),
        (0, _) => format!("{RED}{BOLD}failed{BOLD:#}{RED:#}"),
        _ => format!(
            "{colour}{BOLD}{completed} of {total} tasks completed{BOLD:#}{colour:#} {DIM}({}){DIM:#}",
            stand_words(&summary.stand)
        ),
    });
    for task in &summary.parked {
        let why = task.reason.lines().next().unwrap_or_default();
        text.push_str(&format!(
            "\n  {RED}‖{RED:#} #{} {}: {}",
            task.id,
            clean_line(&task.subject),
            clean_line(why)
        ));
    }
    if !summary.unlanded.is_empty() {
        let ids: Vec<String> = summary.unlanded.iter().map(|id| format!("#{id}")).collect();
        text.push_str(&format!(
            "\n  not landed: {}; `ccb worktree list` shows their trees, `ccb worktree merge NAME` \
             lands one",
            ids.join(", ")
        ));
    }
    for tree in &summary.left {
        text.push_str(&format!(
            "\n  {YELLOW}not landed:{YELLOW:#} {} left {} in worktree {} ({})",
            tree.agent,
            clean_line(&tree.why),
            tree.worktree,
            clean_line(&tree.description)
        ));
    }
    if completed < total || summary.verdict != Verdict::Done {
        text.push_str(&format!(
            "\n  {DIM}`ccb --team {}` goes on{DIM:#}",
            summary.team
        ));
    }
    for tree in summary.staying.iter().take(NAMED) {
        let (name, task, why) = (&tree.worktree, tree.task, clean_line(&tree.why));
        text.push_str(&format!(
            "\n  {DIM}worktree {name} stays: #{task}, {why}{DIM:#}"
        ));
    }
    if let Some(more @ 1..) = summary.staying.len().checked_sub(NAMED) {
        text.push_str(&format!(
            "\n  {DIM}and {more} more: `ccb worktree list`{DIM:#}"
        ));
    }
    text
}
