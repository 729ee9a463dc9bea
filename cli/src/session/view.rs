//! A session's output: lines on stderr for people, events on stdout with `--json`, or the live
//! view, which gets the same lines.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstyle::Style;
use coordinator::Finding;
use coordinator::session::{Decision, DirectorEvent, Offer, Session, SessionEvent, SessionUi};
use mailbox::{Message, Request};
use mailbox::{in_short, short_id};
use runs::failure_text::log_of_run;
use runs::{Agents, Listed};
use serde_json::{Value, json};
use store::clock::{Clock, SystemClock, rfc3339};
use store::{Failure, counted};
use taskboard::{Snapshot, Status, TaskId, Unchecked};
use team::Team;
use term::line::{HELP, decision};

use super::landing::choose;
use super::live::LiveView;
use super::summary::{summary_json, summary_text};
use super::text::{Place, event_json, event_text};
use super::typed::Typed;
use crate::output::{
    BOLD, CYAN, DIM, GREEN, Output, PLAIN, RED, YELLOW, clean_line, colored, hanging,
};
use crate::signals::Signals;

/// Indentation as wide as the time before each line.
const INDENT: &str = "         ";

/// Shows events, and reads what the person at the terminal types.
#[derive(Debug)]
pub(super) struct View {
    out: Mutex<Output>,
    json: bool,
    signals: Signals,
    /// Present where standard input is a terminal and lines are shown.
    typed: Mutex<Option<Arc<Typed>>>,
    /// True if the live view replaces the lines.
    wants_live: bool,
    live: Mutex<Option<Arc<LiveView>>>,
    /// The summary, printed when the view is closed.
    ending: Mutex<Option<String>>,
    /// The team whose members write, once it is known.
    team: Mutex<Option<Team>>,
    /// The team's agents, once they are known.
    agents: Mutex<Option<Agents>>,
    place: Mutex<Place>,
}

impl View {
    /// With `wants_live`, the live view opens when the session has begun.
    pub(super) fn new(out: Output, signals: Signals, wants_live: bool) -> Self {
        let typed = (!wants_live && std::io::stdin().is_terminal()).then(Typed::read);
        Self {
            json: out.is_json(),
            out: Mutex::new(out),
            signals,
            typed: Mutex::new(typed.map(Arc::new)),
            wants_live,
            live: Mutex::default(),
            ending: Mutex::default(),
            team: Mutex::default(),
            agents: Mutex::default(),
            place: Mutex::default(),
        }
    }

    /// Prints one line for people or one event for programs.
    fn say(&self, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if self.json {
            let mut event = json();
            event["ts"] = rfc3339(SystemClock.now_ms()).into();
            // If the reader of stdout has gone, the work continues.
            out.json(&event).ok();
        } else {
            let text = text();
            if text.is_empty() {
                return;
            }
            if let Some(live) = self.open_view() {
                live.log(&text);
                return;
            }
            let now = rfc3339(SystemClock.now_ms());
            let time = now.get(11..19).unwrap_or_default();
            out.note_with(&format!("{DIM}{time}{DIM:#} {text}"), INDENT);
        }
    }

    fn note(&self, text: &str) {
        self.say(|| json!({"event": "note", "text": text}), || hanging(text));
    }

    /// The live view, while it is on the screen.
    fn open_view(&self) -> Option<Arc<LiveView>> {
        lock(&self.live).clone().filter(|live| live.is_open())
    }

    fn typed(&self) -> Option<Arc<Typed>> {
        lock(&self.typed).clone()
    }

    /// Closes the live view, if there is one, and prints the remaining lines.
    pub(super) fn close(&self) {
        let live = lock(&self.live).take();
        if let Some(error) = live.and_then(|live| live.close()) {
            self.note(&error.in_a_line());
        }
        if let Some(text) = lock(&self.ending).take() {
            self.say(|| Value::Null, || text);
        }
    }

