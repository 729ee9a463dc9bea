//! The changes of the chosen agent or task, as a coloured diff.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::list::{put, text as scrolled};
use super::theme::{BAD, BOLD, BUSY, DIM, GOOD, PLAIN, WARN};
use crate::model::{Model, Pane};
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let Some((of, _)) = &model.changes else {
        let words = "No agent or task is chosen. Choose one in 1 or 2, then d.";
        put(
            frame,
            area,
            [Line::styled(
                text::cut(words, usize::from(area.width)),
                BOLD,
            )],
        );
        return;
    };
    let lines = lines(model, usize::from(area.width));
    let title = format!("Changes of {}", text::line(&of.name));
    scrolled(frame, area, &title, &lines, model.scroll(Pane::Changes));
}

pub(super) fn lines(model: &Model, width: usize) -> Vec<Line<'static>> {
    let Some((_, result)) = &model.changes else {
        return Vec::new();
    };
    let changes = match result {
        None => return vec![Line::styled("reading …", DIM)],
        Some(Err(why)) => {
            let words = text::line(why);
            let wrapped = text::wrap(&words, width.saturating_sub(2));
            return wrapped
                .into_iter()
                .map(|part| Line::styled(part, WARN))
                .collect();
        }
        Some(Ok(changes)) => changes,
    };
    if changes.files.is_empty() {
        return vec![Line::styled("Nothing has changed.", BOLD)];
    }
    let mut lines = Vec::new();
    let (added, deleted) = changes.lines();
    let count = store::counted(changes.files.len(), "file");
    lines.push(Line::from(vec![
        Span::raw(count),
        Span::styled(format!(" +{added}"), GOOD),
        Span::styled(format!(" -{deleted}"), BAD),
        Span::styled(
            if changes.uncommitted {
                "  not all of it is committed"
            } else {
                ""
            },
            WARN,
        ),
    ]));
    for file in &changes.files {
        let number = |sign: char, count: Option<u64>| match count {
            Some(count) => format!(" {sign}{count}"),
            None => " binary".into(),
        };
        let path = text::cut(&text::line(&file.path), width.saturating_sub(16));
        lines.push(Line::from(vec![
            Span::raw(format!("  {path}")),
            Span::styled(number('+', file.added), GOOD),
            Span::styled(
                number('-', file.deleted.filter(|_| file.added.is_some())).replace(" binary", ""),
                BAD,
            ),
        ]));
    }
    lines.push(Line::default());
    for line in &changes.diff {
        let style = style_of(line);
        lines.push(Line::styled(text::cut(&text::line(line), width), style));
    }
    if changes.cut {
        lines.push(Line::styled(
            "… the diff goes on: ccb diff shows all of it",
            DIM,
        ));
    }
    lines
}

fn style_of(line: &str) -> Style {
    match line {
        line if line.starts_with("+++") || line.starts_with("---") => BOLD,
        line if line.starts_with("diff ") => BOLD,
        line if line.starts_with("@@") => BUSY,
        line if line.starts_with('+') => GOOD,
        line if line.starts_with('-') => BAD,
        line if line.starts_with("index ") => DIM,
        _ => PLAIN,
    }
}
