//! What a session shows: lines on stderr for people, events on stdout with `--json`.

use std::io::{BufRead, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use coordinator::engine::{EngineEvent, Level, Stand, TaskEnd};
use coordinator::run::Agents;
use mailbox::Message;
use serde_json::{Value, json};
use store::Failure;
use store::clock::{Clock, SystemClock, rfc3339};
use swarm::run::{CheckPlace, Checked};
use taskboard::{Status, TaskId};

use super::{Session, end_json};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, Output, RED, YELLOW, clean_line, hanging};

/// Says what happens.
#[derive(Debug)]
pub(crate) struct View {
    out: Mutex<Output>,
    json: bool,
}

impl View {
    pub(crate) fn new(out: Output) -> Self {
        Self {
            json: out.is_json(),
            out: Mutex::new(out),
        }
    }

    /// One line for people, one event for programs.
    fn say(&self, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if self.json {
            let mut event = json();
            event["ts"] = rfc3339(SystemClock.now_ms()).into();
            // Whoever reads it may be gone; the work goes on.
            out.json(&event).ok();
        } else {
            let now = rfc3339(SystemClock.now_ms());
            let time = now.get(11..19).unwrap_or_default();
            out.note(&format!("{DIM}{time}{DIM:#} {}", text()));
        }
    }

    /// Something for people only.
    pub(crate) fn note(&self, text: &str) {
        self.say(|| json!({"event": "note", "text": text}), || hanging(text));
    }

    pub(crate) fn begin(&self, session: &Session) {
        let record = &session.record;
        let runtime = record.runtime.as_deref().unwrap_or("shell");
        let lead = record.lead.as_deref().unwrap_or("you");
        self.say(
            || {
                json!({
                    "event": "session", "team": session.team.as_str(), "session": record.session_id,
                    "mates": record.mates, "runtime": runtime, "lead": record.lead,
                    "merge": record.merge, "into": record.into,
                })
            },
            || {
                let into = match (&record.into, session.merge.word().as_str()) {
                    (Some(into), "auto") => format!(", lands on {into}"),
                    (Some(into), "ask") => format!(", lands on {into} if you say so"),
                    _ => String::new(),
                };
                format!(
                    "{BOLD}team {}{BOLD:#}: {} mates on {runtime}, led by {lead}{into}",
                    session.team, record.mates
                )
            },
        );
    }

    pub(crate) fn event(&self, event: &EngineEvent) {
        // What follows from the lines before it is for programs.
        if !self.json && matches!(event, EngineEvent::Idle { .. }) {
            return;
        }
        self.say(|| event_json(event), || event_text(event));
    }

    /// Something the look at the start has found.
    pub(crate) fn finding(&self, finding: &coordinator::Finding) {
        self.say(
            || json!({"event": "finding", "kind": finding.kind, "message": finding.message, "fixed": finding.fixed}),
            || {
                let done = finding.fixed.as_deref().unwrap_or("left as it is");
                format!("{YELLOW}!{YELLOW:#} {}: {}", clean_line(&finding.message), clean_line(done))
            },
        );
    }

    pub(crate) fn message(&self, message: &Message) {
        self.say(
            || json!({"event": "message", "message": message.to_json()}),
            || {
                let body = match message.text() {
                    Some(text) => hanging(text),
                    None => clean_line(&message.to_json()["body"].to_string()),
                };
                format!("{CYAN}{}{CYAN:#}: {body}", clean_line(&message.from))
            },
        );
    }

    pub(crate) fn interrupted(&self, level: Level) {
        let text = match level {
            Level::Force => "everybody is ended",
            _ => "everybody is asked to stop; once more ends them at once",
        };
        self.say(
            || json!({"event": "stopping", "force": level == Level::Force}),
            || format!("{YELLOW}{text}{YELLOW:#}"),
        );
    }