    /// Switches to lines after the person has closed the view to see them.
    fn go_on_as_lines(&self) {
        let wants = lock(&self.live)
            .as_ref()
            .is_some_and(|live| live.wants_lines() && !live.is_open());
        if !wants {
            return;
        }
        self.close();
        let typed = Arc::new(Typed::read());
        typed.hint(self.place().typing_hint());
        *lock(&self.typed) = Some(typed);
        let team = self.place().team;
        self.note(&format!(
            "the session goes on; `ccb --team {team} top` in another terminal shows the view"
        ));
    }

    /// A line without a time, for people only.
    fn line(&self, text: &str) {
        if let Some(live) = self.open_view() {
            live.log(text);
            return;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.note(text);
    }

    /// The colour of a team's member.
    fn color_of(&self, name: &str) -> Option<String> {
        let team = self.team.lock().unwrap_or_else(PoisonError::into_inner);
        let roster = team.as_ref()?.roster().ok()?;
        roster.member(name)?.color.clone()
    }

    /// The style of the agent that an event is about: its definition's colour, else the one in its
    /// team.
    fn style_of_agent(&self, event: &DirectorEvent) -> Style {
        let DirectorEvent::Started { agent, name, .. } = event else {
            return PLAIN;
        };
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let meta = agents.as_ref().and_then(|all| all.run(agent).meta().ok());
        let color = meta.and_then(|meta| meta.launch.color);
        let color = color.or_else(|| self.color_of(name.as_deref().unwrap_or(agent)));
        colored(color.as_deref(), PLAIN)
    }

    fn begun(&self, session: &Session) {
        let team = session.workplace.team_named(session.team.clone());
        *self.team.lock().unwrap_or_else(PoisonError::into_inner) = Some(team);
        let agents = session.workplace.agents().ok();
        *self.agents.lock().unwrap_or_else(PoisonError::into_inner) = agents;
        let place = Place {
            team: session.team.to_string(),
            commands_only: session.runs_commands_only(),
            person_leads: session.record.lead.is_none(),
            into: session.record.into.clone(),
            directory: session.workplace.directory.clone(),
            log: None,
        };
        if let Some(typed) = self.typed() {
            typed.hint(place.typing_hint());
        }
        if self.wants_live {
            *lock(&self.live) = Some(Arc::new(LiveView::open(session)));
        }
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
        let record = &session.record;
        let runtime = record.runtime.as_deref().unwrap_or("shell");
        let lead = record.lead.as_deref().unwrap_or("you");
        self.say(
            || {
                json!({
                    "event": "session", "team": session.team.as_str(), "session": record.session_id,
                    "mates": record.mates, "matesByRuntime": record.mates_by_runtime, "runtime": runtime, "lead": record.lead,
                    "merge": record.merge, "into": record.into,
                })
            },
            || {
                let into = match (&record.into, session.merge.as_str()) {
                    (Some(into), "auto") => format!(", lands on {into}"),
                    (Some(into), "ask") => format!(", lands on {into} if you say so"),
                    _ => String::new(),
                };
                let by = record.mates_by_runtime.iter();
                let by: Vec<String> = by.map(|(name, n)| format!("{n} on {name}")).collect();
                let mates = match by.is_empty() {
                    true => format!("{} on {runtime}", counted(record.mates, "mate")),
                    false => format!("{} ({})", counted(record.mates, "mate"), by.join(", ")),
                };
                let may = may_do(session);
                let team = &session.team;
                format!(
                    "{BOLD}team {team}{BOLD:#}: {mates}, led by {lead}{into}\n{INDENT}{DIM}{may}{DIM:#}\n\
                     {INDENT}{DIM}Stop: Ctrl-C. Resume: ccb --team {team}{DIM:#}"
                )
            },
        );
    }

    fn engine(&self, event: &DirectorEvent) {
        // An event that repeats earlier lines is for programs only.
        if !self.json && matches!(event, DirectorEvent::Idle { .. }) {
            return;
        }
        self.say(
            || event_json(event),
            || {
                let log = self.log_of(event);
                let place = Place {
                    log,
                    ..self.place()
                };
                event_text(event, self.style_of_agent(event), &place)
            },
        );
    }

    /// The file with the whole output of an event's agent, or of its check.
    fn log_of(&self, event: &DirectorEvent) -> Option<PathBuf> {
        let DirectorEvent::Ended { agent, .. } = event else {
            return None;
        };
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        log_of_run(agents.as_ref()?, agent.as_deref()?)
    }

    fn place(&self) -> Place {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.clone()
    }

    fn finding(&self, finding: &Finding) {
        self.say(
            || json!({"event": "finding", "kind": finding.kind, "message": finding.message, "fixed": finding.fixed}),
            || {
                let done = finding.fixed.as_deref().unwrap_or("left as it is");
                format!("{YELLOW}!{YELLOW:#} {}: {}", clean_line(&finding.message), clean_line(done))
            },
        );
    }

    fn message(&self, message: &Message) {
        // A message that needs an answer is shown as a request.
        if !self.json && message.body.kind().ends_with("_request") {
            return;
        }
        self.say(
            || json!({"event": "message", "message": message.to_json()}),
            || {
                let body = match message.text() {
                    Some(text) => hanging(text),
                    None => clean_line(&message.to_json()["body"].to_string()),
                };
                let style = colored(self.color_of(&message.from).as_deref(), CYAN);
                format!("{style}{}{style:#}: {body}", clean_line(&message.from))
            },
        );
    }

    fn request(&self, request: &Request) {
        self.say(
            || json!({"event": "request", "request": request.to_json()}),
            || {
                let id = short_id(request);
                let answer = match self.open_view() {
                    Some(_) => "! shows all of it; there a approves and n denies".to_owned(),
                    None => format!(
                        "/approve {id} or /reject {id} WHY; `ccb mail requests` shows all of it"
                    ),
                };
                format!(
                    "{YELLOW}?{YELLOW:#} {} asks to {}\n  {DIM}{answer}{DIM:#}",
                    clean_line(&request.from),
                    clean_line(&in_short(&request.question)),
                )
            },
        );
    }

    fn stopping(&self, at_once: bool) {
        let text = match at_once {
            true => "ending the agents at once".to_owned(),
            false => format!(
                "stopping: agents may finish their step, then their tasks go back on the board. \
                 Ctrl-C again ends them at once. Resume later: ccb --team {}",
                self.place().team
            ),
        };
        self.say(
            || json!({"event": "stopping", "force": at_once}),
            || format!("{YELLOW}{text}{YELLOW:#}"),
        );
    }

    fn following(&self, who: Option<&str>) {
        if let Some(live) = self.open_view() {
            live.directs(who.is_none());
        }
        match who {
            Some(who) => self.note(&format!(
                "team {} is directed by another process ({who}); following it",
                self.place().team
            )),
            None => self.note("whoever directed it is gone; taking over"),
        }
    }

    fn tasks(&self, snapshot: &Snapshot) {
        for task in snapshot.tasks().filter(|task| !task.is_internal()) {
            let mark = match task.status {
                Status::Completed if task.unchecked().is_some() => {
                    format!("{YELLOW}{}{YELLOW:#}", Unchecked::MARK)
                }
                Status::Completed => format!("{GREEN}✔{GREEN:#}"),
                Status::InProgress => format!("{CYAN}◐{CYAN:#}"),
                Status::Pending if task.parked().is_some() => format!("{RED}‖{RED:#}"),
                Status::Pending => "○".into(),
            };
            let owner = task.owner.as_deref().map(clean_line).unwrap_or_default();
            let subject = clean_line(&task.subject);
            self.line(&format!(
                "{mark} {:>4} {subject}  {DIM}{owner}{DIM:#}",
                task.id.get()
            ));
        }
    }

    fn agents(&self, agents: &[Listed]) {
        for meta in agents.iter().map(|listed| &listed.meta) {
            let color = meta.launch.color.clone();
            let color = color.or_else(|| self.color_of(meta.address()));
            let style = colored(color.as_deref(), BOLD);
            self.line(&format!(
                "{style}{}{style:#} {} {}",
                clean_line(meta.address()),
                meta.state.as_str(),
                clean_line(&meta.description)
            ));
        }
    }
}

impl SessionUi for View {
    fn show(&self, event: &SessionEvent<'_>) {
        match event {
            SessionEvent::Begun(session) => self.begun(session),
            SessionEvent::Director(event) => self.engine(event),
            SessionEvent::Finding(finding) => self.finding(finding),
            SessionEvent::Message(message) => self.message(message),
            SessionEvent::Request(request) => self.request(request),
            SessionEvent::LeadSaid(text) => self.say(
                || json!({"event": "lead", "text": text}),
                || format!("{BOLD}lead{BOLD:#}: {}", hanging(text)),
            ),
            SessionEvent::Tasks(snapshot) => self.tasks(snapshot),
            SessionEvent::Agents(agents) => self.agents(agents),
            SessionEvent::LeadWaits => self.say(
                || json!({"event": "lead_waits"}),
                || "the lead has finished its turn; type to answer it, /quit to end".into(),
            ),
            SessionEvent::Delivered { to } => self.say(
                || json!({"event": "delivered", "to": to}),
                || format!("{DIM}delivered to {}{DIM:#}", clean_line(to)),
            ),
            SessionEvent::Added { task, subject } => self.say(
                || json!({"event": "added", "task": task, "subject": subject}),
                || format!("added #{task} {}", clean_line(subject)),
            ),
            SessionEvent::Stopping { at_once } => self.stopping(*at_once),
            SessionEvent::Following { who } => self.following(*who),
            SessionEvent::Note(text) => self.note(text),
            // The summary follows.
            SessionEvent::Closing(_) => {}
            SessionEvent::Ended(summary) if lock(&self.live).is_some() => {
                *lock(&self.ending) = Some(summary_text(summary));
            }
            SessionEvent::Ended(summary) => {
                self.say(|| summary_json(summary), || summary_text(summary));
            }
        }
    }

