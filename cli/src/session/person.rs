//! The person at the terminal: what it types, and the lead's mail if it leads.

use std::io::{BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};

use coordinator::engine::{Control, Level};
use coordinator::run::Agents;
use mailbox::{Consumer, Mailbox, Priority};
use store::Failure;
use store::name::Name;
use swarm::LEAD;
use taskboard::NewTask;

use super::Session;
use super::view::View;
use crate::context::Context;

/// How many messages are shown at once.
const BATCH: usize = 64;

const HELP: &str = "  TEXT           tell the lead; where you lead: put it on the board as a task
  @NAME TEXT     write to an agent
  /tasks         show the board
  /agents        show who is there
  /stop NAME     stop an agent; its task is free again
  /approve ID    approve a plan or a permission (the id's beginning is enough)
  /reject ID WHY the opposite
  /quit          ask everybody to stop, and end; the same command goes on later";

/// Somebody may be there.
pub(super) struct Person {
    lines: Option<Receiver<String>>,
    /// Nobody will type anything any more.
    gone: Arc<AtomicBool>,
    /// Reads the lead's mail where no agent does.
    mail: Option<Consumer>,
    mailbox: Mailbox,
    context: Context,
    control: Arc<Control>,
    view: Arc<View>,
    leads: bool,
}

impl Person {
    pub(super) fn start(
        session: &Session,
        control: Arc<Control>,
        view: Arc<View>,
    ) -> Result<Self, Failure> {
        let leads = session.record.lead.is_none();
        let mailbox = session.context.mailbox()?;
        let lead = Name::new("agent", LEAD)?;
        let mail = match leads {
            true => match mailbox.inbox(&lead)?.consumer() {
                Ok(mail) => Some(mail),
                Err(error) => {
                    view.note(&format!("the lead's mail is read elsewhere: {error}"));
                    None
                }
            },
            false => None,
        };
        let gone = Arc::new(AtomicBool::new(false));
        let lines = std::io::stdin()
            .is_terminal()
            .then(|| read_lines(Arc::clone(&gone)));
        let mut context = session.context.clone();
        context.act_as(lead);
        Ok(Self {
            lines,
            gone,
            mail,
            mailbox,
            context,
            control,
            view,
            leads,
        })
    }

    /// Whether the session goes on for its sake when nothing is left to do.
    pub(super) fn stays(&self) -> bool {
        self.lines.is_some() && !self.gone.load(Ordering::SeqCst)
    }

    /// Carries out what was typed, and shows what has come.
    pub(super) fn look(&mut self, agents: &Agents) {
        let lines: Vec<String> = match &self.lines {
            Some(lines) => lines.try_iter().collect(),
            None => Vec::new(),
        };
        for line in lines {
            if let Err(error) = self.typed(line.trim(), agents) {
                self.view.note(&error.in_a_line());
            }
        }
        if let Some(mail) = &mut self.mail {
            mail.bell().hush();
            let shown = mail.take(BATCH).map_err(Failure::from).and_then(|batch| {
                let seqs: Vec<u64> = batch.messages.iter().map(|message| message.seq).collect();
                for message in &batch.messages {
                    self.view.message(message);
                }
                mail.delivered(&seqs)?;
                mail.ack(&seqs)?;
                Ok(())
            });
            if let Err(error) = shown {
                self.view.note(&error.in_a_line());
            }
        }
    }

    fn typed(&mut self, line: &str, agents: &Agents) -> Result<(), Failure> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix('@') {
            let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
            return self.write_to(name, text.trim(), agents);
        }
        let Some(command) = line.strip_prefix('/') else {
            return self.say(line, agents);
        };
        let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
        let rest = rest.trim();
        match verb {
            "quit" | "exit" | "q" => self.control.want(Level::Stop, "you wanted to end"),
            "tasks" => self.view.tasks(&self.context)?,
            "agents" => self.view.agents(agents)?,
            "stop" => {
                let meta = agents.find(rest)?;
                agents.stop(&meta, LEAD, Some("the lead wants it".into()), None)?;
                self.view.note(&format!("stopped {rest}"));
            }
            "approve" => self.answer(rest, true)?,
            "reject" => self.answer(rest, false)?,
            _ => self.view.note(HELP),
        }
        Ok(())
    }

    fn say(&self, text: &str, agents: &Agents) -> Result<(), Failure> {
        if !self.leads {
            return self.write_to(LEAD, text, agents);
        }
        let task = NewTask {
            subject: text.to_owned(),
            ..NewTask::default()
        };
        let created = crate::actions::task::create(task, &self.context)?;
        self.view
            .note(&format!("task {} is on the board", created.id));
        Ok(())
    }

    fn write_to(&self, name: &str, text: &str, agents: &Agents) -> Result<(), Failure> {
        let from = Name::new("agent", "user")?;
        let meta = agents.find(name)?;
        let summary = text
            .lines()
            .next()
            .map(|line| line.chars().take(200).collect());
        agents.send(&meta, &from, text.to_owned(), summary, Priority::Next)?;
        Ok(())
    }

    /// Answers the request whose id begins like this; the only one if nothing is said.
    fn answer(&self, given: &str, approve: bool) -> Result<(), Failure> {
        let (id, why) = given.split_once(' ').unwrap_or((given, ""));
        let all = self.mailbox.requests()?;
        let open: Vec<_> = all
            .requests
            .iter()
            .filter(|request| request.state == mailbox::RequestState::Pending)
            .filter(|request| request.id.starts_with(id) || request.from.as_str() == id)
            .collect();
        let [request] = open.as_slice() else {
            let message = match open.len() {
                0 => format!("no open request {id:?}"),
                several => format!("{several} open requests begin with {id:?}"),
            };
            return Err(Failure::usage("no_request", message));
        };
        let feedback = (!why.trim().is_empty()).then(|| why.trim().to_owned());
        let lead = Name::new("agent", LEAD)?;
        self.mailbox.answer(&request.id, &lead, approve, feedback)?;
        Ok(())
    }
}

impl std::fmt::Debug for Person {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Person").finish_non_exhaustive()
    }
}

/// Reads what is typed, on a thread that ends with the process.
fn read_lines(gone: Arc<AtomicBool>) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else {
                break;
            };
            if sender.send(line).is_err() {
                break;
            }
        }
        gone.store(true, Ordering::SeqCst);
    });
    lines
}
