//! What a reader needs of the place where an inbox is kept.

use std::fmt::Debug;

use store::fifo::Bell;

use crate::cursor::Cursor;
use crate::error::Result;
use crate::message::Message;

/// What was found since the last time.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    /// By number, with their lengths.
    pub(crate) messages: Vec<(Message, u64)>,
    /// The highest number there is.
    pub(crate) last: u64,
    /// How many damaged lines there were.
    pub(crate) rejected: usize,
}

/// Where a reader's messages come from, and where it notes how far it has got. Its holder has the
/// right to read.
pub(crate) trait Source: Debug + Send + Sync {
    /// The messages after number `after`, and the highest number there is.
    fn fetch(&mut self, after: u64) -> Result<Fetched>;

    /// Makes sure that what was fetched stays, before the cursor speaks of it.
    fn sync(&self) -> Result<()>;

    /// Writes the cursor down.
    fn save(&mut self, cursor: &Cursor) -> Result<()>;

    /// Archives what is acknowledged, or forgets the oldest of it, once it has become much.
    /// `waiting` bytes are not acknowledged.
    fn keep_short(&mut self, acked: u64, waiting: u64) -> Result<()>;

    /// The time by which messages expire.
    fn now_ms(&self) -> i64;

    /// What is rung when mail comes.
    fn bell(&self) -> &Bell;
}
