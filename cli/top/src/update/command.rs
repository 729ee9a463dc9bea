//! The effects of commands where no text is typed and no question is open.

use observe::live::Act;
use observe::live::{LandState, Need, TaskState};
use taskboard::Unchecked;

use super::dialogs;
use super::{act, look_at};
use crate::keys::Command;
use crate::model::lists::{self, chosen_agent, chosen_need, chosen_task};
use crate::model::{AgentKey, ChangesOf, Cursor, Dialog, Effect, Model, Pane, Tone, Typing};
use crate::view;

/// The reason that an agent gets when a person denies its request with one key.
const NO: &str = "The person who watches said no.";

/// Time in ms after a change of the list in which a key may be meant for the earlier list.
const UNSEEN_MS: i64 = 700;

pub(super) fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::Up => go(model, -1),
        Command::Down => go(model, 1),
        Command::PageUp => go(model, -page(model)),
        Command::PageDown => go(model, page(model)),
        Command::First => go(model, isize::MIN / 2),
        Command::Last => go(model, isize::MAX / 2),
        Command::Open => open(model),
        Command::Back => back(model),
        Command::Show(Pane::Changes) | Command::Diff => return diff(model),
        Command::Show(pane) => look_at(model, pane),
        Command::NextPane => return next_pane(model, 1),
        Command::PreviousPane => return next_pane(model, Pane::NUMBERED.len() - 1),
        Command::Needs => look_at(model, Pane::Needs),
        Command::NextTeam => next_team(model),
        Command::Approve => return answer(model, true),
        Command::Deny => return answer(model, false),
        Command::Message => message(model),
        Command::Say => model.typing = Some(Typing::Line),
        Command::Land => land(model),
        Command::Reject => reject(model),
        Command::Retry => return retry(model),
        Command::Stop => stop(model),
        Command::Filter => {
            model.edit = Default::default();
            model.edit.paste(&model.filter);
            model.typing = Some(Typing::Filter);
        }
        Command::Finished => {
            model.show_finished = !model.show_finished;
            model.dismissed.clear();
        }
        Command::Help => model.help = true,
        Command::Redraw => return vec![Effect::Redraw],
        Command::Suspend => return vec![Effect::Suspend],
        Command::Interrupt => return interrupt(model),
        Command::Quit => return quit(model),
    }
    Vec::new()
}

/// Chooses a row; the pane remembers it by its key, not by its position.
pub(super) fn choose(model: &mut Model, pane: Pane, index: usize) {
    let keys = lists::keys(model, pane);
    let index = index.min(keys.len().saturating_sub(1));
    let key = keys.into_iter().nth(index);
    model.cursors.insert(pane, Cursor { key, index });
}

/// Keeps the choice after the lists have changed; if the chosen row has gone, chooses its
/// neighbour.
pub(super) fn keep_in_view(model: &mut Model) {
    let panes: Vec<Pane> = model.cursors.keys().copied().collect();
    for pane in panes {
        let at = model.chosen(pane);
        choose(model, pane, at);
    }
}

fn page(model: &Model) -> isize {
    isize::try_from(view::room(model)).unwrap_or(10).max(2) - 1
}

fn go(model: &mut Model, by: isize) {
    match model.pane {
        Pane::Transcript => model.transcript.go(by),
        Pane::Changes => scroll(model, by),
        _ if model.expanded => scroll(model, by),
        pane => {
            let at = model.chosen(pane).saturating_add_signed(by);
            choose(model, pane, at);
            model.scrolls.remove(&pane);
        }
    }
}

fn scroll(model: &mut Model, by: isize) {
    let most = view::length(model).saturating_sub(view::room(model));
    let at = model.scroll(model.pane).saturating_add_signed(by).min(most);
    model.scrolls.insert(model.pane, at);
}

fn open(model: &mut Model) {
    match model.pane {
        Pane::Agents if chosen_agent(model).is_some() => look_at(model, Pane::Transcript),
        Pane::Transcript if model.transcript.unfold() => {}
        Pane::Transcript | Pane::Changes => back(model),
        Pane::Agents => {}
        pane if !lists::keys(model, pane).is_empty() => {
            model.expanded = !model.expanded;
            model.scrolls.remove(&pane);
        }
        _ => {}
    }
}

fn back(model: &mut Model) {
    if model.peeking {
        model.peeking = false;
        model.pane = model.behind.pop().unwrap_or(Pane::Agents);
    } else if !model.filter.is_empty() {
        model.filter.clear();
    } else if model.expanded {
        model.expanded = false;
    } else if let Some(pane) = model.behind.pop() {
        model.pane = pane;
    } else {
        model.pane = Pane::Agents;
    }
    keep_in_view(model);
}

