//! The part of a conversation that a copy shares with its original, and where the copy leaves it.

use std::path::Path;

use swarm::fork::ForkError;
use uuid::Uuid;

use super::super::journal::{Entry, Journal, JournalError};
use super::super::model::{Format, MARKED};
use super::Conversation;

/// The text in place of a result that was never stored.
const INTERRUPTED: &str = "[Interrupted: this call was under way when the agent's process ended. It \
                           may or may not have had its effect. Look before you do it again.]";
/// The same in a copy, for the calls of its original: one text for every call and every copy.
const ORIGINALS: &str = "[This call was made by the agent that you are a copy of, which continues \
                         with its result. You do not get the result.]";

/// The bytes that every request of a conversation begins with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prefix {
    pub system: String,
    /// The tools as the file has them.
    pub tools: Vec<serde_json::Value>,
    /// True if the request does not set an effort, because the model has none.
    pub plain: bool,
}

/// The point where a copy leaves its original. All copies that leave it here send the same bytes up
/// to their own messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parting {
    /// The number of the last messages that were marked in the original's last request.
    pub marked: usize,
    /// The number of unanswered texts that are the original's.
    pub texts: usize,
    /// True if the copy has its order.
    pub told: bool,
}

impl Conversation {
    /// A copy of the conversation known as `session`, up to its line `at`. The caller records the
    /// copy with [`Entry::Session`].
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

    /// Gives every open call a result, because the process that made the calls has ended.
    pub(crate) fn settle(&mut self) -> Result<(), JournalError> {
        let copied = self.parting.is_some_and(|parting| !parting.told);
        match copied {
            true => self.answer_all(ORIGINALS, false),
            false => self.answer_the_rest(INTERRUPTED),
        }
    }

    /// True if it is a copy of another one.
    pub(crate) fn is_fork(&self) -> bool {
        self.is_fork
    }

    /// True if it is a copy that the model has not answered yet.
    pub(crate) fn is_parting(&self) -> bool {
        self.parting.is_some()
    }

    /// The bytes that requests begin with, as the file says.
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
        // If the original waits for its model, its last message is in its last request.
        let sent =
            self.open_calls().is_empty() && !(self.texts.is_empty() && self.calls.is_empty());
        self.parting = Some(Parting {
            marked: if sent { MARKED - 1 } else { MARKED },
            texts: self.texts.len(),
            told: false,
        });
    }
}
