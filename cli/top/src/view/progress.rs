//! Shows whether the work converges: tasks done over time, the rest, the costs, and the effort of
//! each task.

use observe::live::{CheckState, RunProgress, TaskScene, TeamScene};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::list::{beside, first_row, put, row, text as scrolled, title};
use super::theme::{self, BAD, BOLD, DIM, GOOD, PLAIN, WARN};
use super::{WIDE, agents, task};
use crate::model::lists;
use crate::model::{Model, Pane};
use crate::text;

/// Width of the names of the numbers.
const NAME: usize = 12;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let Some(team) = model.team() else {
        put(
            frame,
            area,
            [Line::styled(
                "Nothing runs, so there is no progress to show.",
                BOLD,
            )],
        );
        return;
    };
    let width = usize::from(area.width);
    let mut lines = summary(team, model, width);
    lines.extend(marked(team, width));
    lines.push(title("Tasks: attempts and checks", area.width));
    let used = u16::try_from(lines.len())
        .unwrap_or(u16::MAX)
        .min(area.height);
    put(frame, area, lines);
    let rest = Rect {
        y: area.y + used,
        height: area.height - used,
        ..area
    };
    let (list, right) = match model.columns >= WIDE {
        true => super::halves(model, rest, 0),
        false => (rest, Rect::ZERO),
    };
    let tasks = lists::tasks(model);
    let width = usize::from(list.width);
    let room = usize::from(list.height);
    let chosen = model.chosen(Pane::Progress);
    let first = first_row(chosen, tasks.len(), room);
    let shown = tasks.iter().enumerate().skip(first).take(room);
    let lines: Vec<Line<'static>> = shown
        .map(|(n, task)| row(cells(task, width), width, n == chosen))
        .collect();
    put(frame, list, lines);
    if right.width > 0 {
        let right = beside(frame, right);
        let lines = task::lines(model, usize::from(right.width).saturating_sub(1));
        scrolled(frame, right, "The chosen task", &lines, 0);
    }
}

fn summary(team: &TeamScene, model: &Model, width: usize) -> Vec<Line<'static>> {
    let progress = &team.progress;
    let bar_room = width.saturating_sub(NAME + 17).min(60);
    let filled = (progress.done * bar_room)
        .checked_div(progress.total)
        .unwrap_or(0);
    let mut lines = vec![Line::from(vec![
        Span::styled(text::pad("done", NAME), DIM),
        Span::styled("█".repeat(filled), GOOD),
        Span::styled("░".repeat(bar_room - filled), DIM),
        Span::styled(format!(" {} of {}", progress.done, progress.total), BOLD),
    ])];
    let field = |name: &str, words: String, style: Style| {
        Line::from(vec![
            Span::styled(text::pad(name, NAME), DIM),
            Span::styled(text::cut(&words, width.saturating_sub(NAME)), style),
        ])
    };
    lines.push(field(
        "over time",
        sparkline(progress, model.now, bar_room),
        GOOD,
    ));
    let left = match (
        progress.left_ms,
        progress.total - progress.done.min(progress.total),
    ) {
        (_, 0) if progress.total > 0 => "nothing".into(),
        (Some(left), _) => format!(
            "about {} (measured on {})",
            text::elapsed(left),
            store::counted(progress.measured, "task")
        ),
        (None, _) => "not known yet: too few tasks are done".into(),
    };
    lines.push(field("left", left, PLAIN));
    let mut cost = text::money(progress.cost_usd);
    if let Some(end) = progress.cost_at_end_usd {
        cost.push_str(&format!(" so far, about {} at the end", text::money(end)));
    }
    if let Some(limit) = team.totals.cost_limit_usd {
        cost.push_str(&format!(", limit {}", text::money(limit)));
    }
    cost.push_str(&format!(", {} tokens", text::tokens(team.totals.tokens)));
    lines.push(field("cost", cost, PLAIN));
    let (failures, style) = match (progress.failures, progress.stuck.is_empty()) {
        (0, _) => ("none".to_owned(), PLAIN),
        (failed, true) => (store::counted(failed, "attempt"), WARN),
        (failed, false) => (
            format!(
                "{}; does not converge: {}",
                store::counted(failed, "attempt"),
                super::board::ids(&progress.stuck)
            ),
            BAD,
        ),
    };
    lines.push(field("failed", failures, style));
    if let Some(spent) = &team.totals.spent {
        lines.push(field(
            "limit",
            format!("used up: {}", text::line(spent)),
            BAD,
        ));
    }
    if let Some((until, why)) = &team.totals.paused {
        let left = text::elapsed(until - model.now);
        lines.push(field(
            "paused",
            format!("{left} more: {}", text::line(why)),
            WARN,
        ));
    }
    lines
}

/// Agents that repeat themselves, change nothing or say nothing.
fn marked(team: &TeamScene, width: usize) -> Vec<Line<'static>> {
    let alive = team.agents.iter().filter(|agent| agent.alive);
    let marked = alive.filter_map(|agent| {
        let (words, style) = agents::trouble(agent)?;
        let words = format!("{}: {words}", text::line(&agent.name));
        Some(Line::styled(text::cut(&words, width), style))
    });
    marked.take(4).collect()
}

/// The number of tasks done over time, as a curve from none to all of them.
fn sparkline(progress: &RunProgress, now: i64, room: usize) -> String {
    let (Some((first, _)), true) = (progress.series.first(), room > 0) else {
        return "nothing yet".into();
    };
    let columns = i64::try_from(room).unwrap_or(1);
    let span = (now - first).max(1);
    let most = progress.total.max(progress.done).max(1);
    (1..=columns)
        .map(|column| {
            let until = first + span * column / columns;
            let before = progress.series.iter().take_while(|(at, _)| *at <= until);
            let done = before.last().map_or(0, |(_, done)| *done);
            match done {
                0 => ' ',
                done => BARS[(done * BARS.len()).div_ceil(most).clamp(1, BARS.len()) - 1],
            }
        })
        .collect()
}

fn cells(task: &TaskScene, width: usize) -> Vec<Span<'static>> {
    let (glyph, style) = theme::task(task);
    let room = width.saturating_sub(2 + 5 + 1);
    let subject = room / 2;
    let mut cells = vec![
        Span::styled(format!("{glyph} "), style),
        Span::styled(text::pad(&format!("#{}", task.id), 5), DIM),
        Span::raw(text::pad(&text::line(&task.subject), subject)),
        Span::raw(" "),
    ];
    // Red for each attempt that failed, green for one that passed.
    let failed = task
        .attempts
        .iter()
        .filter(|attempt| attempt.counts)
        .count();
    cells.push(Span::styled("✘".repeat(failed.min(10)), BAD));
    if matches!(task.check_state, CheckState::Green(_)) {
        cells.push(Span::styled("✔", GOOD));
    }
    let used: usize = cells.iter().map(Span::width).sum();
    let (words, style) = match task.stuck {
        Some(times) => (format!("same failure {times} times"), BAD),
        None => task::check_words(task.check_state),
    };
    let words = text::cut(&format!(" {words}"), width.saturating_sub(used));
    cells.push(Span::styled(words, style));
    cells
}
