//! The frame of every pane: team and progress at the top, the possible input at the bottom.

use observe::live::{LeadScene, TeamLife, TeamScene};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::attention;
use super::list::put;
use super::theme::{self, BAD, BOLD, CHOSEN, DIM, KEY, PLAIN, WARN};
use crate::model::lists;
use crate::model::{Dialog, Model, Pane, Typing};
use crate::text;

/// The room for `  ? help  q leave`.
const LAST_KEYS: usize = 19;

/// A text with its rank: the highest rank is left out first, and rank 0 never.
type Part = (u8, Span<'static>);

/// The parts that fit: the least important are left out first.
fn fit(mut parts: Vec<Part>, width: usize) -> Line<'static> {
    let total = |parts: &[Part]| -> usize {
        let all: usize = parts.iter().map(|(_, span)| span.width() + 2).sum();
        all.saturating_sub(2)
    };
    while total(&parts) > width {
        let least = parts.iter().map(|(rank, _)| *rank).max().unwrap_or(0);
        if least == 0 {
            break;
        }
        parts.retain(|(rank, _)| *rank != least);
    }
    let mut line = Line::default();
    for (n, (_, span)) in parts.into_iter().enumerate() {
        if n > 0 {
            line.push_span("  ");
        }
        line.push_span(span);
    }
    line
}

pub(super) fn header(model: &Model) -> Line<'static> {
    let width = usize::from(model.columns);
    let needs = model.scene.attention.len();
    let attention = match needs {
        0 => None,
        1 => Some("! 1 needs you".to_owned()),
        many => Some(format!("! {many} need you")),
    };
    let room = width.saturating_sub(attention.as_ref().map_or(0, |text| text.len() + 2));
    let mut line = match model.team() {
        Some(team) => fit(team_parts(team, model), room),
        None if !model.looked => Line::styled("ccb  looking …", DIM),
        None => Line::styled(text::cut("ccb  nothing runs in this repository", room), DIM),
    };
    if let Some(attention) = attention {
        let gap = width.saturating_sub(line.width() + attention.len());
        line.push_span(" ".repeat(gap));
        line.push_span(Span::styled(attention, WARN.patch(BOLD)));
    }
    line
}

fn team_parts(team: &TeamScene, model: &Model) -> Vec<Part> {
    let (glyph, word, style) = theme::life(team.life);
    let mut parts = vec![
        (
            0,
            Span::styled(text::cut(&text::line(&team.name), 24), BOLD),
        ),
        (1, Span::styled(format!("{glyph} {word}"), style)),
    ];
    let working = team
        .agents
        .iter()
        .filter(|it| lists::is_working(it))
        .count();
    let mut add =
        |rank, words: String, style: Style| parts.push((rank, Span::styled(words, style)));
    let counts = &team.counts;
    if counts.total() > 0 {
        add(
            1,
            format!("{}/{} done", counts.completed, counts.total()),
            PLAIN,
        );
    }
    if working > 0 {
        add(2, format!("{working} working"), PLAIN);
    }
    let since = team.since_ms.filter(|_| team.life == TeamLife::Running);
    if let Some(since) = since {
        add(3, text::elapsed(model.now - since), PLAIN);
    }
    if let Some(left) = team.progress.left_ms.filter(|_| working > 0) {
        add(4, format!("~{} left", text::elapsed(left)), PLAIN);
    }
    let (cost, limit) = (team.totals.cost_usd, team.totals.cost_limit_usd);
    match (cost > 0.0, limit) {
        (_, Some(limit)) => add(
            3,
            format!("{} of {}", text::money(cost), text::money(limit)),
            PLAIN,
        ),
        (true, None) => add(3, text::money(cost), PLAIN),
        (false, None) => {}
    }
    if team.totals.tokens > 0 {
        add(
            5,
            format!("{} tokens", text::tokens(team.totals.tokens)),
            DIM,
        );
    }
    let newer = team.director.as_ref().and_then(|director| director.newer);
    if newer.is_some() {
        add(2, "directed by a newer ccb".into(), WARN);
    }
    if model.scene.teams.len() > 1 {
        add(4, format!("] {} teams", model.scene.teams.len()), DIM);
    }
    parts
}