    pub(crate) fn tasks(&self, context: &Context) -> Result<(), Failure> {
        let snapshot = context.board().snapshot()?;
        for task in snapshot.tasks().filter(|task| !task.is_internal()) {
            let mark = match task.status {
                Status::Completed => format!("{GREEN}✔{GREEN:#}"),
                Status::InProgress => format!("{CYAN}▶{CYAN:#}"),
                Status::Pending if task.parked().is_some() => format!("{RED}‖{RED:#}"),
                Status::Pending => "·".into(),
            };
            let owner = task.owner.as_deref().map(clean_line).unwrap_or_default();
            let subject = clean_line(&task.subject);
            self.note_raw(&format!(
                "{mark} {:>4} {subject}  {DIM}{owner}{DIM:#}",
                task.id.get()
            ));
        }
        Ok(())
    }

    pub(crate) fn agents(&self, agents: &Agents) -> Result<(), Failure> {
        let (all, _) = agents.list()?;
        for listed in all.iter().filter(|listed| listed.alive) {
            let meta = &listed.meta;
            self.note_raw(&format!(
                "{BOLD}{}{BOLD:#} {} {}",
                clean_line(meta.address()),
                meta.state.as_str(),
                clean_line(&meta.description)
            ));
        }
        Ok(())
    }

    fn note_raw(&self, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.note(text);
    }

    /// Asks whether finished work is to land.
    pub(crate) fn ask_to_land(&self, session: &Session, tasks: &[TaskId]) -> Result<bool, Failure> {
        let into = session.record.into.as_deref().unwrap_or_default();
        if !std::io::stdin().is_terminal() {
            self.note(&format!(
                "the work on {} tasks is not on {into}: nobody is there to ask",
                tasks.len()
            ));
            return Ok(false);
        }
        let ids: Vec<String> = tasks.iter().map(|id| format!("#{id}")).collect();
        self.note_raw(&format!(
            "{BOLD}Land the work on {} on {into}? [y/N]{BOLD:#}",
            ids.join(", ")
        ));
        let mut line = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut line)
            .map_err(|error| Failure::failed("io", format!("cannot read the answer: {error}")))?;
        Ok(matches!(line.trim(), "y" | "Y" | "yes" | "j" | "ja"))
    }

    /// The last word.
    pub(crate) fn end(&self, session: &Session, exit: Exit, summary: &str, json: &Value) {
        self.say(
            || {
                let mut event = end_json(session, exit);
                if let (Some(event), Some(more)) = (event.as_object_mut(), json.as_object()) {
                    event.extend(more.clone());
                }
                event
            },
            || summary.to_owned(),
        );
    }
}

fn event_json(event: &EngineEvent) -> Value {
    match event {
        EngineEvent::Started {
            task,
            subject,
            agent,
            name,
            attempt,
            adopted,
        } => json!({
            "event": "started", "task": task, "subject": subject, "agent": agent, "name": name,
            "attempt": attempt, "adopted": adopted,
        }),
        EngineEvent::Ended {
            task,
            agent,
            end,
            usage,
            took,
        } => {
            let (word, why) = end_words(end);
            let mut json = json!({
                "event": "ended", "task": task, "agent": agent, "outcome": word,
                "tokens": usage.total_tokens(), "durationMs": ms(*took),
            });
            if let Some(why) = why {
                json["why"] = why.into();
            }
            if let TaskEnd::Done {
                proof: Some(proof), ..
            } = end
            {
                json["proof"] = serde_json::to_value(proof).unwrap_or_default();
            }
            json
        }
        EngineEvent::Landed { task, into, commit } => {
            json!({"event": "landed", "task": task, "into": into, "commit": commit})
        }
        EngineEvent::NotLanded {
            task,
            files,
            why,
            became,
        } => json!({
            "event": "not_landed", "task": task, "files": files, "why": why, "became": became,
        }),
        EngineEvent::Idle {
            name,
            task,
            failure,
        } => json!({"event": "idle", "name": name, "task": task, "failure": failure}),
        EngineEvent::AtRest(stand) => json!({"event": "at_rest", "stand": stand_words(stand)}),
        EngineEvent::Paused(why) => json!({"event": "paused", "why": why}),
        EngineEvent::Resumed => json!({"event": "resumed"}),
        EngineEvent::Note(text) => json!({"event": "note", "text": text}),
        other => json!({"event": "other", "text": format!("{other:?}")}),
    }
}

