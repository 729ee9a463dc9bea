//! Questions in the middle of the screen, and the answer of each key.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent};
use observe::live::Act;

use super::act;
use super::command::{interrupt, show_changes};
use crate::keys::Command;
use crate::model::{ChangesOf, Dialog, Effect, LandQuestion, Model, Tone, Typing};

/// Performs the act, or first asks for the text it needs.
pub(super) fn ask_or_act(model: &mut Model, team: &str, wanted: Act) -> Vec<Effect> {
    match wanted.asks_for() {
        Some(ask) => {
            ask_text(model, team, wanted, ask.to_owned());
            Vec::new()
        }
        None => act(model, team, wanted),
    }
}

pub(super) fn ask_text(model: &mut Model, team: &str, act: Act, ask: String) {
    model.edit = Default::default();
    let team = team.to_owned();
    model.typing = Some(Typing::Text { team, act, ask });
}

pub(super) fn ask_landing(model: &mut Model, question: LandQuestion) {
    model.typing = None;
    model.help = false;
    model.peeking = false;
    model.dialog = Some(Dialog::Land {
        question,
        chosen: BTreeSet::new(),
        cursor: 0,
    });
}

pub(super) fn landing_over(model: &mut Model) {
    if matches!(model.dialog, Some(Dialog::Land { .. })) {
        model.dialog = None;
        model.peeking = false;
    }
}

/// Handles a key that is no command: only a dialog may know it.
pub(super) fn other_key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if model.help {
        model.help = false;
        return Vec::new();
    }
    match (&model.dialog, key.code) {
        (Some(Dialog::Leave), KeyCode::Char('p')) if !model.peeking => {
            model.dialog = None;
            vec![Effect::GoPlain, Effect::Close]
        }
        (Some(Dialog::Leave), KeyCode::Char('s')) if !model.peeking => end_session(model),
        _ => Vec::new(),
    }
}

pub(super) fn command(model: &mut Model, command: Command, key: KeyEvent) -> Vec<Effect> {
    match command {
        Command::Interrupt => return interrupt(model),
        Command::Suspend => return vec![Effect::Suspend],
        Command::Redraw => return vec![Effect::Redraw],
        _ => {}
    }
    match model.dialog.take() {
        Some(Dialog::Confirm {
            question,
            more,
            team,
            act: wanted,
        }) => match command {
            Command::Approve | Command::Open => act(model, &team, wanted),
            Command::Deny | Command::Back | Command::Quit => {
                model.say(Tone::Dim, "nothing was done");
                Vec::new()
            }
            _ => {
                model.dialog = Some(Dialog::Confirm {
                    question,
                    more,
                    team,
                    act: wanted,
                });
                Vec::new()
            }
        },
        Some(Dialog::Leave) => match command {
            Command::Approve => end_session(model),
            Command::Deny | Command::Back | Command::Open | Command::Quit => Vec::new(),
            _ => {
                model.dialog = Some(Dialog::Leave);
                Vec::new()
            }
        },
        Some(Dialog::Land {
            question,
            chosen,
            cursor,
        }) => landing(model, (question, chosen, cursor), command, key),
        None => Vec::new(),
    }
}

fn end_session(model: &mut Model) -> Vec<Effect> {
    model.dialog = None;
    model.say(
        Tone::Warn,
        "Stopping: agents finish their step. Ctrl-C ends them at once.",
    );
    vec![Effect::EndSession]
}

type Landing = (LandQuestion, BTreeSet<taskboard::TaskId>, usize);

fn landing(model: &mut Model, dialog: Landing, command: Command, key: KeyEvent) -> Vec<Effect> {
    let (question, mut chosen, mut cursor) = dialog;
    let last = question.offers.len().saturating_sub(1);
    // Unchecked work must be chosen explicitly, unless there is nothing else.
    let checked = question
        .offers
        .iter()
        .filter(|offer| offer.unchecked.is_none());
    let several = checked.clone().next().is_some();
    let offered = question.offers.iter();
    let all = || {
        offered
            .clone()
            .filter(|offer| !several || offer.unchecked.is_none())
            .map(|offer| offer.task)
    };
    let at = question.offers.get(cursor).map(|offer| offer.task);
    let answer = match (command, key.code) {
        (_, KeyCode::Char(' ')) => {
            if let Some(task) = at
                && !chosen.remove(&task)
            {
                chosen.insert(task);
            }
            None
        }
        (Command::Up, _) => {
            cursor = cursor.saturating_sub(1);
            None
        }
        (Command::Down, _) => {
            cursor = (cursor + 1).min(last);
            None
        }
        (Command::Approve, _) => Some(all().collect()),
        (Command::Open, _) => Some(chosen.iter().copied().collect()),
        (Command::Deny | Command::Back, _) => Some(Vec::new()),
        _ => None,
    };
    if let Some(answer) = answer {
        return vec![Effect::AnswerLanding(answer)];
    }
    let team = question.team.clone();
    model.dialog = Some(Dialog::Land {
        question,
        chosen,
        cursor,
    });
    match (command, at) {
        (Command::Diff, Some(task)) => {
            model.peeking = true;
            let what = task.to_string();
            let name = format!("#{task}");
            show_changes(model, ChangesOf { team, what, name })
        }
        _ => Vec::new(),
    }
}
