//! The numbered history of a list.
//!
//! Promised: the numbers of a list count up by one, whoever follows them sees every change once,
//! and the changes of one task come in the order in which they were made. Of changes of different
//! tasks made at the same time either may come first.

use std::time::{Duration, Instant};

use database::{DatabaseError, Listener, Row, Session, Type};
use store::clock::rfc3339;

use crate::board::Board;
use crate::changes::Change;
use crate::error::BoardError;

use super::rows::{COLUMNS, id, task};
use super::{channel, retention};

/// How many changes are read at once.
const AT_ONCE: i64 = 1_000;

/// Follows a list in a database.
#[derive(Debug)]
pub(crate) struct TableWatch {
    listener: Listener,
    last: u64,
    /// When to forget what is old.
    prune_at: Instant,
}

impl TableWatch {
    /// The number of the last change returned.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn wait(&mut self, limit: Duration) {
        self.listener.wait(limit);
    }

    pub(crate) fn poll(&mut self, board: &Board) -> Result<Vec<Change>, BoardError> {
        let changes = board.changes_since(self.last)?;
        if let Some(last) = changes.last() {
            self.last = last.seq;
        }
        if Instant::now() >= self.prune_at {
            self.prune_at = Instant::now() + retention::EVERY;
            retention::prune_a_little(board);
        }
        Ok(changes)
    }
}

impl Board {
    pub(crate) fn watch_tables(
        &self,
        since: Option<u64>,
    ) -> Option<Result<TableWatch, BoardError>> {
        let database = self.options.database.as_ref()?;
        let watch = || {
            let mut listener = database.listen(&channel(database.settings().schema()));
            // First listen, then look: what comes in between is heard.
            listener.prepare();
            let last = self.last_in_tables().unwrap_or(Ok(0))?;
            let since = since.unwrap_or(last);
            if since > last {
                return Err(beyond(since, last));
            }
            Ok(TableWatch {
                listener,
                last: since,
                prune_at: Instant::now() + retention::FIRST,
            })
        };
        Some(watch())
    }

    /// The number of the last change.
    pub(crate) fn last_in_tables(&self) -> Option<Result<u64, BoardError>> {
        self.options.database.as_ref()?;
        if let Some(false) = self.exists_in_tables()
            && let Err(error) = self.return_expired()
        {
            return Some(Err(error));
        }
        self.read_tables(|session, list| Ok(number(session, list)?.0))
    }

    /// The number of the first change that is not gone.
    pub(crate) fn first_in_tables(&self) -> Result<u64, BoardError> {
        let read = self.read_tables(|session, list| Ok(number(session, list)?.1 + 1));
        read.unwrap_or(Ok(1))
    }

    /// Changes after number `since`, some of them if there are many.
    pub(crate) fn changes_since(&self, since: u64) -> Result<Vec<Change>, BoardError> {
        let read = self.read_tables(|session, list| {
            let (last, forgotten) = number(session, list)?;
            if since >= last {
                return Ok(Vec::new());
            }
            if since < forgotten {
                let why = format!(
                    "changes before {} are gone; read the list and go on from {forgotten}",
                    forgotten + 1,
                );
                return Err(BoardError::invalid(format!("--since {since}"), why));
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
        });
        read.unwrap_or_else(|| Ok(Vec::new()))
    }
}

fn beyond(since: u64, last: u64) -> BoardError {
    let why = format!("the last change of this list is {last}; was its history deleted?");
    BoardError::invalid(format!("--since {since}"), why)
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
        task: match gone {
            true => None,
            false => Some(task(session, row)?.to_json()),
        },
        foreign: false,
    })
}
