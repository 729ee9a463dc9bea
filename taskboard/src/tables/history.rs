//! The numbered history of a list.
//!
//! Promised: the numbers of a list count up by one, a follower sees every change once, and the
//! changes of one task come in the order in which they were made. Of changes of different tasks
//! made at the same time either may come first.

use std::time::{Duration, Instant};

use database::{DatabaseError, Listener, Row, Session, Type};
use store::clock::rfc3339;

use crate::backend::{Backend, Feed};
use crate::error::BoardError;
use crate::history::Change;

use super::rows::{COLUMNS, id, task};
use super::{Tables, channel, retention};

/// Maximum number of changes read at once.
const AT_ONCE: i64 = 1_000;

/// Follows a list in a database.
#[derive(Debug)]
struct Followed<'t> {
    tables: &'t Tables,
    listener: Listener,
    last: u64,
    /// The time of the next deletion of old rows.
    prune_at: Instant,
}

impl Feed for Followed<'_> {
    fn poll(&mut self) -> Result<Vec<Change>, BoardError> {
        let changes = self.tables.changes_since(self.last)?;
        if let Some(last) = changes.last() {
            self.last = last.seq;
        }
        if Instant::now() >= self.prune_at {
            self.prune_at = Instant::now() + retention::EVERY;
            retention::prune_a_little(&self.tables.database);
        }
        Ok(changes)
    }

    fn wait(&mut self, limit: Duration) {
        self.listener.wait(limit);
    }

    fn last(&self) -> u64 {
        self.last
    }
}

impl Tables {
    /// Follows the list from change number `since` on, or from now on.
    pub(super) fn follow(&self, since: Option<u64>) -> Result<Box<dyn Feed + '_>, BoardError> {
        let schema = channel(self.database.settings().schema());
        let mut listener = self.database.listen(&schema);
        // First listen, then read: a notification in between arrives.
        listener.prepare();
        let last = self.last()?;
        let since = since.unwrap_or(last);
        if since > last {
            return Err(BoardError::beyond(since, last));
        }
        Ok(Box::new(Followed {
            tables: self,
            listener,
            last: since,
            prune_at: Instant::now() + retention::FIRST,
        }))
    }

    /// The number of the last change.
    pub(super) fn last(&self) -> Result<u64, BoardError> {
        if !self.exists() {
            self.return_expired()?;
        }
        self.read(|session, list| Ok(number(session, list)?.0))
    }

    /// The number of the first change that is not gone.
    pub(super) fn first(&self) -> Result<u64, BoardError> {
        self.read(|session, list| Ok(number(session, list)?.1 + 1))
    }

    /// Changes after number `since`, some of them if there are many.
    pub(super) fn changes_since(&self, since: u64) -> Result<Vec<Change>, BoardError> {
        self.read(|session, list| {
            let (last, forgotten) = number(session, list)?;
            if since >= last {
                return Ok(Vec::new());
            }
            if since < forgotten {
                return Err(BoardError::forgotten(since, forgotten + 1));
            }
            let since = i64::try_from(since).unwrap_or(i64::MAX);
            let sql = format!(
                "SELECT seq, at, op, body IS NULL AS gone, {COLUMNS} FROM @.changes \
                 WHERE list = (SELECT l.id FROM @.lists l WHERE l.name = $1) AND seq > $2 \
                 ORDER BY seq LIMIT {AT_ONCE}"
            );
            let rows = session.query(&sql, &[(&list, Type::TEXT), (&since, Type::INT8)])?;
            let changes = rows.iter().map(|row| change(session, row));
            Ok(changes.collect::<Result<_, _>>()?)
        })
    }
}

/// Gives numbers to what has none; returns the last number, and up to which changes are gone.
fn number(session: &Session<'_>, list: &str) -> Result<(u64, u64), DatabaseError> {
    let numbered = session.query(
        "SELECT @.number_changes(l.id) AS last, l.forgotten FROM @.lists l WHERE l.name = $1",
        &[(&list, Type::TEXT)],
    )?;
    let Some(row) = numbered.first() else {
        return Ok((0, 0));
    };
    let last: i64 = session.column(row, "last")?;
    let forgotten: i64 = session.column(row, "forgotten")?;
    Ok((last.cast_unsigned(), forgotten.cast_unsigned()))
}

fn change(session: &Session<'_>, row: &Row) -> Result<Change, DatabaseError> {
    let (seq, at): (i64, i64) = (session.column(row, "seq")?, session.column(row, "at")?);
    let gone: bool = session.column(row, "gone")?;
    Ok(Change {
        seq: seq.cast_unsigned(),
        ts: rfc3339(at),
        op: session.column(row, "op")?,
        id: id(session, session.column(row, "id")?)?,
        task: if gone {
            None
        } else {
            Some(task(session, row)?.to_json())
        },
        foreign: false,
    })
}
