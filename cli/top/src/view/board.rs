//! The board: tasks that run, are stuck, can start, wait, or are done.

use observe::live::{TaskScene, TaskState};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use taskboard::Unchecked;

use super::list::{beside, first_row, put, row, text as scrolled};
use super::task;
use super::theme::{self, BAD, BOLD, DIM, GOOD, PLAIN, WARN};
use crate::model::lists;
use crate::model::{Model, Pane};
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let tasks = lists::tasks(model);
    if tasks.is_empty() {
        put(frame, area, empty(model));
        return;
    }
    let (list, below) = super::halves(model, area, area.height);
    let width = usize::from(list.width);
    let chosen = model.chosen(Pane::Board);
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut marked = 0;
    let mut group = None;
    for (n, task) in tasks.iter().enumerate() {
        let word = group_of(task.state);
        if group != Some(word) {
            group = Some(word);
            let count = tasks.iter().filter(|it| group_of(it.state) == word).count();
            lines.push(Line::styled(format!("{word} {count}"), BOLD));
        }
        if n == chosen {
            marked = lines.len();
        }
        lines.push(row(cells(task, width), width, n == chosen));
    }
    let room = usize::from(list.height);
    let first = first_row(marked, lines.len(), room);
    put(frame, list, lines.into_iter().skip(first));
    let below = beside(frame, below);
    let lines = task::lines(model, usize::from(below.width).saturating_sub(1));
    scrolled(frame, below, "The chosen task", &lines, 0);
}

fn empty(model: &Model) -> Vec<Line<'static>> {
    if !model.filter.is_empty() {
        return vec![Line::styled(
            "No task matches the filter. Esc clears it.",
            BOLD,
        )];
    }
    let name = text::line(&model.team_name());
    vec![
        Line::styled("The board is empty.", BOLD),
        Line::styled(
            format!("Add a task:  ccb --team {name} task create SUBJECT"),
            PLAIN,
        ),
    ]
}

fn group_of(state: TaskState) -> &'static str {
    match state {
        TaskState::InProgress | TaskState::Reported => "In progress",
        TaskState::Parked | TaskState::Unreadable => "Parked",
        TaskState::Ready | TaskState::Assigned => "Ready",
        TaskState::Blocked => "Blocked",
        TaskState::Completed => "Done",
    }
}

pub(super) fn cells(task: &TaskScene, width: usize) -> Vec<Span<'static>> {
    let (glyph, style) = theme::task(task);
    let (right, right_style) = aside(task);
    let right = text::cut(&right, width / 2);
    let id = format!("#{}", task.id);
    let room = width.saturating_sub(2 + 5 + 1 + text::width(&right) + 1);
    let subject_style = match task.state {
        TaskState::Blocked | TaskState::Completed => DIM,
        _ => PLAIN,
    };
    vec![
        Span::styled(format!("{glyph} "), style),
        Span::styled(text::pad(&id, 5), DIM),
        Span::raw(" "),
        Span::styled(text::pad(&text::line(&task.subject), room), subject_style),
        Span::styled(format!(" {right}"), right_style),
    ]
}

/// The words beside the subject: the agent, the reason for a wait, or the result.
pub(super) fn aside(task: &TaskScene) -> (String, Style) {
    let owner = task.owner.as_deref().map(text::line).unwrap_or_default();
    match task.state {
        TaskState::Blocked => (format!("waits for {}", ids(&task.blocked_by)), DIM),
        TaskState::Parked | TaskState::Unreadable => {
            let why = task.why.as_deref().unwrap_or("it failed too often");
            (text::line(why), BAD)
        }
        TaskState::Completed => {
            let (word, style) = theme::landing(task.landing).unwrap_or(("", DIM));
            match task.unchecked {
                None => (format!("checked, {word}"), style),
                Some(_) => (format!("{}, {word}", Unchecked::MARK), WARN),
            }
        }
        TaskState::Reported => (format!("{owner}, check running"), GOOD),
        TaskState::InProgress => match task.attempts.len() {
            0 => (owner, PLAIN),
            failed => (format!("{owner}, attempt {}", failed + 1), PLAIN),
        },
        TaskState::Assigned => (format!("for {owner}"), PLAIN),
        TaskState::Ready => (String::new(), PLAIN),
    }
}

/// `#1, #2`
pub(super) fn ids(ids: &[taskboard::TaskId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("#{id}")).collect();
    ids.join(", ")
}
