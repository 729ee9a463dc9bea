//! Applies each message to the model, and returns the effects. Nothing here waits, reads a file or
//! looks at a clock.

mod command;
mod dialogs;
mod typing;

use std::sync::Arc;

use observe::live::Act;
use observe::live::Scene;

use self::command::{choose, keep_in_view};
use crate::model::lists;
use crate::model::{AgentKey, Effect, Message, Model, Pane, Tone};
use crate::news::news;

/// Interval in ms between two readings of the shown changes while an agent works.
const CHANGES_EVERY_MS: i64 = 3000;

/// Changes the model, and returns the effects.
pub(crate) fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    let mut effects = match message {
        Message::Key(key) => {
            model.said = None;
            key_pressed(model, key)
        }
        Message::Paste(text) => {
            typing::paste(model, &text);
            Vec::new()
        }
        Message::Resized | Message::Tick => Vec::new(),
        Message::Continued => vec![Effect::Redraw],
        Message::Suspend => vec![Effect::Suspend],
        Message::Hangup => vec![Effect::Close],
        Message::Directs(directs) => {
            model.follows = !directs;
            Vec::new()
        }
        Message::Scene(scene) => {
            new_scene(model, scene);
            Vec::new()
        }
        Message::Transcript { agent, news } => {
            model.transcript.take(&agent, news);
            Vec::new()
        }
        Message::Changes { of, result } => {
            // The person may look at other changes by now.
            if let Some((shown, changes)) = &mut model.changes
                && *shown == of
            {
                *changes = Some(result);
            }
            Vec::new()
        }
        Message::Done(result) => {
            model.busy = model.busy.saturating_sub(1);
            done(model, result);
            Vec::new()
        }
        Message::Logged(one) => {
            model.log(one);
            Vec::new()
        }
        Message::AskLanding(question) => {
            dialogs::ask_landing(model, question);
            Vec::new()
        }
        Message::LandingOver => {
            dialogs::landing_over(model);
            Vec::new()
        }
        Message::SessionOver => session_over(model),
    };
    effects.extend(follow(model));
    effects.extend(read_changes_again(model));
    effects
}

fn key_pressed(model: &mut Model, key: crossterm::event::KeyEvent) -> Vec<Effect> {
    if model.typing.is_some() {
        return typing::key(model, key);
    }
    let Some(command) = crate::keys::command(key) else {
        return dialogs::other_key(model, key);
    };
    if model.help {
        model.help = false;
        return match command {
            crate::keys::Command::Interrupt => command::interrupt(model),
            crate::keys::Command::Suspend => vec![Effect::Suspend],
            _ => Vec::new(),
        };
    }
    if model.dialog.is_some() && !model.peeking {
        return dialogs::command(model, command, key);
    }
    command::run(model, command)
}

fn new_scene(model: &mut Model, scene: Arc<Scene>) {
    // A session reports its events itself.
    if model.looked && !model.is_session() {
        for one in news(&model.scene, &scene) {
            model.log(one);
        }
    }
    let before = lists::chosen_need(model).map(lists::need_key);
    model.scene = scene;
    model.looked = true;
    keep_in_view(model);
    // A key that a person is about to press must not answer an entry that has just appeared.
    let now = lists::chosen_need(model).map(lists::need_key);
    let moved = before.is_some() && before != now && before != model.answered;
    if model.pane == Pane::Needs && moved {
        model.moved_at = model.now;
    }
}

fn done(model: &mut Model, result: Result<String, String>) {
    let (tone, text) = match result {
        Ok(text) => (Tone::Good, text),
        Err(text) => (Tone::Bad, text),
    };
    model.log(crate::model::LogLine {
        at_ms: model.now,
        text: text.clone(),
        tone,
    });
    model.say(tone, text);
}

/// Closes the view, unless the person looks at something or types.
fn session_over(model: &mut Model) -> Vec<Effect> {
    model.over = true;
    model.dialog = None;
    model.peeking = false;
    let looks = matches!(model.pane, Pane::Transcript | Pane::Changes) || model.expanded;
    if !looks && model.typing.is_none() {
        return vec![Effect::Close];
    }
    model.say(Tone::Warn, "The session has ended. q closes the view.");
    Vec::new()
}

/// Follows the transcript of the chosen agent.
fn follow(model: &mut Model) -> Option<Effect> {
    if matches!(model.pane, Pane::Transcript | Pane::Changes) {
        return None;
    }
    let (team, agent) = lists::chosen_agent(model)?;
    let key = AgentKey {
        team: team.to_owned(),
        id: agent.id.clone(),
    };
    if model.transcript.agent.as_ref() == Some(&key) {
        return None;
    }
    model.transcript.begin(key.clone());
    Some(Effect::Follow(Some(key)))
}

fn read_changes_again(model: &mut Model) -> Option<Effect> {
    if model.pane != Pane::Changes || model.now - model.changes_at < CHANGES_EVERY_MS {
        return None;
    }
    let (of, _) = model.changes.as_ref()?;
    let of = of.clone();
    let works = lists::chosen_agent(model).is_some_and(|(_, agent)| agent.alive);
    if !works {
        return None;
    }
    model.changes_at = model.now;
    Some(Effect::ReadChanges(of))
}

/// Performs the act now.
pub(super) fn act(model: &mut Model, team: &str, act: Act) -> Vec<Effect> {
    model.busy += 1;
    model.say(Tone::Dim, format!("{} …", doing(&act)));
    let team = team.to_owned();
    vec![Effect::Act { team, act }]
}

/// The words for an act in progress.
fn doing(act: &Act) -> &'static str {
    match act {
        Act::Message { .. } | Act::Say { .. } => "sending",
        Act::Approve { .. } => "approving",
        Act::Deny { .. } => "denying",
        Act::Stop { .. } => "stopping",
        Act::Resume { .. } => "resuming",
        Act::Land { .. } => "landing",
        Act::Reject { .. } => "sending back",
        Act::Retry { .. } => "making it ready again",
        Act::AddTask { .. } => "adding the task",
        Act::ResetLimits => "resetting the limits",
        Act::Undo { .. } => "undoing",
    }
}

/// Opens another pane; Esc comes back.
pub(super) fn look_at(model: &mut Model, pane: Pane) {
    if model.pane != pane {
        model.behind.push(model.pane);
        // No person goes back further.
        let many = model.behind.len().saturating_sub(8);
        model.behind.drain(..many);
        model.pane = pane;
        model.expanded = false;
        model.filter.clear();
    }
    let at = model.chosen(pane);
    choose(model, pane, at);
}
