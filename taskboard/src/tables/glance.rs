//! A list in a database that a view reads again and again.

use std::collections::BTreeMap;

use crate::backend::{Backend, Poll};
use crate::error::BoardError;
use crate::format;
use crate::history::Change;
use crate::id::TaskId;
use crate::snapshot::{Entry, Snapshot};

use super::Tables;

/// The database is asked no more often than this, in ms.
const EVERY: i64 = 200;

/// The state of a list at the last read, kept up to date from its history.
#[derive(Debug)]
pub(super) struct Seen {
    tables: Tables,
    known: BTreeMap<TaskId, Entry>,
    /// The last change that was read; `None` before the first read.
    last: Option<u64>,
    asked: Option<i64>,
    /// Changes that were taken in, for the caller that asks what was done.
    history: Vec<Change>,
}

impl Seen {
    pub(super) fn new(tables: Tables) -> Self {
        Self {
            tables,
            known: BTreeMap::new(),
            last: None,
            asked: None,
            history: Vec::new(),
        }
    }

    fn begin(&mut self) -> Result<bool, BoardError> {
        // The number first: what happens in between is then seen twice, and not missed.
        let last = self.tables.last_change()?;
        let snapshot = self.tables.snapshot()?;
        for task in snapshot.tasks() {
            self.known.insert(task.id, Entry::of(task.clone()));
        }
        self.last = Some(last);
        // As far as the history goes back.
        let mut since = self.tables.first()?.saturating_sub(1);
        while since < last {
            let changes = self.tables.changes_since(since)?;
            let Some(newest) = changes.last().map(|change| change.seq) else {
                break;
            };
            since = newest;
            self.history
                .extend(changes.into_iter().filter(|it| it.seq <= last));
        }
        Ok(!self.known.is_empty())
    }

    fn follow(&mut self, mut last: u64) -> Result<bool, BoardError> {
        let mut changed = false;
        loop {
            let changes = self.tables.changes_since(last)?;
            let Some(newest) = changes.last().map(|change| change.seq) else {
                break;
            };
            last = newest;
            changed = true;
            for change in &changes {
                let task = change.task.as_ref();
                match task
                    .and_then(|task| format::parse(change.id, task.to_string().as_bytes()).ok())
                {
                    Some(task) => self.known.insert(change.id, Entry::of(task)),
                    None => self.known.remove(&change.id),
                };
            }
            self.history.extend(changes);
        }
        self.last = Some(last);
        Ok(changed)
    }
}

impl Poll for Seen {
    fn look(&mut self, now_ms: i64) -> Result<Option<Snapshot>, BoardError> {
        let due = |at: i64| now_ms - at >= EVERY || now_ms < at;
        if !self.asked.is_none_or(due) {
            return Ok(None);
        }
        self.asked = Some(now_ms);
        if !self.tables.exists() {
            return Ok(None);
        }
        let changed = match self.last {
            None => self.begin()?,
            Some(last) => self.follow(last)?,
        };
        Ok(changed
            .then(|| Snapshot::made_of(self.known.values().cloned().collect(), BTreeMap::new())))
    }

    fn history(&mut self) -> Result<Vec<Change>, BoardError> {
        Ok(std::mem::take(&mut self.history))
    }
}
