//! An inbox, wherever it is kept.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use store::name::Name;

use crate::backend::{Feed, Kept};
use crate::consumer::Consumer;
use crate::error::Result;
use crate::listing::Listing;
use crate::message::Message;

/// One agent's inbox.
#[derive(Debug)]
pub struct Inbox(pub(crate) Arc<dyn Kept>);

impl Inbox {
    /// The owner of the inbox.
    pub fn name(&self) -> &Name {
        self.0.name()
    }

    /// The inbox's directory. An inbox that is not kept in files has nothing there.
    pub fn dir(&self) -> &Path {
        self.0.dir()
    }

    /// True if anything was ever sent here, or an agent read it.
    ///
    /// If a database cannot be asked, the answer is yes: what is done next says why.
    pub fn exists(&self) -> bool {
        self.0.exists()
    }

    /// True if a process is reading it now.
    pub fn has_reader(&self) -> Result<bool> {
        self.0.has_reader()
    }

    /// Becomes the inbox's reader; refused while another process is.
    pub fn consumer(&self) -> Result<Consumer> {
        Arc::clone(&self.0).consumer()
    }

    /// The messages that wait; with `all` also acknowledged and expired ones, as far back as they
    /// are kept.
    pub fn list(&self, all: bool) -> Result<Listing> {
        self.0.list(all)
    }

    /// Follows what arrives from now on, or after message number `since`.
    pub fn follow(&self, since: Option<u64>) -> Result<Follow> {
        Arc::clone(&self.0).follow(since).map(Follow)
    }
}

/// A stream of messages as they arrive. Does not count as reading them.
#[derive(Debug)]
pub struct Follow(Box<dyn Feed>);

impl Follow {
    /// The messages since the last call.
    pub fn poll(&mut self) -> Result<Vec<Message>> {
        self.0.poll()
    }

    /// Waits until something may have arrived, at most `limit`.
    pub fn wait(&mut self, limit: Duration) {
        self.0.wait(limit);
    }

    /// The number of the last message returned.
    pub fn last(&self) -> u64 {
        self.0.last()
    }
}
