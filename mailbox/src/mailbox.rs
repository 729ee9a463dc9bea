//! Everything a team's mail needs to know in one place.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use store::StoreError;
use store::atomic::Durability;
use store::clock::{Clock, SystemClock};
use store::home::Home;
use store::lock::DEFAULT_TIMEOUT;
use store::name::Name;
use store::secret_filter::SecretFilter;

use crate::error::{MailError, Result};
use crate::inbox::{Inbox, Posted};
use crate::message::{Body, Draft};

/// How a mailbox behaves.
#[derive(Debug, Clone)]
pub struct MailOptions {
    /// Whether a message survives a power cut before its sending is acknowledged.
    pub durability: Durability,
    /// How long to wait for an inbox's lock.
    pub lock_timeout: Duration,
    /// How long to wait for another reader of the same inbox to go.
    pub reader_timeout: Duration,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// How much is kept.
    pub limits: Limits,
    /// What is taken out of messages and requests before they are written.
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

/// How much an inbox keeps. Nothing that waits to be read is ever dropped: what is over the
/// limit is refused.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Messages that wait to be acknowledged.
    pub unread: u64,
    /// Bytes of the log in which they wait.
    pub log_bytes: u64,
    /// From this size on, acknowledged messages move from the log to an archive.
    pub rotate_bytes: u64,
    /// How many archives are kept; older ones are deleted.
    pub archives: usize,
    /// How many ids that were given by senders are remembered after their messages are gone.
    pub remembered_ids: usize,
    /// From this size on, broadcasts that every recipient has are dropped.
    pub broadcast_bytes: u64,
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

/// The mail of one team.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use mailbox::{Draft, MailOptions, Mailbox};
/// use store::{home::Home, name::Name};
///
/// let dir = tempfile::tempdir()?;
/// let home = Home::new(dir.path().to_owned())?;
/// let mail = Mailbox::new(&home, &Name::new("team", "fixers")?, MailOptions::default());
/// let (ann, bob) = (Name::new("agent", "ann")?, Name::new("agent", "bob")?);
/// mail.send(&Draft::text(ann, bob.clone(), "Done."))?;
/// let mut reader = mail.inbox(&bob)?.consumer()?;
/// assert_eq!(reader.take(10)?.messages[0].text(), Some("Done."));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mailbox {
    pub(crate) dir: PathBuf,
    pub(crate) options: Arc<MailOptions>,
    inboxes: Mutex<HashMap<String, Arc<Inbox>>>,
}

impl Mailbox {
    /// The mail of `team` in `home`; directories are made when something is sent.
    pub fn new(home: &Home, team: &Name, options: MailOptions) -> Self {
        Self {
            dir: home.team(team),
            options: Arc::new(options),
            inboxes: Mutex::default(),
        }
    }

    /// The inbox of `agent`. Names that differ only in case are one inbox.
    pub fn inbox(&self, agent: &Name) -> Result<Arc<Inbox>> {
        let canonical = canonical(agent)?;
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inbox) = inboxes.get(&canonical) {
            return Ok(Arc::clone(inbox));
        }
        let dir = self.inboxes_dir().join(&canonical);
        let inbox = Arc::new(Inbox::new(
            agent.clone(),
            dir,
            &self.dir,
            Arc::clone(&self.options),
        ));
        inboxes.insert(canonical, Arc::clone(&inbox));
        Ok(inbox)
    }

    /// Sends a message to the one it is addressed to.
    ///
    /// Requests and their answers are sent with [`Self::ask`] and [`Self::answer`], which keep
    /// their state.
    pub fn send(&self, draft: &Draft) -> Result<Posted> {
        if let Body::Protocol(protocol) = &draft.body
            && protocol.is_request_or_answer()
        {
            return Err(MailError::invalid(
                format!("a {}", protocol.kind()),
                "requests are asked and answered, not sent",
            ));
        }
        self.inbox(&draft.to)?.post(draft)
    }

    pub(crate) fn inboxes_dir(&self) -> PathBuf {
        self.dir.join("inboxes")
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    /// The team's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// The name of an agent's inbox directory.
fn canonical(agent: &Name) -> Result<String> {
    let canonical = agent.as_str().to_ascii_lowercase();
    // Another tool keeps `<agent>.json` beside our directories.
    if canonical.ends_with(".json") {
        return Err(StoreError::BadName {
            what: "agent",
            given: agent.to_string(),
            why: "an agent with an inbox cannot have a name that ends in '.json'",
        }
        .into());
    }
    Ok(canonical)
}
