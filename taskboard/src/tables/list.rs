//! A list in a database, and reading it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use database::{Database, DatabaseError, Parameter, Session, Type};
use store::name::Name;

use crate::error::BoardError;
use crate::snapshot::{Entry, Snapshot};

use super::require;
use super::rows::{COLUMNS, Stored, stored};

/// One list of a database.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) name: String,
    pub(super) database: Database,
    pub(super) lock_timeout: Duration,
    /// The list's number in its database; 0 while that is not known.
    number: AtomicI32,
}

impl Tables {
    /// The list `name` of `database`.
    pub(crate) fn new(database: &Database, name: &Name, lock_timeout: Duration) -> Self {
        Self {
            name: name.as_str().to_owned(),
            database: database.clone(),
            lock_timeout,
            number: AtomicI32::default(),
        }
    }

    /// The same list, opened once more.
    pub(super) fn again(&self) -> Self {
        Self {
            name: self.name.clone(),
            database: self.database.clone(),
            number: AtomicI32::default(),
            ..*self
        }
    }

    /// Reads with `look`, which gets the list's name.
    pub(super) fn read<T>(
        &self,
        mut look: impl FnMut(&Session<'_>, &str) -> Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        require(&self.database)?;
        self.database.read(|session| look(session, &self.name))
    }

    /// The number of this list in the database, which it keeps; `None` if it is not there.
    pub(super) fn number(&self) -> Result<Option<i32>, BoardError> {
        let known = self.number.load(Ordering::Relaxed);
        if known != 0 {
            return Ok(Some(known));
        }
        let found = self.read(|session, list| {
            let sql = "SELECT id FROM @.lists WHERE name = $1";
            let row = session.query_opt(sql, &[(&list, Type::TEXT)])?;
            let number = row
                .map(|row| session.column::<i32>(&row, "id"))
                .transpose()?;
            Ok(number)
        })?;
        self.number.store(found.unwrap_or(0), Ordering::Relaxed);
        Ok(found)
    }

    /// The list has another number than it had.
    pub(super) fn forget_number(&self) {
        self.number.store(0, Ordering::Relaxed);
    }
}

/// The tasks of the list `$1` for which `condition` holds.
pub(super) fn select(
    session: &Session<'_>,
    list: &str,
    condition: &str,
    more: &[Parameter<'_>],
) -> Result<Vec<Stored>, BoardError> {
    let sql = format!(
        "SELECT {COLUMNS}, version, chain, open_blockers FROM @.tasks \
         WHERE list = (SELECT l.id FROM @.lists l WHERE l.name = $1) AND ({condition}) ORDER BY id"
    );
    let mut params: Vec<Parameter<'_>> = vec![(&list, Type::TEXT)];
    params.extend(more.iter().cloned());
    let rows = session.query(&sql, &params)?;
    let read = rows.iter().map(|row| stored(session, row));
    Ok(read.collect::<Result<_, _>>()?)
}

pub(super) fn made_of(rows: &[Stored]) -> Snapshot {
    let entries: Vec<Entry> = rows.iter().map(Stored::entry).collect();
    Snapshot::made_of(entries, BTreeMap::new())
}

/// A list whose name differs from `name` in case alone; `None` without one.
pub fn list_alike(database: &Database, name: &Name) -> Result<Option<String>, DatabaseError> {
    require(database)?;
    let name = name.as_str();
    database.read(|session| {
        let sql = "SELECT name FROM @.lists WHERE lower(name) = lower($1) AND name <> $1";
        let row = session.query_opt(sql, &[(&name, Type::TEXT)])?;
        row.map(|row| session.column(&row, "name")).transpose()
    })
}
