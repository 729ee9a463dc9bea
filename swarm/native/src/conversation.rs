//! The conversation, in the bytes in which it is sent.

mod parting;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use bytes::Bytes;
use uuid::Uuid;

use parting::Parting;
pub(super) use parting::Prefix;

use super::journal::{Entry, Journal, JournalError};
use super::model::{Answer, Block, Encoded, Format, MARKED, Message, Role};

/// The text in place of a result that was dropped.
const DROPPED: &str = "[This result was dropped to make room. Make the call again if you need it.]";
/// The length up to which the first message is always kept.
const TASK: usize = 16 * 1024;

/// A call that the model has made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OpenCall {
    pub id: String,
    pub name: String,
}

/// A conversation. Its finished part is kept as the bytes that are sent, and nothing else; messages
/// that the model has not answered yet are kept apart.
#[derive(Debug)]
pub(super) struct Conversation {
    format: Format,
    journal: Journal,
    messages: Vec<Encoded>,
    /// The calls of the model's last message, in order.
    calls: Vec<OpenCall>,
    /// Their results so far.
    results: HashMap<String, (String, bool)>,
    /// Further texts for the model.
    texts: Vec<String>,
    /// Messages that are in here already.
    taken: HashSet<Uuid>,
    /// The beginning of the first message: the task.
    task: String,
    /// The bytes that requests begin with, as the file says.
    prefix: Option<Prefix>,
    /// True if it is a copy.
    is_fork: bool,
    /// The point where a copy leaves its original; `None` after the model has answered it.
    parting: Option<Parting>,
}

impl Conversation {
    /// A new one, whose file is in `dir`.
    pub(super) fn create(dir: &Path, format: Format) -> Result<Self, JournalError> {
        Ok(Self::with(Journal::create(dir)?, format))
    }

    /// The one that is known as `session`.
    pub(super) fn open(session: &str, dir: &Path, format: Format) -> Result<Self, JournalError> {
        let (journal, entries) = Journal::open(session, dir)?;
        let mut conversation = Self::with(journal, format);
        conversation.replay(entries);
        Ok(conversation)
    }

    /// A conversation of these entries that is not stored.
    pub(super) fn of_entries(entries: Vec<Entry>, format: Format) -> Self {
        let mut conversation = Self::with(Journal::nowhere(), format);
        conversation.replay(entries);
        conversation
    }

    fn with(journal: Journal, format: Format) -> Self {
        Self {
            format,
            journal,
            messages: Vec::new(),
            calls: Vec::new(),
            results: HashMap::new(),
            texts: Vec::new(),
            taken: HashSet::new(),
            task: String::new(),
            prefix: None,
            is_fork: false,
            parting: None,
        }
    }

    fn replay(&mut self, entries: Vec<Entry>) {
        let mut dropped = HashSet::new();
        for entry in &entries {
            if let Entry::Dropped { results } = entry {
                dropped.extend(results.iter().cloned());
            }
        }
        for mut entry in entries {
            if let Entry::ToolResult { id, text, .. } = &mut entry
                && dropped.contains(id)
            {
                DROPPED.clone_into(text);
            }
            self.apply(entry);
        }
    }

    /// By what it is found again.
    pub(super) fn session(&self) -> String {
        self.journal.session()
    }

    /// The beginning of what it was asked first.
    pub(super) fn task(&self) -> &str {
        &self.task
    }

