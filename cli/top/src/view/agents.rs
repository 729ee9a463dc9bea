//! The agents: what each does, for how long, what it used and what it said last.

use observe::live::{AgentScene, TeamLife};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::list::{beside, first_row, put, row, title};
use super::theme::{self, BAD, BOLD, DIM, PLAIN, WARN};
use super::{WIDE, board, transcript};
use crate::model::lists;
use crate::model::{Model, Pane};
use crate::text;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let (agents, folded) = lists::agents(model);
    let gone = model
        .team()
        .is_none_or(|team| team.life == TeamLife::Vanished);
    if agents.is_empty() && (gone || folded == 0) {
        put(frame, area, nobody(model, area.width));
        log(frame, model, rest(area, 5));
        return;
    }
    let (left, right) = match model.columns >= WIDE {
        true => super::halves(model, area, 0),
        false => (area, Rect::ZERO),
    };
    let width = usize::from(left.width);
    let fold = u16::from(folded > 0);
    let room = usize::from(left.height.saturating_sub(fold));
    // Each agent gets a second line if there is room for it and for the events.
    let two = agents.len() * 2 + 4 <= room;
    let per = if two { 2 } else { 1 };
    let most = match agents.len() * per + 4 > room {
        true => room,
        false => agents.len() * per,
    };
    let columns = Columns::of(&agents, width);
    let chosen = model.chosen(Pane::Agents);
    let first = first_row(chosen, agents.len(), most / per);
    let mut lines = Vec::new();
    for (n, agent) in agents.iter().enumerate().skip(first).take(most / per) {
        lines.push(row(columns.cells(agent, model), width, n == chosen));
        if two {
            lines.push(second(agent, width));
        }
    }
    if agents.is_empty() && model.filter.is_empty() {
        lines.extend(nobody(model, left.width));
    }
    if folded > 0 {
        let words = format!("  {folded} finished, f shows them");
        lines.push(Line::styled(text::cut(&words, width), DIM));
    }
    let used = u16::try_from(lines.len()).unwrap_or(left.height);
    put(frame, left, lines);
    let below = match right.width == 0 && !agents.is_empty() {
        true => rest(left, used),
        false => board_in_short(frame, model, rest(left, used)),
    };
    log(frame, model, below);
    if right.width > 0 {
        let right = beside(frame, right);
        transcript::draw(frame, model, right);
    }
}

/// The board below the agents if there is room for both; returns the remaining area.
fn board_in_short(frame: &mut Frame<'_>, model: &Model, area: Rect) -> Rect {
    let tasks = lists::tasks(model);
    if area.height < 12 || tasks.is_empty() || !model.filter.is_empty() {
        return area;
    }
    let width = usize::from(area.width);
    let most = usize::from(area.height / 2);
    let mut lines = vec![title("Board", area.width)];
    lines.extend(
        tasks
            .iter()
            .take(most)
            .map(|task| Line::from(board::cells(task, width))),
    );
    if tasks.len() > most {
        let words = format!("  {} more: 2 shows the board", tasks.len() - most);
        lines.push(Line::styled(words, DIM));
    }
    let used = u16::try_from(lines.len()).unwrap_or(area.height);
    put(frame, area, lines);
    rest(area, used)
}

fn rest(area: Rect, used: u16) -> Rect {
    let used = used.min(area.height);
    Rect {
        y: area.y + used,
        height: area.height - used,
        ..area
    }
}

/// The width of each column.
struct Columns {
    name: usize,
    kind: usize,
    doing: usize,
    cost: bool,
    tokens: bool,
}

const ELAPSED: usize = 7;
const NUMBER: usize = 7;

impl Columns {
    fn of(agents: &[&AgentScene], width: usize) -> Self {
        let widest = |of: fn(&AgentScene) -> usize, least: usize, most: usize| {
            let widest = agents.iter().map(|agent| of(agent)).max();
            widest.unwrap_or(0).clamp(least, most)
        };
        let name = widest(|agent| text::width(&agent.name) + indent(agent), 6, 18);
        let kind = match width {
            0..70 => 0,
            70..100 => widest(|agent| text::width(&agent.agent_type), 4, 10) + 1,
            _ => widest(|agent| text::width(&agent.agent_type), 4, 18) + 1,
        };
        let cost = agents.iter().any(|agent| agent.cost_usd > 0.0) && width >= 60;
        let tokens = agents.iter().any(|agent| agent.tokens > 0) && width >= 50;
        let numbers = ELAPSED + 1 + NUMBER * (usize::from(cost) + usize::from(tokens));
        Self {
            name,
            kind,
            doing: width.saturating_sub(2 + name + 1 + kind + numbers + 1),
            cost,
            tokens,
        }
    }

