//! Mail that is delivered with the answers.
//!
//! The messages in the caller's inbox follow the result of its next call, and are acknowledged when
//! that result is written out. If the client vanishes before, the next reader gets them again,
//! marked. A result carries no more than the client shows its model; the rest comes with the next
//! ones. Nothing here fails a call: a client without its mail still works.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mailbox::{Consumer, Follow, Inbox, MailError, Mailbox, MessageState, render_parts};
use project::workplace::Workplace;
use serde_json::{Value, json};
use store::Failure;
use store::fifo::Bell;
use store::name::Name;

use super::audience::Audience;
use super::membership::Membership;

/// Maximum time that a result waits for its mail.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The caller's inbox.
#[derive(Debug)]
pub(crate) struct Post {
    member: Arc<Membership>,
    state: Mutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    reader: Option<Reader>,
    /// True if the caller was told that another process reads its mail.
    told: bool,
}

#[derive(Debug)]
struct Reader {
    team: Name,
    consumer: Consumer,
    /// Messages read from the inbox that are not delivered yet.
    waiting: VecDeque<Part>,
}

/// A message, or one part of a long one.
#[derive(Debug)]
struct Part {
    text: String,
    /// The number of the message, if this is its last part.
    ends: Option<u64>,
}

/// The mail that goes with one result.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    pub(crate) texts: Vec<String>,
    /// The messages in it, to acknowledge after the write.
    seqs: Vec<u64>,
}

impl Post {
    pub(crate) fn new(member: Arc<Membership>) -> Self {
        Self {
            member,
            state: Mutex::default(),
        }
    }

    /// The waiting mail, as much as there is room for beside so many characters.
    pub(crate) fn collect(&self, audience: &Audience, words: usize) -> Parcel {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.collect(&self.member, audience, words) {
            Ok(parcel) => parcel,
            Err(error) => {
                tracing::warn!(error = error.message(), "mail stays where it is");
                Parcel::default()
            }
        }
    }

    /// The parcel is written out.
    pub(crate) fn delivered(&self, parcel: &Parcel) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reader) = state.reader.as_mut().filter(|_| !parcel.seqs.is_empty()) else {
            return;
        };
        let consumer = &mut reader.consumer;
        let done = consumer
            .delivered(&parcel.seqs)
            .and_then(|()| consumer.ack(&parcel.seqs));
        if let Err(error) = done {
            tracing::warn!(%error, "delivered, but not acknowledged: it comes again");
        }
    }

    /// Releases the inbox for the next reader.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reader = None;
    }

    /// Becomes the inbox's reader as soon as there is something to read, so that others see that
    /// the client runs.
    pub(crate) fn open(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.attend(&self.member) {
            tracing::debug!(error = error.message(), "not reading mail yet");
        }
    }
}

impl Reading {
    fn collect(
        &mut self,
        member: &Membership,
        audience: &Audience,
        words: usize,
    ) -> Result<Parcel, Failure> {
        let context = member.context();
        match self.attend(member) {
            Ok(()) => {}
            Err(error) => {
                let Some(MailError::BeingRead { inbox, holder }) = error.of() else {
                    return Err(error);
                };
                // In a run the host is the reader, and passes everything on.
                if context.run().is_some() || std::mem::replace(&mut self.told, true) {
                    return Ok(Parcel::default());
                }
                let note = format!(
                    "Note: the mail of {inbox} goes to another client ({holder}). Everything else \
                     works here as usual."
                );
                return Ok(Parcel {
                    texts: vec![note],
                    ..Parcel::default()
                });
            }
        }
        let Some(reader) = &mut self.reader else {
            return Ok(Parcel::default());
        };
        self.told = false;
        let roster = context.team_named(reader.team.clone()).roster().ok();
        let color = |name: &str| roster.as_ref()?.member(name)?.color.clone();
        let mut parcel = Parcel::default();
        let mut room = audience.room_beside(words);
        loop {
            if reader.waiting.is_empty() {
                let batch = reader.consumer.take(1)?;
                let Some(message) = batch.messages.first() else {
                    break;
                };
                let color = color(&message.from);
                let parts = render_parts(message, color.as_deref(), audience.room_for_mail());
                let last = parts.len() - 1;
                let part = |(n, text)| Part {
                    text,
                    ends: (n == last).then_some(message.seq),
                };
                reader
                    .waiting
                    .extend(parts.into_iter().enumerate().map(part));
            }
            let length = |part: &Part| part.text.chars().count();
            let fits = reader
                .waiting
                .front()
                .is_some_and(|part| length(part) <= room);
            let Some(part) = reader
                .waiting
                .pop_front_if(|_| fits || parcel.texts.is_empty())
            else {
                break;
            };
            room = room.saturating_sub(length(&part));
            parcel.seqs.extend(part.ends);
            parcel.texts.push(part.text);
        }
        Ok(parcel)
    }