    fn decisions(&self) -> Vec<Decision> {
        self.go_on_as_lines();
        if let Some(live) = lock(&self.live).clone() {
            return live.decisions();
        }
        let Some(typed) = self.typed() else {
            return Vec::new();
        };
        let (lines, ended) = typed.so_far();
        if ended {
            self.note("the session ends when the work is done; /quit stops the agents now");
        }
        let lines = lines.iter().map(|line| line.trim());
        let lines = lines.filter(|line| !line.is_empty());
        let mut decisions = Vec::new();
        for line in lines {
            self.line(&format!("{BOLD}›{BOLD:#} {}", clean_line(line)));
            match decision(line) {
                Some(decision) => decisions.push(decision),
                None => self.line(HELP),
            }
        }
        decisions
    }

    fn is_attended(&self) -> bool {
        self.open_view().is_some() || self.typed().is_some_and(|typed| !typed.is_over())
    }

    fn choose_to_land(&self, into: &str, offers: &[Offer]) -> Result<Vec<TaskId>, Failure> {
        let interrupted = || self.signals.came().is_some();
        if let Some(live) = self.open_view() {
            let chosen = live.choose_to_land(into, offers, &interrupted);
            self.go_on_as_lines();
            if let Some(chosen) = chosen {
                return Ok(chosen);
            }
        }
        let Some(typed) = self.typed() else {
            self.note(&format!(
                "the work on {} is not on {into}: nobody is there to ask",
                counted(offers.len(), "task")
            ));
            return Ok(Vec::new());
        };
        let say = |text: &str| self.line(text);
        Ok(choose(&typed, into, offers, &say, &interrupted))
    }

    fn signal(&self) -> Option<u8> {
        let typed = || lock(&self.live).clone()?.signal();
        self.signals.take().or_else(typed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sentence that says what teammates may do without asking.
fn may_do(session: &Session) -> String {
    let place = match session.record.no_worktrees {
        true => "in this checkout",
        false => "in their own worktrees",
    };
    if session.runs_commands_only() {
        return format!("Mates run the tasks' commands {place}.");
    }
    match session.record.permission_mode.as_deref() {
        Some("bypassPermissions") => format!("Mates do anything without asking, {place}."),
        Some("plan") => "Mates change nothing until their plans are approved.".into(),
        Some("dontAsk") => format!("Mates edit files {place}; anything else is denied."),
        _ => format!("Mates edit files {place} and ask you for anything else."),
    }
}
