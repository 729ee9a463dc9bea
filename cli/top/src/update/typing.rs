//! The line that a person types: to the lead, a filter, or the text of an act.

use coordinator::session::Decision;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use observe::live::Act;
use term::line::decision;
use term::prompt::{Edit, Typed};

use super::command::{choose, interrupt};
use super::{act, look_at};
use crate::model::{Dialog, Effect, Model, Pane, Tone, Typing};

pub(super) fn paste(model: &mut Model, text: &str) {
    // Pasted text is never a row of commands.
    if model.typing.is_none() {
        model.typing = Some(Typing::Line);
    }
    edit(model).paste(text);
    filter_as_typed(model);
}

fn edit(model: &mut Model) -> &mut Edit {
    match model.typing {
        Some(Typing::Filter | Typing::Text { .. }) => &mut model.edit,
        Some(Typing::Line) | None => &mut model.line,
    }
}

pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let empty = edit(model).is_empty();
    match key.code {
        KeyCode::Char('c') if control => {
            model.typing = None;
            return interrupt(model);
        }
        KeyCode::Char('z') if control => return vec![Effect::Suspend],
        KeyCode::Char('l') if control => return vec![Effect::Redraw],
        KeyCode::Esc => {
            if model.typing == Some(Typing::Filter) {
                model.filter.clear();
            }
            model.typing = None;
            return Vec::new();
        }
        // The line is empty: back to the list.
        KeyCode::Down if empty => {
            model.typing = None;
            return Vec::new();
        }
        KeyCode::Tab | KeyCode::BackTab if empty => {
            model.typing = None;
            return Vec::new();
        }
        _ => {}
    }
    match edit(model).key(key) {
        Typed::Line(text) => finished(model, &text),
        Typed::End => {
            model.typing = None;
            Vec::new()
        }
        Typed::Changed => {
            filter_as_typed(model);
            Vec::new()
        }
        Typed::Nothing => Vec::new(),
    }
}

fn filter_as_typed(model: &mut Model) {
    if model.typing == Some(Typing::Filter) {
        model.filter = model.edit.text().trim().to_owned();
        choose(model, model.pane, 0);
    }
}

fn finished(model: &mut Model, text: &str) -> Vec<Effect> {
    let text = text.trim();
    match model.typing.take() {
        Some(Typing::Filter) => {
            model.filter = text.to_owned();
            choose(model, model.pane, 0);
            Vec::new()
        }
        Some(Typing::Text {
            team,
            act: wanted,
            ask,
        }) => {
            let filled = wanted.clone().with_text(text);
            if text.is_empty() && filled.asks_for().is_some() {
                model.say(Tone::Warn, format!("Nothing was sent: type {ask}, or Esc."));
                return Vec::new();
            }
            act(model, &team, filled)
        }
        Some(Typing::Line) if !text.is_empty() => line(model, text),
        Some(Typing::Line) | None => Vec::new(),
    }
}

/// A line in the language of sessions: text, `@NAME TEXT`, `/command`.
fn line(model: &mut Model, text: &str) -> Vec<Effect> {
    let team = model.team_name();
    if team.is_empty() {
        model.say(
            Tone::Warn,
            "There is no team to talk to. Start one: ccb \"make the tests pass\"",
        );
        return Vec::new();
    }
    let wanted = match decision(text) {
        None => {
            model.help = true;
            return Vec::new();
        }
        Some(Decision::Say(text)) => Act::Say { text },
        Some(Decision::AddTask(subject)) => Act::AddTask {
            subject,
            command: None,
        },
        Some(Decision::AddCommand(command)) => Act::AddTask {
            subject: command.clone(),
            command: Some(command),
        },
        Some(Decision::Write { to, text }) => Act::Message { to, text },
        Some(Decision::ShowTasks) => {
            look_at(model, Pane::Board);
            return Vec::new();
        }
        Some(Decision::ShowAgents) => {
            look_at(model, Pane::Agents);
            return Vec::new();
        }
        Some(Decision::Stop(agent)) => Act::Stop { agent, why: None },
        Some(Decision::Answer {
            request,
            approve: true,
            why,
        }) => Act::Approve {
            request,
            comment: why,
        },
        Some(Decision::Answer { request, why, .. }) => Act::Deny {
            request,
            why: why.unwrap_or_default(),
        },
        Some(Decision::Quit) => return quit(model),
    };
    if let Some(missing) = wanted.asks_for() {
        model.say(
            Tone::Warn,
            format!("Nothing was done: {missing} is missing."),
        );
        return Vec::new();
    }
    act(model, &team, wanted)
}

/// Ends the session without a question, because `/quit` is explicit.
fn quit(model: &mut Model) -> Vec<Effect> {
    if !model.directs() {
        return interrupt(model);
    }
    if matches!(model.dialog, Some(Dialog::Leave)) {
        model.dialog = None;
    }
    vec![Effect::EndSession]
}