    /// Opens the inbox of the caller's team for reading, if the caller has one there.
    fn attend(&mut self, member: &Membership) -> Result<(), Failure> {
        let context = member.context();
        let team = context.team()?;
        if self
            .reader
            .as_ref()
            .is_some_and(|reader| reader.team == team)
        {
            return Ok(());
        }
        self.reader = None;
        let mailbox = mailbox(&context, &team)?;
        // This sends notices that may be missing, which can create the inbox.
        mailbox.requests()?;
        let inbox = mailbox.inbox(context.agent_name())?;
        inbox.list(false)?;
        // A mistyped name must not create an inbox.
        if inbox.exists() || is_member(&context, &team) {
            let consumer = inbox.consumer()?;
            self.reader = Some(Reader {
                team,
                consumer,
                waiting: VecDeque::new(),
            });
        }
        Ok(())
    }
}

/// The team's mail, for a caller that does not wait.
fn mailbox(context: &Workplace, team: &Name) -> Result<Mailbox, Failure> {
    let mut options = context.mail_options();
    options.lock_timeout = options.lock_timeout.min(LOCK_TIMEOUT);
    options.reader_timeout = Duration::ZERO;
    context.mailbox_of(team, options)
}

fn is_member(context: &Workplace, team: &Name) -> bool {
    let roster = context.team_named(team.clone()).roster();
    roster.is_ok_and(|roster| roster.member(context.agent()).is_some())
}

/// Notices sent messages, wherever the mail is kept.
#[derive(Debug)]
enum Ear {
    File(Bell),
    Database(Follow),
}

impl Ear {
    fn new(inbox: &Inbox, context: &Workplace) -> Result<Self, Failure> {
        Ok(match context.is_in_database() {
            true => Self::Database(inbox.follow(None)?),
            false => Self::File(Bell::new(&inbox.dir().join("wake"))?),
        })
    }

    fn wait(&mut self, limit: Duration) {
        match self {
            Self::File(bell) => {
                bell.wait(limit);
            }
            Self::Database(follow) => follow.wait(limit),
        }
    }
}

/// Notices mail between calls.
#[derive(Debug)]
pub(crate) struct Lookout {
    member: Arc<Membership>,
    ear: Option<(Name, Ear)>,
    /// The number of the last announced message.
    last: u64,
}

impl Lookout {
    pub(crate) fn new(member: Arc<Membership>) -> Self {
        Self {
            member,
            ear: None,
            last: 0,
        }
    }

    /// Waits at most `limit` for mail; returns for each new message its sender and a summary. The
    /// text itself comes with the next result.
    pub(crate) fn wait(&mut self, limit: Duration) -> Vec<Value> {
        let news = self.look(limit);
        news.unwrap_or_else(|error| {
            tracing::debug!(error = error.message(), "cannot look for mail");
            Vec::new()
        })
    }

    fn look(&mut self, limit: Duration) -> Result<Vec<Value>, Failure> {
        let context = self.member.context();
        if context.run().is_some() {
            // The host listens, and passes everything on; only one listener gets a ring.
            std::thread::park_timeout(limit);
            return Ok(Vec::new());
        }
        let team = context.team()?;
        let inbox = mailbox(&context, &team)?.inbox(context.agent_name())?;
        if self.ear.as_ref().is_none_or(|(other, _)| *other != team) {
            self.ear = None;
            if inbox.exists() {
                self.ear = Some((team, Ear::new(&inbox, &context)?));
                self.last = 0;
            }
        }
        match &mut self.ear {
            Some((_, ear)) => ear.wait(limit),
            None => {
                std::thread::park_timeout(limit);
                return Ok(Vec::new());
            }
        }
        let waiting = inbox.list(false)?;
        let new = waiting
            .messages
            .into_iter()
            .filter(|(message, state)| *state == MessageState::Queued && message.seq > self.last);
        let new: Vec<_> = new.map(|(message, _)| message).collect();
        if let Some(last) = new.iter().map(|message| message.seq).max() {
            self.last = last;
        }
        let announce = |message: &mailbox::Message| {
            json!({
                "event": "mail",
                "id": message.id.to_string(),
                "from": message.from,
                "kind": message.body.kind(),
                "priority": message.priority.as_str(),
                "summary": message.summary,
            })
        };
        Ok(new.iter().map(announce).collect())
    }
}
