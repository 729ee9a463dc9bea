//! Questions in the middle of the screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};
use taskboard::Unchecked;

use super::list::{first_row, put, row, wrapped};
use super::theme::{BOLD, GOOD, KEY, PLAIN, WARN};
use crate::model::{Dialog, LandQuestion, Model};
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let Some(dialog) = &model.dialog else {
        return;
    };
    let most = usize::from(model.columns).saturating_sub(4).min(76);
    let (lines, keys) = match dialog {
        Dialog::Confirm { question, more, .. } => {
            let mut lines = wrapped(question, most, BOLD);
            lines.extend(wrapped(more, most, PLAIN));
            (lines, vec![keys(&[("y", "yes"), ("n", "no")])])
        }
        Dialog::Leave => leave(model, most),
        Dialog::Land {
            question,
            chosen,
            cursor,
        } => landing(question, chosen, *cursor, most, usize::from(model.rows)),
    };
    boxed(frame, model, lines, keys);
}

/// Minimum width of the area beside a box, in columns.
const SHRED: u16 = 8;

/// Draws lines in a frame in the middle, over the pane. If not all of them fit, the keys are kept.
pub(super) fn boxed(
    frame: &mut Frame<'_>,
    model: &Model,
    mut lines: Vec<Line<'static>>,
    keys: Vec<Line<'static>>,
) {
    let borders = if model.rows < 8 { 0 } else { 2 };
    let room = usize::from(model.rows).saturating_sub(borders + keys.len());
    lines.truncate(room);
    lines.extend(keys);
    let widest = lines.iter().map(Line::width).max().unwrap_or(0);
    let mut width = u16::try_from(widest + 4)
        .unwrap_or(u16::MAX)
        .min(model.columns);
    // A narrower area beside the box would show only shreds of the pane.
    if model.columns - width < SHRED {
        width = model.columns;
    }
    let height = u16::try_from(lines.len() + 2)
        .unwrap_or(u16::MAX)
        .min(model.rows);
    let area = Rect::new(
        (model.columns - width) / 2,
        (model.rows - height) / 2,
        width,
        height,
    );
    // On a screen of five rows the words matter more than the frame.
    if model.rows < 8 {
        let area = Rect::new(0, 0, model.columns, model.rows);
        Clear.render(area, frame.buffer_mut());
        put(frame, area, lines);
        return;
    }
    Clear.render(area, frame.buffer_mut());
    Block::bordered()
        .border_style(KEY)
        .render(area, frame.buffer_mut());
    let inner = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    };
    put(frame, inner, lines);
}

pub(super) fn keys(keys: &[(&'static str, &'static str)]) -> Line<'static> {
    let mut line = Line::default();
    for (key, does) in keys {
        line.push_span(Span::styled(*key, KEY));
        line.push_span(format!(" {does}   "));
    }
    line
}

type Lines = Vec<Line<'static>>;

fn leave(model: &Model, width: usize) -> (Lines, Lines) {
    let team = text::line(&model.team_name());
    let mut lines = wrapped("Leave the session?", width, BOLD);
    lines.extend(wrapped(
        &format!(
            "This process directs team {team}. If it ends, agents finish their step and their \
             tasks go back on the board. Come back with: ccb --team {team}"
        ),
        width,
        PLAIN,
    ));
    let keys = vec![
        keys(&[("y", "stop and end the session"), ("n", "stay")]),
        keys(&[("p", "close only the view: the session goes on as lines")]),
    ];
    (lines, keys)
}

fn landing(
    question: &LandQuestion,
    chosen: &std::collections::BTreeSet<taskboard::TaskId>,
    cursor: usize,
    width: usize,
    rows: usize,
) -> (Lines, Lines) {
    let into = text::line(&question.into);
    let count = store::counted(question.offers.len(), "task");
    let mut lines = wrapped(
        &format!("The work on {count} is finished. Land it on {into}?"),
        width,
        BOLD,
    );
    let room = rows.saturating_sub(8).max(1);
    let first = first_row(cursor, question.offers.len(), room);
    for (n, offer) in question.offers.iter().enumerate().skip(first).take(room) {
        let mark = if chosen.contains(&offer.task) {
            "[x] "
        } else {
            "[ ] "
        };
        let checked = match offer.unchecked {
            None => "✔ check passed",
            Some(_) => Unchecked::MARK,
        };
        let right = match width < 40 {
            true => String::new(),
            false => format!("  {}  {checked}", offer.size),
        };
        let left = format!("#{} {}", offer.task, text::line(&offer.subject));
        let space = width.saturating_sub(4 + text::width(&right));
        let style = if offer.unchecked.is_none() {
            GOOD
        } else {
            WARN
        };
        let cells = vec![
            Span::raw(mark),
            Span::raw(text::pad(&left, space)),
            Span::styled(right, style),
        ];
        lines.push(row(cells, width, n == cursor));
    }
    let keys = vec![
        keys(&[
            ("a", all_of(question)),
            ("Space", "choose"),
            ("Enter", "land the chosen"),
        ]),
        keys(&[("d", "diff"), ("n", "land nothing")]),
    ];
    (lines, keys)
}

/// The words for the key that lands all: unchecked work must be chosen explicitly.
fn all_of(question: &LandQuestion) -> &'static str {
    let unchecked = question
        .offers
        .iter()
        .filter(|offer| offer.unchecked.is_some());
    match unchecked.count() {
        0 => "land all",
        some if some == question.offers.len() => "land all unchecked",
        _ => "land all checked",
    }
}
