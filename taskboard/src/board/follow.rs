//! Following the changes of a list, and reading it again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::{Feed, Poll};
use crate::board::Board;
use crate::error::BoardError;
use crate::history::Change;
use crate::snapshot::Snapshot;

/// A stream of numbered changes.
#[derive(Debug)]
pub struct Watch<'b>(Box<dyn Feed + 'b>);

/// Reads a board as often as it is asked to, and of it only what has changed. Takes no lock, makes no
/// list, writes nothing, and never waits.
#[derive(Debug)]
pub struct Glance {
    poll: Box<dyn Poll>,
    snapshot: Snapshot,
}

impl Board {
    /// Follows the list from change number `since` on, or from now on.
    pub fn watch(&self, since: Option<u64>) -> Result<Watch<'_>, BoardError> {
        self.backend.watch(since).map(Watch)
    }

    /// The number of the last change. Creates the list if need be. A caller that reads the tasks
    /// afterwards and watches from this number on misses nothing.
    pub fn last_change(&self) -> Result<u64, BoardError> {
        self.backend.last_change()
    }

    /// Opens a view that reads this list again and again.
    pub fn glance(&self) -> Glance {
        Glance {
            poll: self.backend.glance(),
            snapshot: Snapshot::made_of(Vec::new(), BTreeMap::new()),
        }
    }
}

impl Watch<'_> {
    /// The changes since the last call; empty if there are none.
    pub fn poll(&mut self) -> Result<Vec<Change>, BoardError> {
        self.0.poll()
    }

    /// Waits until something may have changed, at most `limit`.
    pub fn wait(&mut self, limit: Duration) {
        self.0.wait(limit);
    }

    /// The number of the last change returned.
    pub fn last(&self) -> u64 {
        self.0.last()
    }
}

impl Glance {
    /// Reads the changes; true if there are any. On files it costs one read of the directory's
    /// metadata most of the time, and one of every file's time of change once a second.
    pub fn look(&mut self, now_ms: i64) -> Result<bool, BoardError> {
        let changed = self.poll.look(now_ms)?;
        let differs = changed.is_some();
        if let Some(snapshot) = changed {
            self.snapshot = snapshot;
        }
        Ok(differs)
    }

    /// The tasks at the last read.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The changes of the list since the last call, as far as its history goes back.
    pub fn history(&mut self) -> Result<Vec<Change>, BoardError> {
        self.poll.history()
    }
}
