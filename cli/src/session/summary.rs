//! How a session ended, in words for people and as JSON for programs.

use coordinator::session::Summary;
use coordinator::session::Verdict;
use serde_json::{Value, json};
use store::counted;
use taskboard::{TaskId, Unchecked};

use super::text::NAMED;
use crate::cost::{saved_line, usage_line};
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, RED, YELLOW, clean_line, failure_lines, hanging};

/// How it ended, as the last event.
pub(super) fn summary_json(summary: &Summary) -> Value {
    json!({
        "event": "end",
        "team": summary.team,
        "exit": Exit::from(summary.verdict).code(),
        "tasks": {"total": summary.total, "completed": summary.completed},
        "unchecked": summary.unchecked,
        "parked": summary.parked,
        "notLanded": summary.unlanded,
        "leftTrees": summary.left,
        "stopped": summary.stopped,
        "report": summary.report,
        "leadFailure": summary.lead_failure,
        "stayingTrees": summary.staying,
        "usage": summary.usage.map(|usage| usage.to_json()),
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
    // The lead may have done everything itself, without tasks.
    text.push_str(&match (total, summary.verdict) {
        (0, Verdict::Done) => format!("{GREEN}{BOLD}done{BOLD:#}{GREEN:#}"),
        (0, Verdict::Interrupted(_)) => format!("{YELLOW}{BOLD}interrupted{BOLD:#}{YELLOW:#}"),
        (0, _) => format!("{RED}{BOLD}failed{BOLD:#}{RED:#}"),
        _ => format!(
            "{colour}{BOLD}{completed} of {} completed{BOLD:#}{colour:#}",
            counted(*total, "task")
        ),
    });
    push_parked(summary, &mut text);
    push_unlanded(summary, &mut text);
    push_kept(summary, &mut text);
    let used = summary.usage.as_ref();
    let lines = [used.and_then(usage_line), used.and_then(saved_line)];
    for line in lines.into_iter().flatten() {
        text.push_str(&format!("\n  {DIM}{line}{DIM:#}"));
    }
    if completed < total || summary.verdict != Verdict::Done {
        text.push_str(&format!(
            "\n  {DIM}resume: ccb --team {}{DIM:#}",
            summary.team
        ));
    }
    text
}

/// Adds the tasks that failed too often, each with its reason and the command that tries again.
fn push_parked(summary: &Summary, text: &mut String) {
    for task in summary.parked.iter().take(NAMED) {
        let again = format!("ccb --team {} task retry {}", summary.team, task.id);
        text.push_str(&format!(
            "\n{RED}‖{RED:#} #{} {} is parked: {}",
            task.id,
            clean_line(&task.subject),
            failure_lines(first_line(&task.reason), task.log.as_deref(), Some(&again))
        ));
    }
    if let Some(more @ 1..) = summary.parked.len().checked_sub(NAMED) {
        let team = &summary.team;
        text.push_str(&format!(
            "\n  and {} more: ccb --team {team} task list",
            counted(more, "parked task")
        ));
    }
}

/// Adds the work that has not landed, and the commands to inspect and to land it.
fn push_unlanded(summary: &Summary, text: &mut String) {
    if !summary.unlanded.is_empty() {
        let ids: Vec<String> = summary.unlanded.iter().map(|id| format!("#{id}")).collect();
        let (team, first) = (&summary.team, summary.unlanded.first());
        let is_unchecked = |id: &&TaskId| summary.unchecked.contains(id);
        let unchecked: Vec<String> = summary
            .unlanded
            .iter()
            .filter(is_unchecked)
            .map(ToString::to_string)
            .collect();
        let land = match summary.unlanded.as_slice() {
            [one] => one.to_string(),
            _ => "--all".into(),
        };
        text.push_str(&format!(
            "\n  {YELLOW}not landed:{YELLOW:#} {}",
            ids.join(", ")
        ));
        if let Some(first) = first {
            text.push_str(&format!(
                "\n  {DIM}look: ccb --team {team} diff {first}   land: ccb --team {team} land {land}{DIM:#}"
            ));
        }
        if !unchecked.is_empty() && summary.unlanded.len() > 1 {
            text.push_str(&format!(
                "\n  {YELLOW}{}{YELLOW:#}, not part of --all: ccb --team {team} land {}",
                Unchecked::MARK,
                unchecked.join(" ")
            ));
        }
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
}

/// Adds the kept worktrees.
fn push_kept(summary: &Summary, text: &mut String) {
    if !summary.staying.is_empty() {
        let mut tasks: Vec<String> = Vec::new();
        for tree in &summary.staying {
            let task = format!("#{}", tree.task);
            if !tasks.contains(&task) {
                tasks.push(task);
            }
        }
        if let Some(more @ 1..) = tasks.len().checked_sub(NAMED) {
            tasks.truncate(NAMED);
            tasks.push(format!("{more} more"));
        }
        text.push_str(&format!(
            "\n  {DIM}kept: {} of {} (ccb worktree list){DIM:#}",
            counted(summary.staying.len(), "worktree"),
            tasks.join(", ")
        ));
    }
}

/// The first line of a failure. Its output was already printed when it happened.
fn first_line(why: &str) -> &str {
    why.trim_start().lines().next().unwrap_or_default()
}
