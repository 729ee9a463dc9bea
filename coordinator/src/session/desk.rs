//! Carries out a person's decisions; and reads the lead's mail, if the person leads.

use std::collections::HashSet;
use std::sync::Arc;

use director::{Control, Level};
use mailbox::{Consumer, Mailbox, RequestState};
use project::workplace::Workplace;
use runs::Agents;
use store::Failure;
use store::agent_id::LEAD;
use store::name::Name;
use taskboard::Task;

use super::{Decision, Session, SessionEvent, SessionUi};
use crate::actions::{self, Said, Steer, write_to};

/// Maximum number of messages that are shown at once.
const BATCH: usize = 64;

/// Number of looks per look at requests.
const LOOKS_PER_REQUEST: u32 = 3;

/// Receives a person's decisions.
pub(super) struct Desk {
    /// Reads the lead's mail if no agent does.
    mail: Option<Consumer>,
    mailbox: Mailbox,
    workplace: Workplace,
    control: Arc<Control>,
    ui: Arc<dyn SessionUi>,
    leads: bool,
    commands_only: bool,
    /// Requests that were shown.
    shown: HashSet<String>,
    looks: u32,
}

impl Desk {
    pub(super) fn new(
        session: &Session,
        control: Arc<Control>,
        ui: Arc<dyn SessionUi>,
    ) -> Result<Self, Failure> {
        let leads = session.record.lead.is_none();
        let mailbox = session.workplace.mailbox()?;
        let lead = Name::new("agent", LEAD)?;
        let mail = match leads {
            true => match mailbox.inbox(&lead)?.consumer() {
                Ok(mail) => Some(mail),
                Err(error) => {
                    let text = format!("the lead's mail is read elsewhere: {error}");
                    ui.show(&SessionEvent::Note(&text));
                    None
                }
            },
            false => None,
        };
        let mut workplace = session.workplace.clone();
        workplace.act_as(lead);
        Ok(Self {
            mail,
            mailbox,
            workplace,
            control,
            ui,
            leads,
            commands_only: session.commands_only,
            shown: HashSet::new(),
            looks: 0,
        })
    }

    /// Carries out decisions, and shows new messages.
    pub(super) fn look(&mut self, agents: &Agents) {
        for decision in self.ui.decisions() {
            if let Err(error) = self.carry_out(decision, agents) {
                self.note(&error.in_a_line());
            }
        }
        self.looks = self.looks.wrapping_add(1);
        if self.looks % LOOKS_PER_REQUEST == 1 {
            self.show_requests();
        }
        if let Some(mail) = &mut self.mail {
            mail.bell().hush();
            let shown = mail.take(BATCH).map_err(Failure::from).and_then(|batch| {
                let seqs: Vec<u64> = batch.messages.iter().map(|message| message.seq).collect();
                for message in &batch.messages {
                    self.ui.show(&SessionEvent::Message(message));
                }
                mail.delivered(&seqs)?;
                mail.ack(&seqs)?;
                Ok(())
            });
            if let Err(error) = shown {
                self.note(&error.in_a_line());
            }
        }
    }

    /// Shows requests to the lead, also if an agent leads: a person can answer as well.
    fn show_requests(&mut self) {
        let Ok(all) = self.mailbox.requests() else {
            return;
        };
        for request in &all.requests {
            let open = request.state == RequestState::Pending && request.to == LEAD;
            if open && self.shown.insert(request.id.clone()) {
                self.ui.show(&SessionEvent::Request(request));
            }
        }
    }

    fn note(&self, text: &str) {
        self.ui.show(&SessionEvent::Note(text));
    }

    fn carry_out(&self, decision: Decision, agents: &Agents) -> Result<(), Failure> {
        match decision {
            Decision::Say(text) => self.say(&text, agents)?,
            Decision::AddTask(text) => self.add_task(&text, None)?,
            Decision::AddCommand(command) => self.add_task(&command, Some(&command))?,
            Decision::Write { to, text } => self.write_to(&to, &text, agents)?,
            Decision::Quit => self.control.want(Level::Stop, "you wanted to end"),
            Decision::ShowTasks => {
                let snapshot = self.workplace.board().snapshot()?;
                self.ui.show(&SessionEvent::Tasks(&snapshot));
            }
            Decision::ShowAgents => {
                let (mut all, _) = agents.list()?;
                all.retain(|listed| listed.alive);
                self.ui.show(&SessionEvent::Agents(&all));
            }
            Decision::Stop(name) => {
                let meta = agents.find(&name)?;
                agents.stop(&meta, LEAD, Some("the lead wants it".into()), None)?;
                self.note(&format!("stopped {name}"));
            }
            Decision::Answer {
                request,
                approve,
                why,
            } => self.answer(&request, approve, why)?,
        }
        Ok(())
    }

    fn say(&self, text: &str, agents: &Agents) -> Result<(), Failure> {
        match self.steer().say(text, agents)? {
            Said::Delivered => self.ui.show(&SessionEvent::Delivered { to: LEAD }),
            Said::Added(task) => self.show_added(&task),
        }
        Ok(())
    }

    fn add_task(&self, text: &str, command: Option<&str>) -> Result<(), Failure> {
        let task = self.steer().add_task(text, command)?;
        self.show_added(&task);
        Ok(())
    }

    fn steer(&self) -> Steer<'_> {
        Steer {
            workplace: &self.workplace,
            leads: self.leads,
            commands_only: self.commands_only,
        }
    }

    fn show_added(&self, task: &Task) {
        let subject = task.subject.as_str();
        self.ui.show(&SessionEvent::Added {
            task: task.id,
            subject,
        });
    }

    fn write_to(&self, name: &str, text: &str, agents: &Agents) -> Result<(), Failure> {
        write_to(name, text, agents)?;
        self.ui.show(&SessionEvent::Delivered { to: name });
        Ok(())
    }

    /// Answers the request whose id begins like this; an empty id means the only open one.
    fn answer(&self, id: &str, approve: bool, why: Option<String>) -> Result<(), Failure> {
        let id = actions::mail::open_request(id, Some(LEAD), &self.workplace)?;
        let answered = actions::mail::answer(&id, approve, why, &self.workplace)?;
        self.note(&format!(
            "{}: {}",
            match approve {
                true => "approved",
                false => "rejected",
            },
            mailbox::in_short(&answered.question)
        ));
        Ok(())
    }
}
