//! Colours and glyphs. Only the terminal's own sixteen colours, and no background, so that light
//! and dark terminals both work.

use observe::live::{AgentScene, LandState, Need, TaskScene, TaskState, TeamLife};
use ratatui::style::{Color, Modifier, Style};

use crate::model::Tone;
use crate::model::lists::is_working;

pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
pub(super) const WARN: Style = Style::new().fg(Color::Yellow);
pub(super) const BAD: Style = Style::new().fg(Color::Red);
pub(super) const BUSY: Style = Style::new().fg(Color::Cyan);
/// A key that the person can press.
pub(super) const KEY: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
/// The chosen row.
pub(super) const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

pub(super) fn tone(tone: Tone) -> Style {
    match tone {
        Tone::Plain => PLAIN,
        Tone::Good => GOOD,
        Tone::Warn => WARN,
        Tone::Bad => BAD,
        Tone::Dim => DIM,
    }
}

/// The style of an agent's name, by its definition's colour.
pub(super) fn name(color: Option<&str>) -> Style {
    let color = match color {
        Some("red") => Color::Red,
        Some("blue") => Color::Blue,
        Some("green") => Color::Green,
        Some("yellow" | "orange") => Color::Yellow,
        Some("purple" | "pink") => Color::Magenta,
        Some("cyan") => Color::Cyan,
        _ => return BOLD,
    };
    BOLD.fg(color)
}

pub(super) fn agent(agent: &AgentScene) -> (&'static str, Style) {
    match (agent.alive, agent.state.as_str()) {
        (true, _) if !agent.marks.is_empty() || agent.stalled.is_some() => ("⚠", WARN),
        (true, _) if is_working(agent) => ("◐", BUSY),
        (true, _) => ("○", PLAIN),
        (false, "completed") => ("✔", GOOD),
        (false, "killed" | "stopped" | "cancelled") => ("⊘", WARN),
        (false, _) => ("✘", BAD),
    }
}

pub(super) fn task(task: &TaskScene) -> (&'static str, Style) {
    match task.state {
        TaskState::Completed if task.unchecked.is_some() => ("⚠", WARN),
        TaskState::Completed => ("✔", GOOD),
        TaskState::InProgress | TaskState::Reported => ("◐", BUSY),
        TaskState::Parked => ("‖", BAD),
        TaskState::Ready | TaskState::Assigned => ("○", PLAIN),
        TaskState::Blocked => ("○", DIM),
        TaskState::Unreadable => ("⚠", BAD),
    }
}

/// The landing of a finished task's work, in a word.
pub(super) fn landing(landing: LandState) -> Option<(&'static str, Style)> {
    match landing {
        LandState::Waiting => Some(("not landed", WARN)),
        LandState::Landed => Some(("landed", DIM)),
        LandState::Undone => Some(("undone", WARN)),
        LandState::Nothing => Some(("no changes", DIM)),
        LandState::NotDone => None,
    }
}

pub(super) fn need(need: Need) -> (&'static str, Style) {
    match need {
        Need::Permission | Need::Plan | Need::Request => ("?", WARN),
        Need::Parked | Need::Check => ("‖", BAD),
        Need::Unlanded => ("⇥", WARN),
        Need::Budget | Need::Conflict | Need::Unreadable | Need::Silent | Need::Interrupted => {
            ("⚠", WARN)
        }
    }
}

pub(super) fn life(life: TeamLife) -> (&'static str, &'static str, Style) {
    match life {
        TeamLife::Running => ("◐", "running", BUSY),
        TeamLife::Ended => ("✔", "ended", PLAIN),
        TeamLife::Interrupted => ("⚠", "interrupted", WARN),
        TeamLife::Open => ("○", "no session", DIM),
        TeamLife::Vanished => ("✘", "gone", BAD),
    }
}
