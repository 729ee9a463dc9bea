//! What a copy shares with its original, and where it leaves it.

use std::path::Path;

use swarm::fork::ForkError;
use uuid::Uuid;

use super::super::journal::{Entry, Journal, JournalError};
use super::super::model::{Format, MARKED};
use super::Conversation;

/// What stands for a result that nobody has seen.
const INTERRUPTED: &str = "[Interrupted: this call was under way when the agent's process ended. It \
                           may or may not have had its effect. Look before you do it again.]";
/// The same in a copy, for the calls of its original: one text for every call and every copy.
const ORIGINALS: &str = "[This call was made by the agent that you are a copy of, which continues \
                         with its result. You do not get the result.]";

/// What every request of a conversation begins with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prefix {
    pub system: String,
    /// As the file has them.
    pub tools: Vec<serde_json::Value>,
    /// Without asking the model to think harder, because it cannot.
    pub plain: bool,
}

/// Where a copy leaves its original. All copies that leave it here send the same bytes up to what
/// each of them is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parting {
    /// So many of the last messages were marked in the original's last request.
    pub marked: usize,
    /// So many texts that have no answer yet are the original's.
    pub texts: usize,
    /// The copy has been told what to do.
    pub told: bool,
}

impl Conversation {
    /// A copy of the one that is known as `session`, up to its line `at`. Who copies says so with
    /// [`Entry::Session`].
    pub(crate) fn fork(
        session: &str,
        at: Option<Uuid>,
        dir: &Path,
        format: Format,
    ) -> Result<Self, JournalError> {
        let (journal, entries) = Journal::copy(session, at, dir)?;
        if entries.iter().any(Entry::is_of_fork) {
            return Err(ForkError::ForkOfFork.into());
        }
        let mut conversation = Self::with(journal, format);
        conversation.replay(entries);
        Ok(conversation)
    }

    /// Gives every call a result, because nobody is there any more who would.
    pub(crate) fn settle(&mut self) -> Result<(), JournalError> {
        let copied = self.parting.is_some_and(|parting| !parting.told);
        match copied {
            true => self.answer_all(ORIGINALS, false),
            false => self.answer_the_rest(INTERRUPTED),
        }
    }

    /// Whether it is a copy of another one.
    pub(crate) fn is_fork(&self) -> bool {
        self.is_fork
    }

    /// Whether it is a copy that the model has not answered yet.
    pub(crate) fn is_parting(&self) -> bool {
        self.parting.is_some()
    }

    /// What requests begin with, as the file says.
    pub(crate) fn prefix(&self) -> Option<&Prefix> {
        self.prefix.as_ref()
    }

    /// Writes down what requests begin with, if the file does not say so.
    pub(crate) fn begins_with(&mut self, prefix: Prefix) -> Result<(), JournalError> {
        if self.prefix.as_ref() == Some(&prefix) {
            return Ok(());
        }
        let Prefix {
            system,
            tools,
            plain,
        } = prefix;
        self.happened(Entry::Prefix {
            system,
            tools,
            plain,
        })
    }

    /// From now on requests do not ask the model to think harder.
    pub(crate) fn is_plain(&mut self) -> Result<(), JournalError> {
        match self.prefix.clone() {
            Some(prefix) => self.begins_with(Prefix {
                plain: true,
                ..prefix
            }),
            None => Ok(()),
        }
    }

    /// From here on this is another conversation than its original.
    pub(super) fn part(&mut self) {
        self.is_fork = true;
        // Where the original waits for its model, what was said last is in its last request.
        let sent =
            self.open_calls().is_empty() && !(self.texts.is_empty() && self.calls.is_empty());
        self.parting = Some(Parting {
            marked: if sent { MARKED - 1 } else { MARKED },
            texts: self.texts.len(),
            told: false,
        });
    }
}
