//! A reader's view of the place of an inbox.

use std::fmt::Debug;

use store::fifo::Bell;

use crate::cursor::Cursor;
use crate::error::Result;
use crate::message::Message;

/// New messages since the last call.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    /// By number, with their lengths.
    pub(crate) messages: Vec<(Message, u64)>,
    /// The highest number there is.
    pub(crate) last: u64,
    /// Number of damaged lines.
    pub(crate) rejected: usize,
}

/// The place a reader's messages come from, and that stores its position. Its holder has the right
/// to read.
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

    /// The bell that rings when mail comes.
    fn bell(&self) -> &Bell;
}
