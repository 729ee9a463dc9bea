//! Looking at a list without changing it.

use std::collections::BTreeMap;

use database::{Database, Parameter, Session, Type};
use store::name::Name;

use crate::board::Board;
use crate::error::BoardError;
use crate::id::TaskId;
use crate::snapshot::{Entry, Snapshot};
use crate::task::Task;

use super::require;
use super::rows::{COLUMNS, Stored, id, stored};

/// The tasks of the list `$1` for which `condition` holds.
fn select(
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

fn made_of(rows: &[Stored]) -> Snapshot {
    let entries: Vec<Entry> = rows.iter().map(Stored::entry).collect();
    Snapshot::made_of(entries, BTreeMap::new())
}

impl Board {
    /// Reads with `look`; `None` if this board is not in a database.
    pub(crate) fn read_tables<T>(
        &self,
        mut look: impl FnMut(&Session<'_>, &str) -> Result<T, BoardError>,
    ) -> Option<Result<T, BoardError>> {
        let database: &Database = self.options.database.as_ref()?;
        let list = self.name.as_str();
        Some(require(database).and_then(|()| database.read(|session| look(session, list))))
    }

    pub(crate) fn get_from_tables(&self, id: TaskId) -> Option<Result<Task, BoardError>> {
        let number = id.get().cast_signed();
        self.read_tables(|session, list| {
            let rows = select(session, list, "id = $2", &[(&number, Type::INT8)])?;
            let task = rows.into_iter().next().map(|stored| stored.task);
            task.ok_or(BoardError::NotFound { id })
        })
    }

    pub(crate) fn around_from_tables(&self, id: TaskId) -> Option<Result<Snapshot, BoardError>> {
        let number = id.get().cast_signed();
        self.read_tables(|session, list| {
            let near = "id = $2 OR id IN (SELECT unnest(n.blocks || n.blocked_by) FROM @.tasks n \
                WHERE n.list = (SELECT l.id FROM @.lists l WHERE l.name = $1) AND n.id = $2)";
            let rows = select(session, list, near, &[(&number, Type::INT8)])?;
            Ok(made_of(&rows))
        })
    }

    pub(crate) fn snapshot_from_tables(&self) -> Option<Result<Snapshot, BoardError>> {
        self.read_tables(|session, list| Ok(made_of(&select(session, list, "true", &[])?)))
    }

    pub(crate) fn exists_in_tables(&self) -> Option<bool> {
        let there = self.read_tables(|session, list| {
            let sql = "SELECT EXISTS (SELECT 1 FROM @.lists WHERE name = $1) AS there";
            let row = session.query_one(sql, &[(&list, Type::TEXT)])?;
            Ok(session.column(&row, "there")?)
        })?;
        // What cannot be asked is there: whoever goes on gets the error.
        Some(there.unwrap_or(true))
    }

    pub(crate) fn ready_in_tables(&self) -> Option<Result<Vec<TaskId>, BoardError>> {
        self.options.database.as_ref()?;
        if let Err(error) = self.return_expired() {
            return Some(Err(error));
        }
        self.read_tables(|session, list| {
            let rows = session.query(
                "SELECT id FROM @.tasks \
                 WHERE list = (SELECT l.id FROM @.lists l WHERE l.name = $1) AND status = 0 \
                 AND owner IS NULL AND open_blockers = 0 AND NOT parked AND NOT internal \
                 ORDER BY priority DESC, chain DESC, id",
                &[(&list, Type::TEXT)],
            )?;
            let ids = rows
                .iter()
                .map(|row| id(session, session.column(row, "id")?));
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }
}

/// A list whose name differs from `name` in case alone.
pub fn list_alike(database: &Database, name: &Name) -> Result<Option<String>, BoardError> {
    require(database)?;
    let name = name.as_str();
    database.read(|session| {
        let sql = "SELECT name FROM @.lists WHERE lower(name) = lower($1) AND name <> $1";
        let row = session.query_opt(sql, &[(&name, Type::TEXT)])?;
        let found = row.map(|row| session.column(&row, "name"));
        Ok(found.transpose()?)
    })
}
