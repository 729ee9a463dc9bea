//! Rows on the screen: lists with a chosen row, text that scrolls, and titles.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::theme::{BOLD, CHOSEN, DIM};
use crate::text;

/// Puts lines into an area, from its top; lines that do not fit are left out.
pub(super) fn put(
    frame: &mut Frame<'_>,
    area: Rect,
    lines: impl IntoIterator<Item = Line<'static>>,
) {
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        let row = Rect {
            y,
            height: 1,
            ..area
        };
        line.render(row, frame.buffer_mut());
    }
}

/// A title with a rule behind it.
pub(super) fn title(words: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let words = text::cut(words, width.saturating_sub(4));
    let rule = "─".repeat(width.saturating_sub(text::width(&words) + 4));
    Line::from(vec![
        Span::styled("─ ", DIM),
        Span::styled(words, BOLD),
        Span::styled(format!(" {rule}"), DIM),
    ])
}

/// The first shown row of a list, such that the chosen row can be seen.
pub(super) fn first_row(chosen: usize, count: usize, room: usize) -> usize {
    let most = count.saturating_sub(room);
    chosen.saturating_sub(room / 2).min(most)
}

/// One row with several parts, filled up to `width` so that the whole of it can be marked. A chosen
/// row has no colours of its own: reversed, each of them would be another background.
pub(super) fn row(mut parts: Vec<Span<'static>>, width: usize, chosen: bool) -> Line<'static> {
    if chosen {
        let used: usize = parts.iter().map(Span::width).sum();
        parts.push(Span::raw(" ".repeat(width.saturating_sub(used))));
        for part in &mut parts {
            let bold = part.style.add_modifier.contains(Modifier::BOLD);
            part.style = if bold { CHOSEN.patch(BOLD) } else { CHOSEN };
        }
    }
    Line::from(parts)
}

/// Text below a title, from line `scroll` on, with the number of remaining lines.
pub(super) fn text(
    frame: &mut Frame<'_>,
    area: Rect,
    words: &str,
    lines: &[Line<'static>],
    scroll: usize,
) {
    let room = usize::from(area.height.saturating_sub(1));
    let scroll = scroll.min(lines.len().saturating_sub(room));
    let below = lines.len().saturating_sub(scroll + room);
    let head = match (scroll, below) {
        (0, 0) => words.to_owned(),
        (_, 0) => format!("{words} · end"),
        (_, below) => format!("{words} · {below} more ↓"),
    };
    put(frame, area, [title(&head, area.width)]);
    let inner = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    put(frame, inner, lines.iter().skip(scroll).cloned());
}

/// The area to the right of a line that separates it from its left neighbour; the whole area if
/// there is no neighbour.
pub(super) fn beside(frame: &mut Frame<'_>, area: Rect) -> Rect {
    if area.x == 0 || area.width < 3 {
        return area;
    }
    let rule = (0..area.height).map(|_| Line::styled("│", DIM));
    put(frame, Rect { width: 1, ..area }, rule);
    Rect {
        x: area.x + 1,
        width: area.width - 1,
        ..area
    }
}

/// A paragraph of others' text, wrapped.
pub(super) fn wrapped(
    words: &str,
    width: usize,
    style: ratatui::style::Style,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for line in text::lines(words) {
        for part in text::wrap(&line, width) {
            lines.push(Line::styled(part, style));
        }
    }
    lines
}

/// A name and its value, wrapped behind it.
pub(super) fn field(
    name: &'static str,
    value: &str,
    width: usize,
    style: ratatui::style::Style,
) -> Vec<Line<'static>> {
    const NAME: usize = 12;
    let mut lines = Vec::new();
    let wrapped = text::lines(value)
        .iter()
        .flat_map(|line| text::wrap(line, width.saturating_sub(NAME)))
        .collect::<Vec<String>>();
    for (n, part) in wrapped.into_iter().enumerate() {
        let head = if n == 0 { name } else { "" };
        lines.push(Line::from(vec![
            Span::styled(text::pad(head, NAME), DIM),
            Span::styled(part, style),
        ]));
    }
    lines
}