fn event_text(event: &EngineEvent) -> String {
    match event {
        EngineEvent::Started {
            task,
            subject,
            agent,
            name,
            attempt,
            adopted,
        } => {
            let who = clean_line(name.as_deref().unwrap_or(agent));
            let again = match (*attempt, *adopted) {
                (_, true) => " (found at work)".to_owned(),
                (1, _) => String::new(),
                (more, _) => format!(" (attempt {more})"),
            };
            format!(
                "{CYAN}▶{CYAN:#} {who} #{task} {}{again}",
                clean_line(subject)
            )
        }
        EngineEvent::Ended {
            task, end, took, ..
        } => {
            let seconds = took.as_secs_f64();
            match end {
                TaskEnd::Done { proof, .. } => {
                    let check = proof.as_ref().and_then(|proof| proof.check.as_ref());
                    let check = check.filter(|check: &&Checked| check.passed);
                    let checked = match check.map(|check| check.place) {
                        Some(CheckPlace::Commit) => ", checked",
                        Some(CheckPlace::InPlace) => ", checked in place",
                        None => "",
                    };
                    format!("{GREEN}✔{GREEN:#} #{task} done{checked} {DIM}{seconds:.1} s{DIM:#}")
                }
                TaskEnd::Failed { why } => {
                    format!(
                        "{YELLOW}✘{YELLOW:#} #{task} failed: {}",
                        clean_line(&short(why))
                    )
                }
                TaskEnd::Parked { why } => {
                    format!("{RED}✘{RED:#} #{task} parked: {}", clean_line(&short(why)))
                }
                TaskEnd::Stopped { why } => {
                    format!("{YELLOW}■{YELLOW:#} #{task} stopped: {}", clean_line(why))
                }
                TaskEnd::Taken => format!("{DIM}#{task} is somebody else's now{DIM:#}"),
            }
        }
        EngineEvent::Landed { task, into, commit } => {
            let commit = commit.get(..10).unwrap_or(commit);
            format!("{GREEN}⇥{GREEN:#} #{task} is on {into} {DIM}{commit}{DIM:#}")
        }
        EngineEvent::NotLanded {
            task,
            files,
            why,
            became,
        } => {
            let files = match files.as_slice() {
                [] => String::new(),
                files => format!(" ({})", clean_line(&files.join(", "))),
            };
            let became =
                became.map_or_else(String::new, |id| format!("; task #{id} is to solve it"));
            format!(
                "{YELLOW}⇤{YELLOW:#} #{task} did not land: {}{files}{became}",
                clean_line(&short(why))
            )
        }
        EngineEvent::AtRest(stand) => format!("{DIM}{}{DIM:#}", clean_line(&stand_words(stand))),
        EngineEvent::Paused(why) => format!("{YELLOW}paused:{YELLOW:#} {}", clean_line(why)),
        EngineEvent::Resumed => "it goes on".into(),
        EngineEvent::Note(text) => clean_line(text),
        other => format!("{other:?}"),
    }
}

fn end_words(end: &TaskEnd) -> (&'static str, Option<&str>) {
    match end {
        TaskEnd::Done { proof, .. } => match proof {
            Some(proof) if proof.commit.is_some() && !proof.changed => ("no_change", None),
            _ => ("done", None),
        },
        TaskEnd::Failed { why } => ("failed", Some(why)),
        TaskEnd::Parked { why } => ("parked", Some(why)),
        TaskEnd::Stopped { why } => ("stopped", Some(why)),
        TaskEnd::Taken => ("taken", None),
    }
}

pub(super) fn stand_words(stand: &Stand) -> String {
    match stand {
        Stand::Working => "at work".into(),
        Stand::Waiting(why) => format!("waiting: {why}"),
        Stand::AllDone => "every task is completed".into(),
        Stand::Stuck(left) => format!("{} tasks cannot go on by themselves", left.len()),
        Stand::GivenUp(why) => format!("given up: {why}"),
    }
}

/// The first line that says something, and not too much of it.
fn short(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().chars().take(160).collect()
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