pub(super) fn tabs(model: &Model) -> Line<'static> {
    let width = usize::from(model.columns);
    let counted = |pane: Pane| match (pane, model.team()) {
        (Pane::Agents, Some(team)) => team.agents.iter().filter(|agent| agent.alive).count(),
        (Pane::Board, Some(team)) => team.tasks.len(),
        (Pane::Mail, Some(team)) => team.mail.len(),
        _ => 0,
    };
    let label = |number: usize, pane: Pane, short: bool| {
        let count = match counted(pane) {
            0 => String::new(),
            count => format!(" ({count})"),
        };
        match short {
            true => format!("{number} {}", pane.title()),
            false => format!("{number} {}{count}", pane.title()),
        }
    };
    let labels = |short| -> Vec<(Pane, String)> {
        let numbered = Pane::NUMBERED.iter().zip(1..);
        let mut all: Vec<(Pane, String)> = numbered
            .map(|(pane, number)| (*pane, label(number, *pane, short)))
            .collect();
        all.push((Pane::Needs, "! Needs you".into()));
        all
    };
    let wide = |labels: &[(Pane, String)]| {
        let all: usize = labels.iter().map(|(_, label)| text::width(label) + 1).sum();
        all
    };
    let mut shown = labels(false);
    if wide(&shown) > width {
        shown = labels(true);
    }
    if wide(&shown) > width {
        for (pane, label) in &mut shown {
            if *pane != model.pane {
                *label = label.chars().take(4).collect();
            }
        }
    }
    let mut line = Line::default();
    for (pane, label) in shown {
        let style = if pane == model.pane {
            CHOSEN.patch(BOLD)
        } else {
            DIM
        };
        line.push_span(" ");
        line.push_span(Span::styled(label, style));
    }
    line
}

/// The line in which a person types.
pub(super) fn line(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let (label, edit) = match &model.typing {
        Some(Typing::Line) => (String::new(), &model.line),
        Some(Typing::Filter) => ("filter".to_owned(), &model.edit),
        Some(Typing::Text { ask, .. }) => (text::line(ask), &model.edit),
        None => {
            let hint = match model.line.is_empty() {
                true => typing_hint(model),
                false => format!("› {}", text::line(&model.line.text())),
            };
            let shown = text::cut(&hint, usize::from(area.width));
            put(frame, area, [Line::styled(shown, DIM)]);
            return;
        }
    };
    let room = usize::from(area.width);
    let label = match label.is_empty() {
        true => String::new(),
        false => format!(
            "{} ",
            text::cut(&label, room.saturating_sub(16).max(room / 2))
        ),
    };
    let before = text::width(&label) + 2;
    let (typed, cursor) = edit.view(room.saturating_sub(before));
    let line = Line::from(vec![
        Span::styled(label, WARN),
        Span::styled("› ", KEY),
        Span::raw(text::line(&typed)),
    ]);
    put(frame, area, [line]);
    let x = u16::try_from(before + cursor).unwrap_or(u16::MAX);
    let x = area.x + x.min(area.width.saturating_sub(1));
    frame.set_cursor_position(Position { x, y: area.y });
}

fn typing_hint(model: &Model) -> String {
    if !model.filter.is_empty() {
        return format!("filter: {}   (Esc clears it)", text::line(&model.filter));
    }
    match model.team().map(|team| &team.lead) {
        Some(LeadScene::Agent(_)) => "› i: type a message to the lead".into(),
        Some(LeadScene::Person) => "› i: type a task for the team, or /run CMD".into(),
        _ => "› i: type a line, /help lists the commands".into(),
    }
}

