//! The entries that need a person: in short below every pane, and as a list with the whole
//! question.

use observe::live::{Act, Attention};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::list::{beside, field, first_row, put, row, text as scrolled, wrapped};
use super::theme::{self, BOLD, DIM, KEY, PLAIN};
use crate::model::lists;
use crate::model::{Model, Pane};
use crate::text;

/// Number of rows below other panes.
pub(super) fn strip_height(model: &Model) -> u16 {
    let shown = model.pane != Pane::Needs && model.dialog.is_none();
    let most = match model.rows {
        0..16 => 0,
        16..30 => 3,
        _ => 5,
    };
    let count = u16::try_from(model.scene.attention.len()).unwrap_or(u16::MAX);
    if shown { count.min(most) } else { 0 }
}

pub(super) fn strip(model: &Model, height: u16) -> Vec<Line<'static>> {
    let height = usize::from(height);
    let all = lists::needs(model);
    let width = usize::from(model.columns);
    let more = all.len().saturating_sub(height);
    let mut lines = Vec::new();
    for (n, one) in all.iter().take(height).enumerate() {
        let keys = match (n, n + 1 == height, more) {
            (0, _, 0) => "! to answer".into(),
            (_, true, 1..) => format!("{more} more: !"),
            (0, _, _) => "! to answer".into(),
            _ => String::new(),
        };
        let room = width.saturating_sub(text::width(&keys) + 5);
        let (glyph, style) = theme::need(one.need);
        lines.push(Line::from(vec![
            Span::styled(format!("{glyph} "), style),
            Span::styled(text::pad(&what(one, model), room), PLAIN),
            Span::styled(format!("  {keys} "), KEY),
        ]));
    }
    lines
}

/// The entry in words, with the team's name if another team is shown.
fn what(one: &Attention, model: &Model) -> String {
    let words = text::line(&one.what);
    match one.team == model.team_name() {
        true => words,
        false => format!("[{}] {words}", text::line(&one.team)),
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let all = lists::needs(model);
    if all.is_empty() {
        let words = match model.filter.is_empty() {
            true => "Nothing needs you.",
            false => "Nothing that needs you matches the filter.",
        };
        put(frame, area, [Line::styled(words, BOLD)]);
        return;
    }
    let count = u16::try_from(all.len()).unwrap_or(u16::MAX);
    let (list, below) = super::halves(model, area, count.saturating_add(1));
    let width = usize::from(list.width);
    let room = usize::from(list.height);
    let chosen = model.chosen(Pane::Needs);
    let first = first_row(chosen, all.len(), room);
    let rows = all.iter().enumerate().skip(first).take(room);
    let lines: Vec<Line<'static>> = rows
        .map(|(n, one)| {
            let (glyph, style) = theme::need(one.need);
            let words = text::cut(&what(one, model), width.saturating_sub(2));
            let cells = vec![Span::styled(format!("{glyph} "), style), Span::raw(words)];
            row(cells, width, n == chosen)
        })
        .collect();
    put(frame, list, lines);
    let below = beside(frame, below);
    let lines = detail(model, usize::from(below.width).saturating_sub(1));
    scrolled(frame, below, "The chosen one", &lines, 0);
}

/// Everything about the chosen entry, with the keys that answer it.
pub(super) fn detail(model: &Model, width: usize) -> Vec<Line<'static>> {
    let Some(one) = lists::chosen_need(model) else {
        return Vec::new();
    };
    let mut lines = vec![answers(one)];
    lines.extend(wrapped(&one.what, width, BOLD));
    if let Some(until) = one.until_ms.filter(|until| *until > model.now) {
        let left = text::elapsed(until - model.now);
        lines.extend(field("answer in", &left, width, PLAIN));
    }
    lines.extend(field("or type", &one.command, width, DIM));
    if !one.detail.is_empty() {
        lines.push(Line::default());
        lines.extend(wrapped(&one.detail, width, PLAIN));
    }
    lines
}

/// The keys for an entry and what they do; the first answers it.
pub(super) fn keys(one: &Attention) -> Vec<(&'static str, &'static str)> {
    let mut keys = Vec::new();
    let has = |wanted: fn(&Act) -> bool| one.answers.iter().any(wanted);
    if let Some(first) = one.answers.first() {
        keys.push(("a", first.word()));
    }
    if has(|act| matches!(act, Act::Deny { .. })) {
        keys.push(("n", "deny"));
        keys.push(("r", "deny, say why"));
    }
    if has(|act| matches!(act, Act::Reject { .. })) {
        keys.push(("r", "reject with feedback"));
    }
    if has(|act| matches!(act, Act::Stop { .. })) {
        keys.push(("x", "stop"));
    }
    if one.task.is_some() {
        keys.push(("d", "diff"));
    }
    keys
}

fn answers(one: &Attention) -> Line<'static> {
    let mut line = Line::default();
    for (key, does) in keys(one) {
        line.push_span(Span::styled(key, KEY));
        line.push_span(format!(" {does}   "));
    }
    if one.answers.is_empty() {
        line.push_span(Span::styled("no key answers this; type the command", DIM));
    }
    line
}