fn next_pane(model: &mut Model, by: usize) -> Vec<Effect> {
    let all = Pane::NUMBERED;
    let at = all.iter().position(|pane| *pane == model.pane);
    let next = match at {
        Some(at) => all[(at + by) % all.len()],
        None => Pane::Agents,
    };
    run(model, Command::Show(next))
}

fn next_team(model: &mut Model) {
    let teams = &model.scene.teams;
    if teams.len() < 2 {
        model.say(Tone::Dim, "There is no other team in this repository.");
        return;
    }
    let shown = model.team_name();
    let at = teams.iter().position(|team| team.name == shown);
    let next = &teams[at.map_or(0, |at| (at + 1) % teams.len())];
    model.team = Some(next.name.clone());
    model.cursors.clear();
    model.scrolls.clear();
    if matches!(model.pane, Pane::Transcript | Pane::Changes) {
        model.pane = Pane::Agents;
    }
}

/// Shows the changes of the chosen task in a list of tasks, else of the chosen agent.
fn diff(model: &mut Model) -> Vec<Effect> {
    let by_task = matches!(
        model.pane,
        Pane::Board | Pane::Graph | Pane::Progress | Pane::Needs
    );
    let task = chosen_task(model).map(|(team, task)| {
        (
            team.to_owned(),
            task.id.to_string(),
            format!("#{}", task.id),
        )
    });
    let agent = chosen_agent(model)
        .map(|(team, agent)| (team.to_owned(), agent.id.clone(), agent.name.clone()));
    let found = match by_task {
        true => task.or(agent),
        false => agent.or(task),
    };
    let Some((team, what, name)) = found else {
        if model.pane != Pane::Changes {
            model.say(Tone::Warn, "Choose an agent or a task to see its changes.");
        }
        return Vec::new();
    };
    show_changes(model, ChangesOf { team, what, name })
}

pub(super) fn show_changes(model: &mut Model, of: ChangesOf) -> Vec<Effect> {
    let shown = model.changes.take().filter(|(shown, _)| *shown == of);
    model.changes = Some(shown.unwrap_or((of.clone(), None)));
    look_at(model, Pane::Changes);
    model.scrolls.remove(&Pane::Changes);
    model.changes_at = model.now;
    vec![Effect::ReadChanges(of)]
}

/// Answers the chosen entry. From another list than that of what needs a person, the whole question
/// is shown first: a person says yes only to what they have seen.
fn answer(model: &mut Model, yes: bool) -> Vec<Effect> {
    let Some(one) = chosen_need(model).cloned() else {
        match lists::needs(model).is_empty() {
            true => model.say(Tone::Dim, "Nothing waits for an answer."),
            false => look_at(model, Pane::Needs),
        }
        return Vec::new();
    };
    if model.pane != Pane::Needs {
        look_at(model, Pane::Needs);
        let keys = lists::keys(model, Pane::Needs);
        let wanted = lists::need_key(&one);
        let at = keys.iter().position(|key| *key == wanted);
        choose(model, Pane::Needs, at.unwrap_or_default());
        return Vec::new();
    }
    if model.now - model.moved_at < UNSEEN_MS {
        let text = "The list has just changed. Look again, then press the key.";
        model.say(Tone::Warn, text);
        return Vec::new();
    }
    model.answered = Some(lists::need_key(&one));
    let of_kind = |answer: &&Act| match yes {
        true => !matches!(answer, Act::Deny { .. } | Act::Stop { .. }),
        false => matches!(answer, Act::Deny { .. }),
    };
    let Some(chosen) = one.answers.iter().find(of_kind).cloned() else {
        model.say(Tone::Warn, format!("Answer it with: {}", one.command));
        return Vec::new();
    };
    match chosen {
        Act::Deny { request, why } => {
            let why = if why.is_empty() { NO.into() } else { why };
            act(model, &one.team, Act::Deny { request, why })
        }
        chosen => dialogs::ask_or_act(model, &one.team, chosen),
    }
}

fn message(model: &mut Model) {
    let Some((team, agent)) = chosen_agent(model) else {
        model.say(Tone::Warn, "Choose an agent to message it.");
        return;
    };
    let (team, name) = (team.to_owned(), agent.name.clone());
    if !agent.reads_mail {
        let text = format!("{name} runs a command, which reads no messages.");
        model.say(Tone::Warn, text);
        return;
    }
    let to = match agent.alive {
        true => name.clone(),
        false => agent.id.clone(),
    };
    let ask = format!("to {name}");
    let text = String::new();
    dialogs::ask_text(model, &team, Act::Message { to, text }, ask);
}