    /// True if nothing was said yet.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.texts.is_empty()
    }

    /// True if this message is in here already.
    pub(super) fn has_taken(&self, message: &Uuid) -> bool {
        self.taken.contains(message)
    }

    /// Writes down what happened, then counts it in.
    pub(super) fn happened(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.journal.append(&entry)?;
        self.apply(entry);
        Ok(())
    }

    /// Adds a text for the model.
    pub(super) fn say(&mut self, text: &str, message: Option<Uuid>) -> Result<(), JournalError> {
        self.happened(Entry::User {
            text: text.to_owned(),
            message,
        })
    }

    /// The model has answered.
    pub(super) fn answered(&mut self, answer: &Answer) -> Result<(), JournalError> {
        self.happened(Entry::Assistant {
            content: answer.blocks.clone(),
            stop: answer.stop.as_str().to_owned(),
            usage: answer.tokens,
        })
    }

    /// A call has its result.
    pub(super) fn result(
        &mut self,
        id: &str,
        text: String,
        is_error: bool,
    ) -> Result<(), JournalError> {
        self.happened(Entry::ToolResult {
            id: id.to_owned(),
            text,
            is_error,
        })
    }

    /// Gives every call that has none this result.
    pub(super) fn answer_the_rest(&mut self, text: &str) -> Result<(), JournalError> {
        self.answer_all(text, true)
    }

    fn answer_all(&mut self, text: &str, is_error: bool) -> Result<(), JournalError> {
        for id in self.open_calls() {
            self.result(&id, text.to_owned(), is_error)?;
        }
        Ok(())
    }

    /// The calls without a result.
    fn open_calls(&self) -> Vec<String> {
        let open = self.calls.iter().map(|call| call.id.clone());
        open.filter(|id| !self.results.contains_key(id)).collect()
    }

    /// Replaces the oldest half of the long results by a note; false if there is none.
    pub(super) fn drop_results(&mut self) -> Result<bool, JournalError> {
        const LONG: usize = 400;
        let entries = self.journal.entries()?;
        let begins = |entry: &Entry| matches!(entry, Entry::Compaction { .. });
        let from = entries.iter().rposition(begins).unwrap_or(0);
        let dropped = entries.iter().filter_map(|entry| match entry {
            Entry::Dropped { results } => Some(results.clone()),
            _ => None,
        });
        let dropped: HashSet<String> = dropped.flatten().collect();
        let long = entries[from..].iter().filter_map(|entry| match entry {
            Entry::ToolResult { id, text, .. } if text.len() > LONG && !dropped.contains(id) => {
                Some(id.clone())
            }
            _ => None,
        });
        let long: Vec<String> = long.collect();
        if long.is_empty() {
            return Ok(false);
        }
        let half = long.len().div_ceil(2);
        self.journal.append(&Entry::Dropped {
            results: long[..half].to_vec(),
        })?;
        let entries = self.journal.entries()?;
        self.messages.clear();
        self.calls.clear();
        self.results.clear();
        self.texts.clear();
        self.parting = None;
        self.replay(entries);
        Ok(true)
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::User { text, message } => {
                let first = self.task.is_empty() && self.is_empty();
                // The task of a copy is its own order, not its original's.
                let parting = self.parting.as_mut().filter(|parting| !parting.told);
                let order = parting.map(|parting| parting.told = true).is_some();
                if first || order {
                    self.task = text[..text.floor_char_boundary(TASK)].to_owned();
                }
                self.taken.extend(message);
                self.texts.push(text);
            }
            Entry::ToolResult { id, text, is_error } => {
                self.results.insert(id, (text, is_error));
            }
            Entry::Assistant { content, .. } => {
                self.messages.extend(self.unanswered());
                self.results.clear();
                self.texts.clear();
                self.parting = None;
                self.calls = calls(&content);
                let role = Role::Assistant;
                let blocks = content;
                self.messages
                    .push(self.format.encode(&Message { role, blocks }));
            }
            Entry::Compaction { text, .. } => {
                self.messages.clear();
                self.calls.clear();
                self.results.clear();
                self.parting = None;
                self.texts = vec![text];
            }
            Entry::Prefix {
                system,
                tools,
                plain,
            } => {
                self.prefix = Some(Prefix {
                    system,
                    tools,
                    plain,
                });
            }
            Entry::Session { fork_of, .. } if fork_of.is_some() => self.part(),
            Entry::Session { .. } | Entry::Dropped { .. } | Entry::Turn { .. } | Entry::Unknown => {
            }
        }
    }

    /// The messages to the model that have no answer: results in the order of the calls, then the
    /// rest.
    fn unanswered(&self) -> Option<Encoded> {
        let message = self.unanswered_and(None)?;
        Some(self.format.encode(&message))
    }

    fn unanswered_and(&self, more: Option<&str>) -> Option<Message> {
        let results = self.calls.iter().filter_map(|call| {
            let (text, is_error) = self.results.get(&call.id)?;
            Some(Block::ToolResult {
                id: call.id.clone(),
                text: text.clone(),
                is_error: *is_error,
            })
        });
        let texts = self.texts.iter().map(String::as_str).chain(more);
        let blocks: Vec<Block> = results.chain(texts.map(Block::text)).collect();
        let role = Role::User;
        (!blocks.is_empty()).then_some(Message { role, blocks })
    }

    /// A request for the next answer; `more` is part of this request only.
    ///
    /// The first request of a copy is that of its original, marks included, followed by the copy's
    /// own message; the newest mark is before that message, so that the next copy reads everything
    /// up to there.
    pub(super) fn request(&self, head: &[u8], more: Option<&str>) -> Bytes {
        let newest = self.unanswered_and(more);
        let (newest, marked) = match (&newest, &self.parting) {
            (Some(message), Some(parting)) => {
                let shared = self.calls.len() + parting.texts;
                let newest = self.format.encode_shared(message, shared);
                (Some(newest), parting.marked + 1)
            }
            (Some(message), None) => (Some(self.format.encode(message)), MARKED),
            (None, _) => (None, MARKED),
        };
        let all = self.messages.iter().chain(newest.as_ref());
        Bytes::from(self.format.body(head, all, marked))
    }

    /// The bytes of its messages, without those that have no answer yet.
    pub(super) fn answered_bytes(&self) -> usize {
        self.messages.iter().map(Encoded::len).sum()
    }

    /// Approximate bytes of memory it takes.
    pub(super) fn kept_bytes(&self) -> u64 {
        let results = self.results.values().map(|(text, _)| text.len());
        let texts = self.texts.iter().map(String::len);
        let open: usize = results.chain(texts).sum();
        u64::try_from(self.answered_bytes() + open).unwrap_or(u64::MAX)
    }

    /// The bytes of the messages to the model that have no answer.
    pub(super) fn unanswered_bytes(&self) -> usize {
        self.unanswered().map_or(0, |encoded| encoded.len())
    }
}

fn calls(content: &[Block]) -> Vec<OpenCall> {
    let calls = content.iter().filter_map(|block| match block {
        Block::ToolUse { id, name, .. } => Some(OpenCall {
            id: id.clone(),
            name: name.clone(),
        }),
        _ => None,
    });
    calls.collect()
}
