//! The dependencies of tasks, as a tree.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::board::ids;
use super::list::{beside, first_row, put, row, text as scrolled};
use super::theme::{self, BAD, BOLD, DIM, PLAIN};
use super::{WIDE, task};
use crate::model::lists;
use crate::model::{Model, Pane};
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let rows = lists::graph(model);
    let Some(team) = model.team().filter(|_| !rows.is_empty()) else {
        put(
            frame,
            area,
            [Line::styled(
                "There are no tasks, so nothing waits for anything.",
                BOLD,
            )],
        );
        return;
    };
    let (list, right) = match model.columns >= WIDE {
        true => super::halves(model, area, 0),
        false => (area, Rect::ZERO),
    };
    let width = usize::from(list.width);
    let mut foot: Vec<Line<'static>> = Vec::new();
    if team.graph.critical_path.len() > 1 {
        let words = format!("longest chain: {}", chain(&team.graph.critical_path));
        foot.push(Line::styled(text::cut(&words, width), DIM));
    }
    for cycle in &team.graph.cycles {
        let words = format!("⚠ {} wait for each other", ids(cycle));
        foot.push(Line::styled(text::cut(&words, width), BAD));
    }
    foot.truncate(3);
    let feet = u16::try_from(foot.len()).unwrap_or(0).min(list.height);
    let above = Rect {
        height: list.height - feet,
        ..list
    };
    let below = Rect {
        y: list.y + above.height,
        height: feet,
        ..list
    };
    let chosen = model.chosen(Pane::Graph);
    let room = usize::from(above.height);
    let first = first_row(chosen, rows.len(), room);
    let shown = rows.iter().enumerate().skip(first).take(room);
    let lines: Vec<Line<'static>> = shown
        .map(|(n, one)| {
            let critical = team.graph.critical_path.contains(&one.task.id);
            let (glyph, style) = theme::task(one.task);
            let also = match one.also.is_empty() {
                true => String::new(),
                false => format!("  ← also {}", ids(&one.also)),
            };
            let words = format!(" #{} {}", one.task.id, text::line(&one.task.subject));
            let room = width.saturating_sub(text::width(&one.prefix) + 1 + text::width(&also));
            let prefix = text::cut(&one.prefix, width / 2);
            let cells = vec![
                Span::styled(prefix, DIM),
                Span::styled(glyph, style),
                Span::styled(text::cut(&words, room), if critical { BOLD } else { PLAIN }),
                Span::styled(also, DIM),
            ];
            row(cells, width, n == chosen)
        })
        .collect();
    put(frame, above, lines);
    put(frame, below, foot);
    if right.width > 0 {
        let right = beside(frame, right);
        let lines = task::lines(model, usize::from(right.width).saturating_sub(1));
        scrolled(frame, right, "The chosen task", &lines, 0);
    }
}

fn chain(path: &[taskboard::TaskId]) -> String {
    let ids: Vec<String> = path.iter().map(|id| format!("#{id}")).collect();
    ids.join(" → ")
}
