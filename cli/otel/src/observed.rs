//! Observes a session or a plan: passes on all events, and tells the exporter when it begins and
//! ends.

use std::sync::{Arc, Mutex, PoisonError};

use coordinator::session::Verdict;
use coordinator::session::{Decision, DirectorEvent, Offer, SessionEvent, SessionUi};
use fanout::{Events, FanoutEvent};
use project::workplace::Workplace;
use runs::env;
use store::Failure;
use store::name::Name;
use taskboard::TaskId;

use super::exporter::{Exporter, Subject};
use super::settings::Settings;

/// The settings in the environment; `note` gets the errors in them.
fn settings(note: impl FnOnce(&str)) -> Option<Settings> {
    match Settings::read(env::var) {
        Ok(settings) => settings,
        Err(why) => {
            note(&format!("no telemetry: {why}"));
            None
        }
    }
}

/// The same session, observed if the variables name a collector. `note` gets the errors in the
/// variables.
pub fn session(ui: Arc<dyn SessionUi>, note: impl FnOnce(&str)) -> Arc<dyn SessionUi> {
    match settings(note) {
        Some(settings) => Arc::new(OfSession {
            ui,
            settings,
            exporter: Mutex::new(None),
        }),
        None => ui,
    }
}

/// A session under observation.
struct OfSession {
    ui: Arc<dyn SessionUi>,
    settings: Settings,
    exporter: Mutex<Option<Exporter>>,
}

impl SessionUi for OfSession {
    fn show(&self, event: &SessionEvent<'_>) {
        let mut exporter = self.exporter.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            SessionEvent::Begun(session) => {
                let subject = Subject {
                    workplace: session.workplace.clone(),
                    session: Some(session.record.session_id.clone()),
                    kind: session.record.mode.clone(),
                    branch: session.record.into.clone(),
                };
                *exporter = Exporter::start(self.settings.clone(), subject);
            }
            SessionEvent::Director(DirectorEvent::NotLanded { task, files, .. }) => {
                if let Some(exporter) = &*exporter {
                    exporter.not_landed(*task, !files.is_empty());
                }
            }
            SessionEvent::Closing(verdict) => {
                let trouble = exporter.take().and_then(|it| it.finish(Some(*verdict)));
                if let Some(why) = trouble {
                    self.ui
                        .show(&SessionEvent::Note(&format!("telemetry: {why}")));
                }
            }
            _ => {}
        }
        drop(exporter);
        self.ui.show(event);
    }

    fn decisions(&self) -> Vec<Decision> {
        self.ui.decisions()
    }

    fn is_attended(&self) -> bool {
        self.ui.is_attended()
    }

    fn choose_to_land(&self, into: &str, offers: &[Offer]) -> Result<Vec<TaskId>, Failure> {
        self.ui.choose_to_land(into, offers)
    }

    fn signal(&self) -> Option<u8> {
        self.ui.signal()
    }
}

impl Drop for OfSession {
    fn drop(&mut self) {
        let exporter = self
            .exporter
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // The session failed, or another process directs it.
        if let Some(exporter) = exporter.take() {
            exporter.finish(None);
        }
    }
}

/// Observes a plan.
#[derive(Debug)]
pub struct OfPlan {
    settings: Option<Settings>,
    workplace: Workplace,
    exporter: Option<Exporter>,
}

impl OfPlan {
    /// Reads the variables. `note` gets the errors in them.
    pub fn new(workplace: &Workplace, note: impl FnOnce(&str)) -> Self {
        Self {
            settings: settings(note),
            workplace: workplace.clone(),
            exporter: None,
        }
    }

    /// Events for a plan: they go to `events`, and to the exporter.
    pub fn events<'a>(&'a mut self, events: &'a mut dyn Events) -> impl Events + 'a {
        Listening { plan: self, events }
    }

    /// Ends the observation of a plan, with its verdict if there is one. `note` gets the reason if
    /// spans could not be sent.
    pub fn finish(mut self, verdict: Option<Verdict>, note: impl FnOnce(&str)) {
        let trouble = self.exporter.take().and_then(|it| it.finish(verdict));
        if let Some(why) = trouble {
            note(&format!("telemetry: {why}"));
        }
    }

    fn begin(&mut self, team: &str) {
        let (Some(settings), Ok(team)) = (self.settings.take(), Name::new("team", team)) else {
            return;
        };
        let subject = Subject {
            workplace: self.workplace.in_team(&team),
            session: None,
            kind: "fanout".into(),
            branch: None,
        };
        self.exporter = Exporter::start(settings, subject);
    }
}

/// Passes events of a plan on.
struct Listening<'a> {
    plan: &'a mut OfPlan,
    events: &'a mut dyn Events,
}

impl Events for Listening<'_> {
    fn event(&mut self, event: &FanoutEvent) {
        if let FanoutEvent::Planned { team, .. } = event {
            self.plan.begin(team);
        }
        self.events.event(event);
    }
}