fn land(model: &mut Model) {
    let about_all = chosen_need(model).filter(|one| one.need == Need::Unlanded);
    if let (Pane::Needs, Some(one)) = (model.pane, about_all) {
        let (team, what) = (one.team.clone(), one.what.clone());
        let all = Act::Land { tasks: Vec::new() };
        let land = one.answers.first().cloned().unwrap_or(all);
        confirm_landing(model, &team, land, format!("Land it? {what}."));
        return;
    }
    let Some((team, task)) = chosen_task(model) else {
        model.say(Tone::Warn, "Choose a task, or an agent that worked on one.");
        return;
    };
    let (team, id) = (team.to_owned(), task.id);
    let why_not = match (task.state, task.landing) {
        (TaskState::Completed, LandState::Waiting | LandState::Undone) => None,
        (TaskState::Completed, LandState::Landed) => Some("has landed already"),
        (TaskState::Completed, _) => Some("changed nothing that could land"),
        _ => Some("is not done yet"),
    };
    if let Some(why_not) = why_not {
        model.say(Tone::Warn, format!("#{id} {why_not}."));
        return;
    }
    let doubt = task.unchecked.as_ref();
    let doubt = doubt.map(|why| format!(" It is {}: {why}.", Unchecked::MARK));
    let question = format!("Land #{id} {}?{}", task.subject, doubt.unwrap_or_default());
    confirm_landing(model, &team, Act::Land { tasks: vec![id] }, question);
}

fn confirm_landing(model: &mut Model, team: &str, land: Act, question: String) {
    let into = model.scene.team(team).and_then(|team| team.into.clone());
    let into = into.unwrap_or_else(|| "the branch that is checked out".into());
    model.dialog = Some(Dialog::Confirm {
        question,
        more: format!("The work lands on {into} after its check. `ccb undo` takes it back."),
        team: team.to_owned(),
        act: land,
    });
}

/// Sends a result back, or denies a request, with a text.
fn reject(model: &mut Model) {
    if let (Pane::Needs, Some(one)) = (model.pane, chosen_need(model)) {
        let wants_text = |answer: &&Act| matches!(answer, Act::Deny { .. } | Act::Reject { .. });
        if let Some(found) = one.answers.iter().find(wants_text) {
            let (team, found) = (one.team.clone(), found.clone());
            let ask = found.asks_for().unwrap_or("why").to_owned();
            dialogs::ask_text(model, &team, found, ask);
            return;
        }
    }
    let Some((team, task)) = chosen_task(model) else {
        model.say(Tone::Warn, "Choose a task, or an agent that worked on one.");
        return;
    };
    let (team, id) = (team.to_owned(), task.id);
    if !matches!(task.state, TaskState::Completed | TaskState::Parked) {
        let text = format!("#{id} has no result yet that could be sent back.");
        model.say(Tone::Warn, text);
        return;
    }
    let act = Act::Reject {
        task: id,
        feedback: String::new(),
    };
    let ask = format!("#{id}: {}", act.asks_for().unwrap_or("feedback"));
    dialogs::ask_text(model, &team, act, ask);
}

fn retry(model: &mut Model) -> Vec<Effect> {
    let Some((team, task)) = chosen_task(model) else {
        model.say(Tone::Warn, "Choose a parked task to retry it.");
        return Vec::new();
    };
    let (team, id, state) = (team.to_owned(), task.id, task.state);
    if state != TaskState::Parked {
        let text = format!("#{id} is {}, not parked.", lists::state_word(state));
        model.say(Tone::Warn, text);
        return Vec::new();
    }
    act(model, &team, Act::Retry { task: id })
}

/// Asks whether to stop a working agent; dismisses a finished one.
fn stop(model: &mut Model) {
    let Some((team, agent)) = chosen_agent(model) else {
        model.say(Tone::Warn, "Choose an agent to stop it.");
        return;
    };
    let key = AgentKey {
        team: team.to_owned(),
        id: agent.id.clone(),
    };
    if !agent.alive {
        let name = agent.name.clone();
        model.dismissed.insert(key);
        if matches!(model.pane, Pane::Transcript | Pane::Changes) {
            back(model);
        }
        model.say(Tone::Dim, format!("dismissed {name}; f shows it again"));
        return;
    }
    let name = agent.name.clone();
    let more = match agent.task {
        Some(task) => format!("Its task #{task} goes back on the board. Its worktree is kept."),
        None => "Its worktree is kept. A message resumes it.".into(),
    };
    model.dialog = Some(Dialog::Confirm {
        question: format!("Stop {name}?"),
        more,
        team: key.team.clone(),
        act: Act::Stop {
            agent: key.id,
            why: None,
        },
    });
}

/// Handles Ctrl-C: a watcher leaves, a session stops its agents.
pub(super) fn interrupt(model: &mut Model) -> Vec<Effect> {
    match model.is_session() && !model.over {
        true => vec![Effect::Interrupt],
        false => vec![Effect::Close],
    }
}

/// Asks if this process directs what is shown; leaves at once if another one does.
fn quit(model: &mut Model) -> Vec<Effect> {
    if model.directs() {
        model.dialog = Some(Dialog::Leave);
        return Vec::new();
    }
    interrupt(model)
}
