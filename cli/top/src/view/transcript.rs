//! The words and actions of the chosen agent, the newest at the bottom.

use observe::live::{AgentScene, Happened, TranscriptEntry};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::list::{put, row};
use super::theme::{self, BAD, BOLD, BUSY, DIM, GOOD, PLAIN, WARN};
use crate::model::lists;
use crate::model::transcript::FOLDED;
use crate::model::{Model, Pane};
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let Some((_, agent)) = lists::chosen_agent(model) else {
        let words = "No agent is chosen. 1 lists the agents, Enter looks inside.";
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
    let head = head(agent, model, usize::from(area.width));
    let heads = u16::try_from(head.len()).unwrap_or(1).min(area.height);
    put(frame, area, head);
    let inner = Rect {
        y: area.y + heads,
        height: area.height - heads,
        ..area
    };
    put(
        frame,
        inner,
        window(model, usize::from(inner.width), usize::from(inner.height)),
    );
}

fn head(agent: &AgentScene, model: &Model, width: usize) -> Vec<Line<'static>> {
    let (glyph, style) = theme::agent(agent);
    let until = agent.ended_ms.unwrap_or(model.now);
    let mut words = vec![agent.state.as_str().to_owned(), text::line(&agent.runtime)];
    words.extend(agent.model.as_deref().map(text::line));
    words.extend(agent.task.map(|id| format!("#{id}")));
    words.push(text::elapsed(until - agent.since_ms));
    if agent.tokens > 0 {
        words.push(format!("{} tokens", text::tokens(agent.tokens)));
    }
    words.extend(agent.worktree.as_deref().map(text::line));
    let rest = text::cut(
        &format!("  {}", words.join(" · ")),
        width.saturating_sub(text::width(&agent.name) + 2),
    );
    let mut lines = vec![Line::from(vec![
        Span::styled(format!("{glyph} "), style),
        Span::styled(text::line(&agent.name), theme::name(agent.color.as_deref())),
        Span::styled(rest, DIM),
    ])];
    if agent.fork {
        let order = agent.order.as_deref().unwrap_or_default();
        let words = format!(
            "fork of {}: {}",
            text::line(&agent.parent),
            text::line(order)
        );
        lines.push(Line::styled(text::cut(&words, width), WARN));
    }
    if let Some((words, style)) = super::agents::trouble(agent) {
        lines.push(Line::styled(text::cut(&words, width), style));
    }
    lines
}

/// The lines around the chosen entry; the last ones where the view follows the end.
fn window(model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let shown = &model.transcript;
    if let Some(trouble) = &shown.trouble {
        let words = format!("⚠ {}", text::line(trouble));
        return vec![Line::styled(text::cut(&words, width), BAD)];
    }
    if shown.entries.is_empty() {
        let words = match shown.read {
            true => "It has said and done nothing yet.",
            false => "reading …",
        };
        return vec![Line::styled(text::cut(words, width), DIM)];
    }
    let at = shown.position();
    let marks = model.pane == Pane::Transcript && shown.at.is_some();
    let lines_of = |n: usize| -> Vec<Line<'static>> {
        let Some(entry) = shown.entries.get(n) else {
            return Vec::new();
        };
        let unfolded = shown.unfolded.contains(&entry.number);
        let mut lines = entry_lines(entry, width, unfolded);
        if marks
            && n == at
            && let Some(first) = lines.first_mut()
        {
            *first = row(std::mem::take(&mut first.spans), width, true);
        }
        lines
    };
    // Upwards from the chosen entry until half is full, then downwards, then upwards again.
    let mut lines = lines_of(at);
    lines.truncate(height.max(1) * 4);
    let (mut above, mut below) = (at, at + 1);
    let half = if shown.at.is_some() {
        height / 2
    } else {
        height
    };
    while lines.len() < half && above > 0 {
        above -= 1;
        lines.splice(0..0, lines_of(above));
    }
    let mut start = lines.len().saturating_sub(half.max(1));
    if shown.at.is_some() && lines_of(at).len() > half {
        start = 0;
    }
    while lines.len() < start + height && below < shown.entries.len() {
        lines.extend(lines_of(below));
        below += 1;
    }
    while lines.len() < height && above > 0 {
        above -= 1;
        lines.splice(0..0, lines_of(above));
    }
    let start = start.min(lines.len().saturating_sub(height));
    if above == 0 && start == 0 && shown.earlier && lines.len() < height {
        let words = "… earlier: ccb agent logs shows all of it";
        lines.insert(0, Line::styled(text::cut(words, width), DIM));
    }
    lines.into_iter().skip(start).take(height).collect()
}

