//! Following the changes of a list.

use std::collections::HashMap;
use std::time::Duration;

use store::watch::DirWatch;

use crate::board::Board;
use crate::changes::{Change, ChangeReader};
use crate::error::BoardError;

/// A stream of numbered changes.
#[derive(Debug)]
pub struct Watch<'b> {
    board: &'b Board,
    hints: DirWatch,
    reader: ChangeReader,
    /// Something may have happened that is not in the log.
    look: bool,
}

impl Board {
    /// Follows the list from change number `since` on, or from now on.
    pub fn watch(&self, since: Option<u64>) -> Result<Watch<'_>, BoardError> {
        // Creates the list if need be, and numbers what other tools did so far.
        let last = self.number_foreign_changes()?;
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
            look: true,
        })
    }

    /// The number of the last change. Creates the list if need be. Whoever looks at the tasks
    /// afterwards and watches from this number on misses nothing.
    pub fn last_change(&self) -> Result<u64, BoardError> {
        self.number_foreign_changes()
    }

    /// Looks at every file and gives numbers to what other tools did. Returns the last one.
    fn number_foreign_changes(&self) -> Result<u64, BoardError> {
        self.observe(|section| Ok(section.scan(&HashMap::new())?))?;
        self.observe(|section| Ok(section.live().seq()))
    }
}

impl Watch<'_> {
    /// The changes since the last call; empty if there are none.
    pub fn poll(&mut self) -> Result<Vec<Change>, BoardError> {
        let changes = self.reader.read()?;
        if !changes.is_empty() || !std::mem::take(&mut self.look) {
            return Ok(changes);
        }
        // Nothing of ours. Perhaps something of others', which nobody has noticed yet.
        self.board.number_foreign_changes()?;
        self.reader.read()
    }

    /// Waits until something may have changed, at most `limit`.
    pub fn wait(&mut self, limit: Duration) {
        self.look |= self.hints.wait(limit);
    }

    /// The number of the last change returned.
    pub fn last(&self) -> u64 {
        self.reader.last()
    }
}
