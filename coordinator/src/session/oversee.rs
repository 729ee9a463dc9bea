//! Watches what the engine does not: signals, the person at the terminal, the lead, and the end of
//! all work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use director::{Control, DirectorEvent, Level};
use mailbox::{IdleNotification, IdleReason, Mailbox};
use store::Failure;
use store::name::Name;

use super::desk::Desk;
use super::lead::Lead;
use super::{Session, SessionEvent, SessionUi, Stand};

/// Poll interval.
const EVERY: Duration = Duration::from_millis(100);
/// Number of consecutive polls in which everything must look done.
const LOOKS: u32 = 3;

#[derive(Debug, Default)]
struct Watched {
    at_rest: AtomicBool,
    /// True if there is nothing on the board.
    no_tasks: AtomicBool,
    over: AtomicBool,
    signal: AtomicU8,
}

/// Watches a session until it should finish.
#[derive(Debug)]
pub(super) struct Overseer {
    state: Arc<Watched>,
    /// Mail to a lead that is an agent about idle teammates.
    mail: Option<Activity>,
    thread: Option<JoinHandle<()>>,
}

impl Overseer {
    pub(super) fn start(
        session: &Session,
        control: Arc<Control>,
        ui: &Arc<dyn SessionUi>,
    ) -> Result<Self, Failure> {
        let state = Arc::new(Watched::default());
        let mut lead = match &session.record.lead {
            Some(_) => Some(Lead::start(session)?),
            None => None,
        };
        let mut desk = Desk::new(session, Arc::clone(&control), Arc::clone(ui))?;
        let (watched, ui) = (Arc::clone(&state), Arc::clone(ui));
        let agents = session.workplace.agents()?;
        let stay = session.stay;
        let thread = std::thread::spawn(move || {
            let mut quiet = 0;
            let mut said_so = false;
            while !watched.over.load(Ordering::SeqCst) {
                if let Some(number) = ui.signal() {
                    watched.signal.store(number, Ordering::SeqCst);
                    let at_once = control.interrupt() == Level::Force;
                    ui.show(&SessionEvent::Stopping { at_once });
                }
                desk.look(&agents);
                let leading = lead.as_mut().is_some_and(|lead| lead.is_busy(&agents));
                for text in lead.iter_mut().flat_map(|lead| lead.says(&agents)) {
                    ui.show(&SessionEvent::LeadSaid(&text));
                }
                let resting = watched.at_rest.load(Ordering::SeqCst);
                let quiet_now = resting && !leading && !anybody_at_work(&agents);
                // Without tasks nothing was done: the person comes next.
                let no_tasks = watched.no_tasks.load(Ordering::SeqCst);
                let stays = ui.is_attended() && (stay || no_tasks);
                if quiet_now && stays && no_tasks && lead.is_some() {
                    if !std::mem::replace(&mut said_so, true) {
                        ui.show(&SessionEvent::LeadWaits);
                    }
                } else if leading {
                    said_so = false;
                }
                quiet = if quiet_now && !stays { quiet + 1 } else { 0 };
                // Several times, because a message may be on its way between two idle agents.
                if quiet >= LOOKS {
                    control.want(Level::Finish, "nothing is left to do");
                }
                std::thread::sleep(EVERY);
            }
        });
        let mail = match &session.record.lead {
            Some(_) => Some(Activity(session.workplace.mailbox()?)),
            None => None,
        };
        Ok(Self {
            state,
            mail,
            thread: Some(thread),
        })
    }

    /// Records an event of the engine.
    pub(super) fn heard(&self, event: &DirectorEvent) {
        match event {
            DirectorEvent::AtRest { stand } => {
                let no_tasks = *stand == Stand::NoTasks;
                self.state.no_tasks.store(no_tasks, Ordering::SeqCst);
                let over = *stand != Stand::Elsewhere;
                self.state.at_rest.store(over, Ordering::SeqCst);
            }
            DirectorEvent::Started { name, .. } => {
                self.state.at_rest.store(false, Ordering::SeqCst);
                if let (Some(mail), Some(name)) = (&self.mail, name) {
                    mail.busy(name);
                }
            }
            DirectorEvent::Idle {
                name,
                task,
                failure,
            } => {
                if let Some(mail) = &self.mail {
                    mail.idle(name, &task.to_string(), failure.as_deref());
                }
            }
            _ => {}
        }
    }

    /// Stops watching; returns the signal that came, if one did.
    pub(super) fn finish(mut self) -> Option<u8> {
        self.end();
        match self.state.signal.load(Ordering::SeqCst) {
            0 => None,
            number => Some(number),
        }
    }

    fn end(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Drop for Overseer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tells the lead about each change of a teammate's activity.
#[derive(Debug)]
struct Activity(Mailbox);

impl Activity {
    fn busy(&self, mate: &str) {
        let noted = Name::new("agent", mate).map(|mate| self.0.note_busy(&mate));
        if let Ok(Err(error)) = noted {
            tracing::warn!(%error, "nobody is told that {mate} is at work");
        }
    }

    fn idle(&self, mate: &str, task: &str, failure: Option<&str>) {
        let notification = IdleNotification {
            idle_reason: match failure {
                Some(_) => IdleReason::Failed,
                None => IdleReason::Available,
            },
            finished_tasks: match failure {
                Some(_) => Vec::new(),
                None => vec![task.to_owned()],
            },
            failure_reason: failure.map(str::to_owned),
        };
        let names = Name::new("agent", mate)
            .and_then(|m| Ok((m, Name::new("agent", store::agent_id::LEAD)?)));
        let noted = names.map(|(mate, lead)| self.0.note_idle(&mate, &lead, notification));
        if let Ok(Err(error)) = noted {
            tracing::warn!(%error, "nobody is told that {mate} is idle");
        }
    }
}

/// True if an agent that was started beside the board is not done yet.
fn anybody_at_work(agents: &runs::Agents) -> bool {
    let ids = swarm::run::active(agents.runs_dir()).unwrap_or_default();
    ids.iter().any(|id| {
        let run = agents.run(id);
        let Ok(meta) = run.meta() else {
            return false;
        };
        let leads = meta.address() == store::agent_id::LEAD;
        let idle = meta.state == swarm::run::RunState::Idle || meta.state.is_terminal();
        !leads && !idle && run.is_alive().unwrap_or(false)
    })
}
