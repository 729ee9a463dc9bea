//! A view of an inbox that takes nothing out of it.

use store::name::Name;

use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::message::Message;

store::words! {
    /// The progress of a message.
    pub enum MessageState {
        /// No reader has the message yet.
        Queued = "queued",
        /// The reader has the message.
        Delivered = "delivered",
        /// It is dealt with.
        Acknowledged = "acknowledged",
    }
}

/// The content of an inbox.
#[derive(Debug, Default)]
pub struct Listing {
    /// The messages, by number.
    pub messages: Vec<(Message, MessageState)>,
    /// Every message up to this one is acknowledged.
    pub acked: u64,
    /// Number of damaged lines, past and present.
    pub rejected: usize,
}

impl Listing {
    /// Adds to `messages` their progress; leaves out finished ones, unless `all` are wanted.
    pub(crate) fn new(
        messages: impl IntoIterator<Item = Message>,
        cursor: &Cursor,
        rejected: usize,
        all: bool,
        now_ms: i64,
    ) -> Self {
        let state = |seq| {
            if cursor.is_acked(seq) {
                MessageState::Acknowledged
            } else if cursor.delivered.contains(seq) {
                MessageState::Delivered
            } else {
                MessageState::Queued
            }
        };
        let messages = messages
            .into_iter()
            .map(|message| (state(message.seq), message))
            .filter(|(state, message)| {
                all || (*state != MessageState::Acknowledged && !message.is_expired(now_ms))
            })
            .map(|(state, message)| (message, state))
            .collect();
        Self {
            messages,
            acked: cursor.acked,
            rejected,
        }
    }
}

/// The number after which a follower reads an inbox with the last message `last`.
pub(crate) fn check_since(since: Option<u64>, last: u64, inbox: &Name) -> Result<u64> {
    let since = since.unwrap_or(last);
    if since > last {
        return Err(MailError::NoSuchMessage {
            inbox: inbox.to_string(),
            seq: since,
            last,
        });
    }
    Ok(since)
}
