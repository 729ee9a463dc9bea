//! The picture, drawn from the model alone.

pub(crate) mod agents;
mod attention;
mod board;
mod changes;
mod dialog;
mod frame;
mod graph;
mod help;
mod list;
mod mail;
mod progress;
mod task;
mod theme;
mod tiny;
pub(crate) mod transcript;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::Line;

use self::list::put;
use super::model::{Model, Pane};

/// Minimum columns for showing details beside the list and not below it.
const WIDE: u16 = 120;
/// Minimum columns for more than one thing.
const LEAST_COLUMNS: u16 = 40;
const LEAST_ROWS: u16 = 10;

/// The areas of the screen.
#[derive(Debug, Clone, Copy)]
struct Places {
    header: Rect,
    tabs: Rect,
    body: Rect,
    /// The entries that need a person, in short; its height is 0 if there are none.
    strip: Rect,
    line: Rect,
    hints: Rect,
}

fn is_tiny(model: &Model) -> bool {
    model.columns < LEAST_COLUMNS || model.rows < LEAST_ROWS
}

fn places(model: &Model) -> Places {
    let (columns, rows) = (model.columns, model.rows);
    let strip = attention::strip_height(model);
    let row = |y, height| Rect::new(0, y, columns, height);
    let body = rows.saturating_sub(4 + strip);
    Places {
        header: row(0, 1),
        tabs: row(1, 1),
        body: row(2, body),
        strip: row(2 + body, strip),
        line: row(2 + body + strip, 1),
        hints: row(3 + body + strip, 1),
    }
}

/// The list and the details of its chosen row: beside each other or one below the other.
fn halves(model: &Model, body: Rect, least_list: u16) -> (Rect, Rect) {
    if model.columns >= WIDE {
        let left = body.width * 11 / 20;
        let list = Rect {
            width: left,
            ..body
        };
        let detail = Rect {
            x: body.x + left,
            width: body.width - left,
            ..body
        };
        return (list, detail);
    }
    let list = least_list
        .clamp(3, (body.height * 3 / 5).max(3))
        .min(body.height);
    let top = Rect {
        height: list,
        ..body
    };
    let below = Rect {
        y: body.y + list,
        height: body.height - list,
        ..body
    };
    (top, below)
}

/// Number of rows for the text of the present pane.
pub(crate) fn room(model: &Model) -> usize {
    let body = match is_tiny(model) {
        true => model.rows.saturating_sub(2),
        false => places(model).body.height,
    };
    usize::from(body.saturating_sub(1).max(1))
}

/// Number of rows of the text of the present pane, if it scrolls.
pub(crate) fn length(model: &Model) -> usize {
    let width = usize::from(model.columns);
    match model.pane {
        Pane::Changes => changes::lines(model, width).len(),
        pane if model.expanded => details(model, pane, width.saturating_sub(1)).len(),
        _ => 0,
    }
}

/// The details of the chosen row of a list.
fn details(model: &Model, pane: Pane, width: usize) -> Vec<Line<'static>> {
    match pane {
        Pane::Board | Pane::Graph | Pane::Progress => task::lines(model, width),
        Pane::Mail => mail::detail(model, width),
        Pane::Needs => attention::detail(model, width),
        Pane::Agents | Pane::Transcript | Pane::Changes => Vec::new(),
    }
}

/// Draws the whole screen.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let area = frame.area();
    // The size is the model's; a screen that has just changed is drawn again at once.
    if area.width < model.columns || area.height < model.rows {
        return;
    }
    if is_tiny(model) {
        tiny::draw(frame, model);
    } else {
        let places = places(model);
        put(frame, places.header, [frame::header(model)]);
        put(frame, places.tabs, [frame::tabs(model)]);
        body(frame, model, places.body);
        put(
            frame,
            places.strip,
            attention::strip(model, places.strip.height),
        );
        frame::line(frame, model, places.line);
        put(frame, places.hints, [frame::hints(model)]);
    }
    if model.help {
        help::draw(frame, model);
    } else if !model.peeking {
        dialog::draw(frame, model);
    }
    if !model.colours {
        without_colours(frame);
    }
}

fn body(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    if model.expanded {
        let lines = details(model, model.pane, usize::from(area.width).saturating_sub(1));
        let title = format!("{} (Enter or Esc goes back)", model.pane.title());
        list::text(frame, area, &title, &lines, model.scroll(model.pane));
        return;
    }
    match model.pane {
        Pane::Agents => agents::draw(frame, model, area),
        Pane::Board => board::draw(frame, model, area),
        Pane::Graph => graph::draw(frame, model, area),
        Pane::Transcript => transcript::draw(frame, model, area),
        Pane::Changes => changes::draw(frame, model, area),
        Pane::Mail => mail::draw(frame, model, area),
        Pane::Progress => progress::draw(frame, model, area),
        Pane::Needs => attention::draw(frame, model, area),
    }
}

/// Keeps only bold, dim and reverse.
fn without_colours(frame: &mut Frame<'_>) {
    for cell in &mut frame.buffer_mut().content {
        cell.fg = Color::Reset;
        cell.bg = Color::Reset;
    }
}
