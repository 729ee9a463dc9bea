//! Everything about one task.

use observe::live::{AttemptScene, CheckState, Difference, TaskScene};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::board::{aside, ids};
use super::list::{field, wrapped};
use super::theme::{self, BAD, BOLD, DIM, GOOD, PLAIN, WARN};
use crate::model::Model;
use crate::model::lists;
use crate::text;

pub(super) fn lines(model: &Model, width: usize) -> Vec<Line<'static>> {
    let Some((_, task)) = lists::chosen_task(model) else {
        return Vec::new();
    };
    let (glyph, style) = theme::task(task);
    let head = format!(" #{} {}", task.id, text::line(&task.subject));
    let mut lines = vec![Line::from(vec![
        Span::styled(glyph, style),
        Span::styled(text::cut(&head, width.saturating_sub(2)), BOLD),
    ])];
    let (aside, aside_style) = aside(task);
    let state = match aside.is_empty() {
        true => lists::state_word(task.state).to_owned(),
        false => format!("{}: {aside}", lists::state_word(task.state)),
    };
    lines.extend(field("state", &state, width, aside_style));
    if let Some(check) = &task.check {
        let (words, style) = check_words(task.check_state);
        lines.extend(field("check", &format!("{check}  ({words})"), width, style));
    }
    if let Some(command) = &task.command {
        lines.extend(field("runs", command, width, PLAIN));
    }
    if !task.blocked_by.is_empty() {
        lines.extend(field("waits for", &ids(&task.blocked_by), width, PLAIN));
    }
    if let Some(worktree) = &task.worktree {
        lines.extend(field("worktree", worktree, width, DIM));
    }
    lines.extend(attempts(task, width));
    if !task.description.trim().is_empty() && task.description.trim() != task.subject {
        lines.push(Line::default());
        lines.extend(wrapped(task.description.trim(), width, PLAIN));
    }
    lines
}

pub(super) fn check_words(state: CheckState) -> (String, Style) {
    let times = |n: usize| {
        if n == 1 {
            "once".into()
        } else {
            format!("{n} times")
        }
    };
    match state {
        CheckState::None => ("no check".into(), DIM),
        CheckState::NotRun => ("not run yet".into(), DIM),
        CheckState::Red(n) => (format!("failed {}", times(n)), BAD),
        CheckState::Green(0) => ("passed".into(), GOOD),
        CheckState::Green(n) => (format!("passed, after it failed {}", times(n)), GOOD),
    }
}

/// The attempts and their results, each compared with the one before.
fn attempts(task: &TaskScene, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (n, attempt) in task.attempts.iter().enumerate() {
        let head = format!("attempt {}", n + 1);
        let size = attempt
            .size
            .map(|size| format!("  {} files +{} -{}", size.files, size.added, size.deleted));
        let (difference, style) = difference(attempt);
        let words = format!(
            "{}{}{difference}",
            text::line(&attempt.why),
            size.unwrap_or_default()
        );
        let mut part = field("", &words, width, style);
        if let Some(first) = part.first_mut() {
            first.spans[0] = Span::styled(text::pad(&head, 12), DIM);
        }
        lines.extend(part);
        if n + 1 == task.attempts.len() {
            let printed = attempt.printed.iter().map(|line| {
                let line = format!("  │ {}", text::line(line));
                Line::styled(text::cut(&line, width), DIM)
            });
            lines.extend(printed);
        }
    }
    if let Some(times) = task.stuck {
        let words = format!("the same failure {times} times in a row: it does not converge");
        lines.extend(field("", &words, width, BAD));
    }
    lines
}

fn difference(attempt: &AttemptScene) -> (&'static str, Style) {
    match attempt.difference {
        _ if !attempt.counts => ("  (does not count)", DIM),
        Difference::First => ("", WARN),
        Difference::Nothing => ("  = same failure, nothing changed", BAD),
        Difference::SameFailure => ("  = same failure", WARN),
        Difference::NewFailure => ("  ≠ another failure", WARN),
    }
}
