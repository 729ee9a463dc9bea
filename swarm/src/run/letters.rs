//! The mail of a running agent: what waits, what it was given, what it has taken in.

use std::collections::{HashMap, HashSet, VecDeque};

use store::fault::reached;
use uuid::Uuid;

use super::ports::{Letter, Mail, PortError};
use super::run_dir::RunDir;
use super::transcript::{self, Entry};
use crate::fault;

/// The letters of one life.
#[derive(Debug)]
pub(super) struct Letters {
    mail: Box<dyn Mail>,
    waiting: VecDeque<Letter>,
    /// Given to the agent, not confirmed; the text goes into the transcript then.
    given: HashMap<Uuid, (u64, String)>,
    /// What earlier lives have taken in, once somebody needed to know.
    known: Option<HashSet<Uuid>>,
}

impl Letters {
    pub(super) fn new(mail: Box<dyn Mail>) -> Self {
        Self {
            mail,
            waiting: VecDeque::new(),
            given: HashMap::new(),
            known: None,
        }
    }

    /// The mail itself.
    pub(super) fn mail(&self) -> &dyn Mail {
        &*self.mail
    }

    /// Fetches what has come. Returns what of it the host has to act on, at once.
    pub(super) fn fetch(&mut self, run: &RunDir) -> Result<Vec<Letter>, PortError> {
        let mut answers = Vec::new();
        for letter in self.mail.take()? {
            if letter.is_for_host() {
                self.mail.done(&[letter.seq])?;
                answers.push(letter);
                continue;
            }
            if letter.mode.is_some() {
                // The model is to know as well.
                answers.push(letter.clone());
            }
            if letter.redelivered && self.is_known(run, letter.id) {
                // The one who gave it to the agent died before it could say so.
                self.mail.done(&[letter.seq])?;
            } else if letter.now {
                self.waiting.push_front(letter);
            } else {
                self.waiting.push_back(letter);
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

    /// Whether something waits that interrupts the current step.
    pub(super) fn urgent(&self) -> bool {
        self.waiting.front().is_some_and(|letter| letter.now)
    }

    /// Whether something waits, or was given and is not confirmed.
    pub(super) fn pending(&self) -> bool {
        !self.waiting.is_empty() || !self.given.is_empty()
    }

    /// Whether something waits to be given to the agent.
    pub(super) fn waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next letter to be given to the agent.
    pub(super) fn give(&mut self) -> Option<Letter> {
        let letter = self.waiting.pop_front()?;
        reached(fault::RUN_HANDING);
        let given = (letter.seq, letter.text.clone());
        self.given.insert(letter.id, given);
        Some(letter)
    }

    /// The agent has taken in a letter; returns its text if it was not known yet.
    pub(super) fn taken_in(&mut self, id: Uuid) -> Option<(u64, String)> {
        self.given.remove(&id)
    }

    /// Tells the sender's side.
    pub(super) fn done(&mut self, seq: u64) -> Result<(), PortError> {
        self.mail.done(&[seq])
    }
}