/// The possible keys, or the outcome of the last one.
pub(super) fn hints(model: &Model) -> Line<'static> {
    let width = usize::from(model.columns);
    if let Some((tone, words)) = &model.said {
        let words = text::cut(&text::line(words), width);
        return Line::styled(words, theme::tone(*tone));
    }
    let mut keys = keys_now(model);
    let mut line = Line::default();
    if let Some(words) = trouble(model).filter(|_| model.typing.is_none()) {
        // The trouble is worth more than the keys, which help shows as well.
        let room = width.saturating_sub(LAST_KEYS);
        let words = text::cut(&words, room);
        line.push_span(Span::styled(format!("{words}  "), BAD));
        keys.clear();
    }
    if model.typing.is_none() {
        keys.push(("?", "help"));
        keys.push(("q", "leave"));
    }
    for (key, does) in keys {
        let part = text::width(key) + does.len() + 3;
        if line.width() + part > width {
            break;
        }
        line.push_span(Span::styled(key, KEY));
        line.push_span(format!(" {does}  "));
    }
    line
}

/// The error of a read, or the end of the team; `None` if there is nothing to report.
pub(super) fn trouble(model: &Model) -> Option<String> {
    let of_team = model.team().and_then(|team| team.troubles.first());
    let trouble = model.scene.troubles.first().or(of_team)?;
    Some(format!("⚠ {}", text::line(trouble)))
}

/// The keys that answer the chosen entry.
fn answers(model: &Model) -> Vec<(&'static str, &'static str)> {
    let chosen = lists::chosen_need(model);
    chosen.map(attention::keys).unwrap_or_default()
}

fn stop_or_dismiss(model: &Model) -> &'static str {
    match lists::chosen_agent(model) {
        Some((_, agent)) if !agent.alive => "dismiss",
        _ => "stop",
    }
}

fn keys_now(model: &Model) -> Vec<(&'static str, &'static str)> {
    match &model.typing {
        Some(Typing::Filter) => return vec![("Enter", "keep"), ("Esc", "clear")],
        Some(Typing::Line) => {
            return vec![
                ("Enter", "send"),
                ("↑", "earlier"),
                ("Esc", "back"),
                ("@NAME", "to an agent"),
            ];
        }
        Some(Typing::Text { .. }) => return vec![("Enter", "send"), ("Esc", "do not")],
        None => {}
    }
    if let Some(Dialog::Land { .. }) = &model.dialog
        && model.peeking
    {
        return vec![("↑↓", "scroll"), ("Esc", "back to the question")];
    }
    if model.expanded && model.pane != Pane::Needs {
        return vec![("↑↓", "scroll"), ("Esc", "back"), ("d", "diff")];
    }
    if model.expanded {
        return [vec![("↑↓", "scroll"), ("Esc", "back")], answers(model)].concat();
    }
    match model.pane {
        Pane::Agents => vec![
            ("↑↓", "choose"),
            ("Enter", "look inside"),
            ("m", "message"),
            ("d", "diff"),
            ("x", stop_or_dismiss(model)),
        ],
        Pane::Board | Pane::Graph | Pane::Progress => {
            vec![
                ("↑↓", "choose"),
                ("Enter", "details"),
                ("d", "diff"),
                ("l", "land"),
                ("r", "reject"),
                ("t", "retry"),
            ]
        }
        Pane::Transcript => vec![
            ("↑↓", "choose"),
            ("Enter", "unfold"),
            ("Esc", "back"),
            ("m", "message"),
            ("d", "diff"),
            ("x", stop_or_dismiss(model)),
        ],
        Pane::Changes => vec![
            ("↑↓", "scroll"),
            ("Esc", "back"),
            ("l", "land"),
            ("r", "reject"),
        ],
        Pane::Mail => vec![
            ("↑↓", "choose"),
            ("Enter", "read"),
            ("m", "answer"),
            ("/", "filter"),
        ],
        Pane::Needs => {
            let others = vec![("Enter", "all of it"), ("Esc", "back")];
            [vec![("↑↓", "choose")], answers(model), others].concat()
        }
    }
}