    fn cells(&self, agent: &AgentScene, model: &Model) -> Vec<Span<'static>> {
        let (glyph, style) = theme::agent(agent);
        let name = format!("{}{}", " ".repeat(indent(agent)), text::line(&agent.name));
        let until = agent.ended_ms.unwrap_or(model.now);
        let doing = match (&agent.outcome, agent.alive) {
            (Some(outcome), false) => format!("{}{}", task(agent), text::line(outcome)),
            _ => format!("{}{}", task(agent), text::line(&agent.doing)),
        };
        let doing_style = if agent.alive { PLAIN } else { DIM };
        let mut cells = vec![
            Span::styled(format!("{glyph} "), style),
            Span::styled(
                text::pad(&name, self.name),
                theme::name(agent.color.as_deref()),
            ),
            Span::raw(" "),
        ];
        if self.kind > 0 {
            let kind = text::pad(&text::line(&agent.agent_type), self.kind - 1);
            cells.push(Span::styled(format!("{kind} "), DIM));
        }
        cells.push(Span::styled(text::pad(&doing, self.doing), doing_style));
        let elapsed = text::elapsed(until - agent.since_ms);
        cells.push(Span::raw(format!(" {}", text::pad_left(&elapsed, ELAPSED))));
        if self.tokens {
            let used = text::pad_left(&text::tokens(agent.tokens), NUMBER);
            cells.push(Span::styled(used, DIM));
        }
        if self.cost {
            let cost = match agent.cost_usd > 0.0 {
                true => text::money(agent.cost_usd),
                false => String::new(),
            };
            cells.push(Span::styled(text::pad_left(&cost, NUMBER), DIM));
        }
        cells
    }
}

/// A fork is indented below its parent.
fn indent(agent: &AgentScene) -> usize {
    if agent.fork { 2 } else { 0 }
}

fn task(agent: &AgentScene) -> String {
    match agent.task {
        Some(id) => format!("#{id} "),
        None => String::new(),
    }
}

/// The agent's trouble, else what it said or did last.
fn second(agent: &AgentScene, width: usize) -> Line<'static> {
    let (words, style) = trouble(agent).unwrap_or_else(|| {
        let last = agent.last.as_deref().unwrap_or_default();
        (format!("  {}", text::line(last)), DIM)
    });
    Line::styled(
        format!("  {}", text::cut(&words, width.saturating_sub(2))),
        style,
    )
}

/// The reason why a person should look at an agent, in words.
pub(crate) fn trouble(agent: &AgentScene) -> Option<(String, ratatui::style::Style)> {
    if !agent.alive {
        let bad = agent.state.as_str() != "completed";
        let why = agent.outcome.as_deref().filter(|_| bad)?;
        return Some((format!("✘ {}", text::line(why)), BAD));
    }
    if let Some(mark) = agent.marks.first() {
        return Some((format!("⚠ {}", text::line(&mark.why)), WARN));
    }
    if let Some(why) = &agent.stalled {
        return Some((format!("⚠ makes no progress: {}", text::line(why)), WARN));
    }
    let silent = agent.silent_ms?;
    let words = format!("⚠ has shown nothing for {}", text::elapsed(silent));
    Some((words, WARN))
}

fn nobody(model: &Model, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let line = |words: String, style| Line::styled(text::cut(&words, width), style);
    let Some(team) = model.team() else {
        return match model.looked {
            false => vec![line("looking …".into(), DIM)],
            true => vec![
                line("Nothing runs here, and nothing is left to do.".into(), BOLD),
                line(
                    "Start a session:  ccb \"make the tests pass\"".into(),
                    PLAIN,
                ),
                line("Add a task:       ccb task create SUBJECT".into(), PLAIN),
                line(
                    "This view shows it as soon as there is something.".into(),
                    DIM,
                ),
            ],
        };
    };
    let name = text::line(&team.name);
    match (&team.life, team.tasks.len()) {
        (TeamLife::Vanished, _) => vec![
            line(format!("Team {name} is gone: it was deleted."), BAD),
            line("The board is as it was last seen.".into(), DIM),
        ],
        (TeamLife::Running, 0) => vec![
            line("No agent works yet, and the board is empty.".into(), BOLD),
            line("Press i and type a task.".into(), PLAIN),
        ],
        (TeamLife::Running, _) => {
            vec![line("No agent works at the moment.".into(), BOLD)]
        }
        (_, 0) => vec![
            line(format!("Team {name} has no tasks and no agents."), BOLD),
            line(
                format!("Add a task:  ccb --team {name} task create SUBJECT"),
                PLAIN,
            ),
        ],
        _ => vec![
            line(format!("No agent of team {name} works."), BOLD),
            line(format!("Resume:  ccb --team {name}"), PLAIN),
        ],
    }
}

/// The events, the newest at the bottom.
fn log(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    if area.height < 3 || model.happened.is_empty() {
        return;
    }
    let room = usize::from(area.height - 1);
    let width = usize::from(area.width);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for one in model.happened.iter().rev() {
        let time = clock(one.at_ms);
        let mut part: Vec<Line<'static>> = Vec::new();
        for (n, line) in text::lines(&one.text).iter().enumerate() {
            let head = if n == 0 { time.as_str() } else { "" };
            part.push(Line::from(vec![
                Span::styled(text::pad(head, 9), DIM),
                Span::styled(
                    text::cut(line, width.saturating_sub(9)),
                    theme::tone(one.tone),
                ),
            ]));
        }
        part.reverse();
        lines.extend(part);
        if lines.len() >= room {
            break;
        }
    }
    lines.truncate(room);
    lines.reverse();
    put(frame, area, [title("What happened", area.width)]);
    put(frame, rest(area, 1), lines);
}

/// Time of day `12:08:53`, UTC, as sessions print it.
fn clock(ms: i64) -> String {
    let text = store::clock::rfc3339(ms);
    text.get(11..19).unwrap_or_default().to_owned()
}
