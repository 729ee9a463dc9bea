//! A look at an inbox that takes nothing out of it.

use store::name::Name;

use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::message::Message;

store::words! {
    /// How far a message has got.
    pub enum MessageState {
        /// Nobody has read it.
        Queued = "queued",
        /// Its reader has it.
        Delivered = "delivered",
        /// It is dealt with.
        Acknowledged = "acknowledged",
    }
}

/// What is in an inbox.
#[derive(Debug, Default)]
pub struct Listing {
    /// By number.
    pub messages: Vec<(Message, MessageState)>,
    /// Every message up to this one is acknowledged.
    pub acked: u64,
    /// How many damaged lines there are or were.
    pub rejected: usize,
}

impl Listing {
    /// Says of `messages` how far they have got; leaves out those that are done with, unless
    /// `all` are wanted.
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

/// The number after which an inbox is followed whose last message is `last`.
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
