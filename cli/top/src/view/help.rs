//! Every key.

use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::dialog::boxed;
use super::theme::{BOLD, DIM, KEY};
use crate::keys::HELP;
use crate::model::Model;
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let width = usize::from(model.columns).saturating_sub(4).min(90);
    // If there is little room, a key's effect matters more than its second name.
    let column = if width < 40 { width / 3 } else { 15 };
    let mut lines = vec![Line::styled(
        text::cut("Keys (any key closes this)", width),
        BOLD,
    )];
    for (keys, does) in HELP {
        lines.push(Line::from(vec![
            Span::styled(text::pad(keys, column), KEY),
            Span::raw(text::cut(does, width.saturating_sub(column))),
        ]));
    }
    let typed = "Typed after i: TEXT, @NAME TEXT, /task TEXT, /run CMD, /stop NAME, /quit";
    if usize::from(model.rows) > lines.len() + 3 {
        lines.push(Line::styled(text::cut(typed, width), DIM));
    }
    boxed(frame, model, lines, Vec::new());
}