fn entry_lines(entry: &TranscriptEntry, width: usize, unfolded: bool) -> Vec<Line<'static>> {
    let many = |glyph: &'static str, glyph_style, words: &str, style| {
        block((glyph, glyph_style), words, style, width, unfolded)
    };
    let one = |glyph: &'static str, glyph_style, words: String, style| {
        let words = text::cut(&text::line(&words), width.saturating_sub(2));
        vec![Line::from(vec![
            Span::styled(format!("{glyph} "), glyph_style),
            Span::styled(words, style),
        ])]
    };
    match &entry.what {
        Happened::Told { text, fork: true } => {
            many("⑂", WARN, &format!("its own order: {text}"), PLAIN)
        }
        Happened::Told { text, .. } => many("▸", DIM, text, DIM),
        Happened::Said { text } => many("●", PLAIN, text.trim(), PLAIN),
        Happened::Printed { text, error } => {
            many("│", DIM, text.trim_end(), if *error { BAD } else { DIM })
        }
        Happened::Tool {
            name,
            input,
            result,
            ..
        } => tool(name, input, result.as_ref(), width, unfolded),
        Happened::Received { text } => many("✉", BUSY, text, BUSY),
        Happened::Asked { tool, input } => {
            one("?", WARN, format!("asks to use {tool} {input}"), WARN)
        }
        Happened::Answered { allow: true, .. } => one("✔", GOOD, "allowed".into(), GOOD),
        Happened::Answered { why, .. } => {
            let why = why.as_deref().map(|why| format!(": {why}"));
            one("✘", BAD, format!("denied{}", why.unwrap_or_default()), BAD)
        }
        Happened::Stalled { why } => one("⚠", WARN, format!("makes no progress: {why}"), WARN),
        Happened::TurnEnded { status, error } => {
            let error = error.as_deref().map(|error| format!(": {error}"));
            one(
                "◇",
                DIM,
                format!("turn over, {status}{}", error.unwrap_or_default()),
                DIM,
            )
        }
        Happened::Note { text } => many("·", DIM, text, DIM),
    }
}

/// A tool call on one line with the beginning of its result; unfolded, everything kept of it.
fn tool(
    name: &str,
    input: &str,
    result: Option<&observe::live::ToolResult>,
    width: usize,
    unfolded: bool,
) -> Vec<Line<'static>> {
    let (glyph, style) = match result {
        None => ("◐", BUSY),
        Some(result) if result.ok => ("✔", GOOD),
        Some(_) => ("✘", BAD),
    };
    let name = text::line(name);
    let call = format!(" {}", text::line(input));
    let answer = match result {
        None => " …".to_owned(),
        Some(result) => {
            let more = match result.lines {
                0 | 1 => String::new(),
                lines => format!(" (+{})", store::counted(lines - 1, "line")),
            };
            format!(" → {}{more}", text::line(&result.first))
        }
    };
    let room = width.saturating_sub(2 + text::width(&name));
    let call = match unfolded {
        true => call,
        false => text::cut(
            &call,
            (room * 3 / 5).max(room.saturating_sub(text::width(&answer))),
        ),
    };
    let answer = text::cut(&answer, room.saturating_sub(text::width(&call)));
    let answer_style = if result.is_some_and(|it| !it.ok) {
        BAD
    } else {
        DIM
    };
    if !unfolded {
        return vec![Line::from(vec![
            Span::styled(format!("{glyph} "), style),
            Span::styled(name, BOLD),
            Span::raw(call),
            Span::styled(answer, answer_style),
        ])];
    }
    let mut lines = block((glyph, style), &format!("{name}{call}"), BOLD, width, true);
    if let Some(result) = result {
        lines.extend(block(
            ("→", answer_style),
            &result.text,
            answer_style,
            width,
            true,
        ));
        let kept = result.text.lines().count();
        if result.lines > kept {
            let words = format!("  … {} of {} lines", kept, result.lines);
            lines.push(Line::styled(words, DIM));
        }
    }
    lines
}

/// A text behind a glyph: its first lines, or all of them.
fn block(
    (glyph, glyph_style): (&'static str, Style),
    words: &str,
    style: Style,
    width: usize,
    unfolded: bool,
) -> Vec<Line<'static>> {
    let room = width.saturating_sub(2);
    let mut lines = Vec::new();
    let mut more = 0;
    for line in text::lines(words) {
        // A folded line is not wrapped: it may be long.
        if !unfolded && lines.len() >= FOLDED {
            more += 1;
            continue;
        }
        for part in text::wrap(&line, room) {
            let head = if lines.is_empty() { glyph } else { " " };
            if unfolded || lines.len() < FOLDED {
                lines.push(Line::from(vec![
                    Span::styled(format!("{head} "), glyph_style),
                    Span::styled(part, style),
                ]));
            } else {
                more += 1;
            }
        }
    }
    if more > 0
        && let Some(last) = lines.last_mut()
    {
        let words = format!("  … {more} more lines, Enter unfolds");
        *last = Line::styled(text::cut(&words, width), DIM);
    }
    lines
}
