//! Options of a mailbox.

use std::sync::Arc;
use std::time::Duration;

use store::atomic::Durability;
use store::clock::{Clock, SystemClock};
use store::lock::DEFAULT_TIMEOUT;
use store::name::Name;
use store::secret_filter::SecretFilter;

use crate::error::{MailError, Result};

/// Options of a mailbox.
#[derive(Debug, Clone)]
pub struct MailOptions {
    /// Says if a message survives a power cut before its sending is acknowledged.
    pub durability: Durability,
    /// Maximum time to wait for an inbox's lock.
    pub lock_timeout: Duration,
    /// Maximum time to wait for another reader of the same inbox to end.
    pub reader_timeout: Duration,
    /// The source of the time.
    pub clock: Arc<dyn Clock>,
    /// Limits of an inbox.
    pub limits: Limits,
    /// The filter that takes secrets out of messages and requests before they are written.
    pub secret_filter: SecretFilter,
}

impl Default for MailOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            lock_timeout: DEFAULT_TIMEOUT,
            reader_timeout: Duration::from_secs(1),
            clock: Arc::new(SystemClock),
            limits: Limits::default(),
            secret_filter: SecretFilter::default(),
        }
    }
}

/// Limits of an inbox. A message that waits to be read is never dropped: a message over the limit
/// is refused.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Messages that wait to be acknowledged.
    pub unread: u64,
    /// Bytes of the log in which they wait.
    pub log_bytes: u64,
    /// From this size on, acknowledged messages move from the log to an archive.
    pub rotate_bytes: u64,
    /// Maximum number of archives; older ones are deleted.
    pub archives: usize,
    /// Maximum number of senders' ids remembered after their messages are gone.
    pub remembered_ids: usize,
    /// From this size on, broadcasts that every recipient has are dropped.
    pub broadcast_bytes: u64,
}

impl Limits {
    /// Refuses another message to `inbox`, if so much waits there already.
    pub(crate) fn check_room(&self, inbox: &Name, unread: u64, bytes: u64) -> Result<()> {
        if unread >= self.unread || bytes >= self.log_bytes {
            return Err(MailError::Full {
                inbox: inbox.to_string(),
                unread,
            });
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            unread: 100_000,
            log_bytes: 64 << 20,
            rotate_bytes: 1 << 20,
            archives: 8,
            remembered_ids: 1 << 16,
            broadcast_bytes: 1 << 20,
        }
    }
}
