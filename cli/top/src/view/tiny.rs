//! A screen with room for one thing: progress, the need for a person, and the chosen list.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::list::{first_row, put, row};
use super::theme::{self, BAD, BOLD, DIM, WARN};
use super::{changes, frame as around, transcript};
use crate::model::lists;
use crate::model::{Model, Pane};
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let (columns, rows) = (model.columns, model.rows);
    if columns == 0 || rows == 0 {
        return;
    }
    put(frame, Rect::new(0, 0, columns, 1), [header(model)]);
    let last = Rect::new(0, rows - 1, columns, 1);
    let body = Rect::new(0, 1, columns, rows.saturating_sub(2));
    if rows > 2 {
        draw_body(frame, model, body);
    }
    if rows > 1 {
        match model.typing.is_some() {
            true => around::line(frame, model, last),
            false => put(frame, last, [foot(model)]),
        }
    }
}

fn header(model: &Model) -> Line<'static> {
    let width = usize::from(model.columns);
    let needs = match model.scene.attention.len() {
        0 => String::new(),
        count => format!(" !{count}"),
    };
    let Some(team) = model.team() else {
        let words = if model.looked {
            "nothing runs"
        } else {
            "looking …"
        };
        return Line::styled(text::cut(words, width), BOLD);
    };
    let (glyph, _, style) = theme::life(team.life);
    let working = team
        .agents
        .iter()
        .filter(|agent| lists::is_working(agent))
        .count();
    let numbers = format!(
        " {}/{} {glyph}{working}",
        team.counts.completed,
        team.counts.total()
    );
    let room = width.saturating_sub(text::width(&numbers) + needs.len());
    Line::from(vec![
        Span::styled(text::cut(&text::line(&team.name), room), BOLD),
        Span::styled(
            text::cut(&numbers, width.saturating_sub(needs.len())),
            style,
        ),
        Span::styled(needs, WARN),
    ])
}

fn foot(model: &Model) -> Line<'static> {
    let width = usize::from(model.columns);
    match &model.said {
        Some((tone, words)) => {
            Line::styled(text::cut(&text::line(words), width), theme::tone(*tone))
        }
        None => match around::trouble(model) {
            Some(words) => Line::styled(text::cut(&words, width), BAD),
            None => Line::styled(
                text::cut(&format!("{} ?help q", model.pane.title()), width),
                DIM,
            ),
        },
    }
}

fn draw_body(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let width = usize::from(area.width);
    let room = usize::from(area.height);
    match model.pane {
        Pane::Transcript => return transcript::draw(frame, model, area),
        Pane::Changes => return changes::draw(frame, model, area),
        pane if model.expanded => {
            let lines = super::details(model, pane, width);
            put(frame, area, lines.into_iter().skip(model.scroll(pane)));
            return;
        }
        _ => {}
    }
    let words = words(model);
    if words.is_empty() {
        let nothing = match model.pane {
            Pane::Agents => "no agent works",
            Pane::Needs => "nothing needs you",
            Pane::Mail => "no mail",
            _ => "no tasks",
        };
        put(frame, area, [Line::styled(text::cut(nothing, width), DIM)]);
        return;
    }
    let chosen = model.chosen(model.pane);
    let first = first_row(chosen, words.len(), room);
    let lines = words.into_iter().enumerate().skip(first).take(room);
    let lines: Vec<Line<'static>> = lines
        .map(|(n, words)| {
            row(
                vec![Span::raw(text::cut(&words, width))],
                width,
                n == chosen,
            )
        })
        .collect();
    put(frame, area, lines);
}

/// The rows of the chosen list, each in a few words.
fn words(model: &Model) -> Vec<String> {
    let task = |task: &observe::live::TaskScene| {
        let (glyph, _) = theme::task(task);
        format!("{glyph}#{} {}", task.id, text::line(&task.subject))
    };
    match model.pane {
        Pane::Agents => {
            let (agents, _) = lists::agents(model);
            let word = |agent: &&observe::live::AgentScene| {
                let (glyph, _) = theme::agent(agent);
                format!(
                    "{glyph}{} {}",
                    text::line(&agent.name),
                    text::line(&agent.doing)
                )
            };
            agents.iter().map(word).collect()
        }
        Pane::Graph => lists::graph(model)
            .iter()
            .map(|row| task(row.task))
            .collect(),
        Pane::Board | Pane::Progress => lists::tasks(model).into_iter().map(task).collect(),
        Pane::Mail => {
            let mail = lists::mail(model);
            let word = |mail: &&observe::live::MailScene| {
                format!("{} {}", text::line(&mail.from), text::line(&mail.summary))
            };
            mail.iter().map(word).collect()
        }
        Pane::Needs => lists::needs(model)
            .iter()
            .map(|one| text::line(&one.what))
            .collect(),
        Pane::Transcript | Pane::Changes => Vec::new(),
    }
}
