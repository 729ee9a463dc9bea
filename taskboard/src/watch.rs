//! Following the changes of a list.

use std::time::Duration;

use store::watch::DirWatch;

use crate::board::Board;
use crate::changes::{Change, ChangeReader, History};
use crate::error::BoardError;

/// A stream of numbered changes.
#[derive(Debug)]
pub struct Watch<'b> {
    board: &'b Board,
    hints: DirWatch,
    reader: ChangeReader,
}

impl Board {
    /// Follows the list from change number `since` on, or from now on.
    pub fn watch(&self, since: Option<u64>) -> Result<Watch<'_>, BoardError> {
        // Creates the list if need be, and numbers what other tools did so far.
        let last = self
            .transact(|_| Ok(()))
            .and_then(|()| Ok(History::load(self.history_paths())?.seq()))?;
        let since = since.unwrap_or(last);
        if since > last {
            let why = format!("the last change of this list is {last}; was its history deleted?");
            return Err(BoardError::invalid(format!("--since {since}"), why));
        }
        let reader = ChangeReader::new(self.history_paths(), since);
        Ok(Watch {
            board: self,
            hints: DirWatch::new(&self.dir),
            reader,
        })
    }
}

impl Watch<'_> {
    /// The changes since the last call; empty if there are none.
    pub fn poll(&mut self) -> Result<Vec<Change>, BoardError> {
        self.number_foreign_changes()?;
        self.reader.read()
    }

    /// Waits until something may have changed, at most `limit`.
    pub fn wait(&self, limit: Duration) {
        self.hints.wait(limit);
    }

    /// The number of the last change returned.
    pub fn last(&self) -> u64 {
        self.reader.last()
    }

    /// Gives numbers to what other tools did. Takes the lock only when there is something.
    fn number_foreign_changes(&self) -> Result<(), BoardError> {
        let snapshot = self.board.snapshot()?;
        let history = History::load(self.board.history_paths())?;
        if history
            .unlogged(&snapshot, &std::collections::HashMap::new())
            .is_empty()
        {
            return Ok(());
        }
        // Usually one of our own processes between its rename and its log line: under the
        // lock there is nothing left to do.
        self.board.transact(|_| Ok(()))
    }
}
