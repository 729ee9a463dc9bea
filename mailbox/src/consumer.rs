//! Reading an inbox: one process at a time, nothing lost, nothing acknowledged twice.
//!
//! The right to read ends with its holder: in files it is a lock that the kernel takes back, in a
//! database a lease. The inbox records a message before handing it over, so that the next reader
//! knows that it may not be the first to see it. A message that was not acknowledged is handed over
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use store::fifo::Bell;
use store::name::Name;

use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::message::Message;
use crate::source::Source;

/// Poll interval of a reader that no bell wakes.
const RESCAN: Duration = Duration::from_secs(1);

/// The one reader of an inbox.
#[derive(Debug)]
pub struct Consumer {
    /// The owner of the inbox.
    name: Name,
    /// The source of the messages, which keeps the cursor.
    source: Box<dyn Source>,
    cursor: Cursor,
    /// The messages in the inbox that are not acknowledged, with its length there.
    pending: BTreeMap<u64, (Message, u64)>,
    /// The sum of those lengths.
    pending_bytes: u64,
    /// The numbers of the messages that this reader has got.
    handed: BTreeSet<u64>,
    /// The highest number it has seen.
    last_seen: u64,
    rejected: usize,
}

/// Messages handed over.
#[derive(Debug, Default)]
pub struct Batch {
    /// By priority, oldest first.
    pub messages: Vec<Message>,
    /// Messages that expired before they were read; they are acknowledged.
    pub expired: Vec<Message>,
    /// Number of damaged lines set aside since the last batch.
    pub rejected: usize,
}

/// The effect of an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acked {
    /// Every message up to this one is acknowledged.
    pub acked: u64,
    /// The messages that were not acknowledged before.
    pub new: Vec<u64>,
    /// Those of them that no reader had got.
    pub unread: Vec<u64>,
}

impl Consumer {
    /// Begins to read what `source` has; `cursor` says how far the last reader got.
    pub(crate) fn begin(name: Name, source: Box<dyn Source>, cursor: Cursor) -> Result<Self> {
        let mut consumer = Self {
            name,
            source,
            cursor,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            handed: BTreeSet::new(),
            last_seen: 0,
            rejected: 0,
        };
        consumer.fetch()?;
        let last = consumer.last_seen;
        consumer.cursor.handed_over.forget_above(last);
        Ok(consumer)
    }

    /// Hands over the messages that this reader has not got yet: by priority, then oldest first, at
    /// most `limit` messages. Messages that an earlier reader did not acknowledge come again, with
    /// `redelivered`.
    pub fn take(&mut self, limit: usize) -> Result<Batch> {
        self.fetch()?;
        self.hand_over(limit, |_| true)
    }

    /// The bell that rings when mail comes, for a caller that waits for several events at once.
    pub fn bell(&self) -> &Bell {
        self.source.bell()
    }

    /// Hands over one message by its number, also if this reader was given it before.
    pub fn take_one(&mut self, seq: u64) -> Result<Batch> {
        self.fetch()?;
        self.check_exists(seq)?;
        self.handed.remove(&seq);
        self.hand_over(1, |message| message.seq == seq)
    }

    fn hand_over(&mut self, limit: usize, wanted: impl Fn(&Message) -> bool) -> Result<Batch> {
        let now = self.source.now_ms();
        let mut cursor = self.cursor.clone();
        let waiting = self
            .pending
            .values()
            .map(|(message, _)| message)
            .filter(|message| !self.handed.contains(&message.seq));
        let (expired, mut chosen): (Vec<&Message>, Vec<&Message>) =
            waiting.partition(|message| message.is_expired(now));
        chosen.retain(|message| wanted(message));
        chosen.sort_by_key(|message| (message.priority, message.seq));
        chosen.truncate(limit);
        let messages: Vec<Message> = chosen
            .into_iter()
            .map(|message| Message {
                redelivered: cursor.handed_over.contains(message.seq),
                ..message.clone()
            })
            .collect();
        let expired: Vec<Message> = expired.into_iter().cloned().collect();
        let rejected = std::mem::take(&mut self.rejected);
        if !messages.is_empty() || !expired.is_empty() {
            // A message must be on the disk before it is handed over: the cursor must not name a
            // number that a power cut gives to another message.
            self.source.sync()?;
            for message in &messages {
                cursor.handed_over.insert(message.seq);
            }
            cursor.expired += expired.len() as u64;
            let gone: Vec<u64> = expired.iter().map(|message| message.seq).collect();
            self.settle(cursor, &gone)?;
            self.handed.extend(messages.iter().map(|m| m.seq));
        }
        Ok(Batch {
            messages,
            expired,
            rejected,
        })
    }

