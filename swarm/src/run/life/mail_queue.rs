//! The mail of a running agent: what waits, what it was given, what it has taken in.

use std::collections::{HashMap, HashSet, VecDeque};

use store::fault::reached;
use uuid::Uuid;

use crate::fault;
use crate::run::run_dir::RunDir;
use crate::run::services::{Mail, MailMessage, ServiceError};
use crate::run::transcript::{self, Entry};

/// The mail of one life.
#[derive(Debug)]
pub(crate) struct MailQueue {
    mail: Box<dyn Mail>,
    waiting: VecDeque<MailMessage>,
    /// Given to the agent, not confirmed; the text goes into the transcript then.
    given: HashMap<Uuid, (u64, String)>,
    /// Messages that earlier lives have taken in; `None` until they are needed.
    known: Option<HashSet<Uuid>>,
}

impl MailQueue {
    pub(crate) fn new(mail: Box<dyn Mail>) -> Self {
        Self {
            mail,
            waiting: VecDeque::new(),
            given: HashMap::new(),
            known: None,
        }
    }

    /// The mail itself.
    pub(crate) fn mail(&self) -> &dyn Mail {
        &*self.mail
    }

    /// Fetches what has come. Returns what of it the host has to act on, at once.
    pub(crate) fn fetch(&mut self, run: &RunDir) -> Result<Vec<MailMessage>, ServiceError> {
        let mut answers = Vec::new();
        for message in self.mail.take()? {
            if message.is_for_host() {
                self.mail.done(&[message.seq])?;
                answers.push(message);
                continue;
            }
            if message.mode.is_some() {
                // The model is to know as well.
                answers.push(message.clone());
            }
            if message.redelivered && self.is_known(run, message.id) {
                // The one who gave it to the agent died before it could say so.
                self.mail.done(&[message.seq])?;
            } else if message.now {
                self.waiting.push_front(message);
            } else {
                self.waiting.push_back(message);
            }
        }
        Ok(answers)
    }

    fn is_known(&mut self, run: &RunDir, id: Uuid) -> bool {
        let known = self.known.get_or_insert_with(|| {
            let records = transcript::read_from(run, 0).map_or_else(|_| Vec::new(), |read| read.0);
            let ids = records.into_iter().filter_map(|record| match record.entry {
                Entry::Message { id, .. } => Some(id),
                _ => None,
            });
            ids.collect()
        });
        known.contains(&id)
    }

    /// True if something waits that interrupts the current step.
    pub(crate) fn urgent(&self) -> bool {
        self.waiting.front().is_some_and(|message| message.now)
    }

    /// True if something waits, or was given and is not confirmed.
    pub(crate) fn pending(&self) -> bool {
        !self.waiting.is_empty() || !self.given.is_empty()
    }

    /// True if something waits to be given to the agent.
    pub(crate) fn waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next message to be given to the agent.
    pub(crate) fn give(&mut self) -> Option<MailMessage> {
        let message = self.waiting.pop_front()?;
        reached(fault::RUN_HANDING);
        let given = (message.seq, message.text.clone());
        self.given.insert(message.id, given);
        Some(message)
    }

    /// The agent has taken in a message; returns its text if it was not known yet.
    pub(crate) fn taken_in(&mut self, id: Uuid) -> Option<(u64, String)> {
        self.given.remove(&id)
    }

    /// Tells the sender's side.
    pub(crate) fn done(&mut self, seq: u64) -> Result<(), ServiceError> {
        self.mail.done(&[seq])
    }
}
