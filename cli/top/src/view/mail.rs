//! The mail of a team, the newest first.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::list::{beside, field, first_row, put, row, text as scrolled, wrapped};
use super::theme::{BOLD, BUSY, DIM, PLAIN};
use crate::model::lists;
use crate::model::{Model, Pane};
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let all = lists::mail(model);
    if all.is_empty() {
        let words = match model.filter.is_empty() {
            true => "No mail yet. m writes to the chosen agent, i to the lead.",
            false => "No mail matches the filter. Esc clears it.",
        };
        put(
            frame,
            area,
            [Line::styled(
                text::cut(words, usize::from(area.width)),
                BOLD,
            )],
        );
        return;
    }
    let (list, below) = super::halves(model, area, area.height);
    let width = usize::from(list.width);
    let names = if width >= 100 { 16 } else { 10 };
    let room = usize::from(list.height);
    let chosen = model.chosen(Pane::Mail);
    let first = first_row(chosen, all.len(), room);
    let shown = all.iter().enumerate().skip(first).take(room);
    let lines: Vec<Line<'static>> = shown
        .map(|(n, mail)| {
            let age = text::elapsed(model.now - mail.sent_ms);
            let asks = mail.kind.ends_with("_request");
            let rest = width.saturating_sub(2 * names + 3 + 9);
            let cells = vec![
                Span::styled(text::pad(&text::line(&mail.from), names), BOLD),
                Span::styled(" → ", DIM),
                Span::styled(text::pad(&text::line(&mail.to), names), PLAIN),
                Span::styled(
                    text::pad(&format!(" {}", text::line(&mail.summary)), rest),
                    if asks { BUSY } else { PLAIN },
                ),
                Span::styled(text::pad_left(&age, 9), DIM),
            ];
            row(cells, width, n == chosen)
        })
        .collect();
    put(frame, list, lines);
    let below = beside(frame, below);
    let lines = detail(model, usize::from(below.width).saturating_sub(1));
    scrolled(frame, below, "The chosen message", &lines, 0);
}

pub(super) fn detail(model: &Model, width: usize) -> Vec<Line<'static>> {
    let all = lists::mail(model);
    let Some(mail) = all.get(model.chosen(Pane::Mail)) else {
        return Vec::new();
    };
    let route = format!("{} → {}", text::line(&mail.from), text::line(&mail.to));
    let mut lines = field("from, to", &route, width, BOLD);
    let age = format!(
        "{} ago, {}",
        text::elapsed(model.now - mail.sent_ms),
        mail.kind.replace('_', " ")
    );
    lines.extend(field("sent", &age, width, DIM));
    lines.push(Line::default());
    lines.extend(wrapped(&mail.text, width, PLAIN));
    lines
}