    /// Records that these messages were passed on to their destination.
    pub fn delivered(&mut self, seqs: &[u64]) -> Result<()> {
        let mut cursor = self.cursor.clone();
        for seq in seqs.iter().filter(|seq| self.pending.contains_key(seq)) {
            cursor.delivered.insert(*seq);
        }
        if cursor != self.cursor {
            self.settle(cursor, &[])?;
        }
        Ok(())
    }

    /// Acknowledges exactly these messages.
    pub fn ack(&mut self, seqs: &[u64]) -> Result<Acked> {
        if seqs.iter().any(|seq| *seq > self.last_seen) {
            self.fetch()?;
        }
        for seq in seqs {
            self.check_exists(*seq)?;
        }
        let new: Vec<u64> = seqs
            .iter()
            .copied()
            .collect::<BTreeSet<u64>>()
            .into_iter()
            .filter(|seq| self.pending.contains_key(seq))
            .collect();
        let unread = new
            .iter()
            .copied()
            .filter(|seq| !self.cursor.handed_over.contains(*seq))
            .collect();
        if !new.is_empty() {
            self.source.sync()?;
            let mut cursor = self.cursor.clone();
            for seq in &new {
                cursor.acked_also.insert(*seq);
            }
            self.settle(cursor, &new)?;
            // They are acknowledged; a long log is only that.
            if let Err(error) = self
                .source
                .keep_short(self.cursor.acked, self.pending_bytes)
            {
                tracing::warn!(%error, "acknowledged messages stay in the log for now");
            }
        }
        Ok(Acked {
            acked: self.cursor.acked,
            new,
            unread,
        })
    }

    /// Acknowledges every message up to number `seq`.
    pub fn ack_up_to(&mut self, seq: u64) -> Result<Acked> {
        self.fetch()?;
        self.check_exists(seq)?;
        let seqs: Vec<u64> = self.pending.range(..=seq).map(|(seq, _)| *seq).collect();
        self.ack(&seqs)
    }

    /// Every message up to this one is acknowledged.
    pub fn acked(&self) -> u64 {
        self.cursor.acked
    }

    /// Waits until there is something to [take](Self::take), at most `limit`; says whether
    /// there is.
    pub fn wait(&mut self, limit: Duration) -> Result<bool> {
        let started = Instant::now();
        loop {
            self.fetch()?;
            if self.pending.keys().any(|seq| !self.handed.contains(seq)) {
                return Ok(true);
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            // A process that sends a message after `fetch` rings, and that ring is not lost.
            self.source.bell().wait(left.min(RESCAN));
        }
    }

    fn check_exists(&self, seq: u64) -> Result<()> {
        if seq == 0 || seq > self.last_seen.max(self.cursor.acked) {
            return Err(MailError::NoSuchMessage {
                inbox: self.name.to_string(),
                seq,
                last: self.last_seen.max(self.cursor.acked),
            });
        }
        Ok(())
    }

    /// Reads what was appended since the last time.
    fn fetch(&mut self) -> Result<()> {
        let fetched = self.source.fetch(self.last_seen)?;
        for (message, length) in fetched.messages {
            if !self.cursor.is_acked(message.seq) {
                self.pending_bytes += length;
                self.pending.insert(message.seq, (message, length));
            }
        }
        self.last_seen = self.last_seen.max(fetched.last);
        self.rejected += fetched.rejected;
        Ok(())
    }

    /// Writes the cursor down, with `gone` (ascending) acknowledged. Nothing changes if that
    /// fails.
    fn settle(&mut self, mut cursor: Cursor, gone: &[u64]) -> Result<()> {
        let stays = |seq: &&u64| gone.binary_search(seq).is_err();
        let first_left = self.pending.keys().find(stays);
        // Numbers that a damaged line took with it do not stop the mark.
        cursor.advance(match first_left {
            Some(seq) => seq - 1,
            None => self.last_seen,
        });
        for seq in gone {
            if *seq > cursor.acked {
                cursor.acked_also.insert(*seq);
            }
        }
        self.source.save(&cursor)?;
        self.cursor = cursor;
        for seq in gone {
            if let Some((_, length)) = self.pending.remove(seq) {
                self.pending_bytes -= length;
            }
            self.handed.remove(seq);
        }
        Ok(())
    }
}
