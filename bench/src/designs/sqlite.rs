//! The same job in a SQLite table, set up so that SQLite is at its best: WAL, one partial index
//! that holds exactly the claimable tasks in the order of their claims, cached statements.
//!
//! It leaves out one thing: among tasks of the same priority ccb prefers the one with the longest
//! chain of tasks behind it; here it is the lowest id.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde_json::Value;

use super::{Claimer, LOCK_TIMEOUT};
use crate::Failure;
use crate::workload;

const SCHEMA: &str = "
    CREATE TABLE task(
        id INTEGER PRIMARY KEY, subject TEXT NOT NULL, description TEXT NOT NULL,
        owner TEXT, status TEXT NOT NULL, priority INTEGER NOT NULL, metadata TEXT NOT NULL);
    CREATE INDEX claimable ON task(priority DESC, id) WHERE status = 'pending' AND owner IS NULL;
    CREATE TABLE edge(
        dependent INTEGER NOT NULL, blocker INTEGER NOT NULL, PRIMARY KEY(dependent, blocker)
    ) WITHOUT ROWID;";

const READY: &str = "
    SELECT id FROM task WHERE status = 'pending' AND owner IS NULL AND NOT EXISTS(
        SELECT 1 FROM edge JOIN task AS before ON before.id = edge.blocker
        WHERE edge.dependent = task.id AND before.status <> 'completed')
    ORDER BY priority DESC, id LIMIT ?1";
const NO_LIMIT: i64 = -1;

const TAKE: &str = "
    UPDATE task SET owner = ?2, status = 'in_progress' WHERE id = ?1
    RETURNING id, subject, description, owner, status, priority, metadata";

const INSERT: &str = "
    INSERT INTO task(id, subject, description, owner, status, priority, metadata)
    VALUES(?1, ?2, ?3, NULL, ?4, ?5, ?6)";

/// An open database.
pub(crate) struct Database {
    connection: Connection,
}

/// A whole task, as a caller that shows it or works on it would have it.
struct Row {
    id: u64,
    owner: Option<String>,
    _priority: i64,
    /// Subject, description and status.
    _texts: [String; 3],
    _metadata: Option<Value>,
}

/// Makes the database and fills it.
pub(crate) fn prepare(dir: &Path, tasks: u64) -> Result<(), Failure> {
    let mut database = Database::open(dir, false)?;
    database.connection.execute_batch(SCHEMA)?;
    let transaction = database.connection.transaction()?;
    for task in workload::specs(tasks) {
        let metadata = task.metadata().to_string();
        transaction.prepare_cached(INSERT)?.execute(params![
            task.id,
            task.subject,
            task.description,
            task.status(),
            task.priority,
            metadata,
        ])?;
        if let Some(blocker) = task.blocked_by {
            transaction
                .prepare_cached("INSERT INTO edge(dependent, blocker) VALUES(?1, ?2)")?
                .execute(params![task.id, blocker])?;
        }
    }
    transaction.commit()?;
    database.connection.execute_batch("ANALYZE")?;
    Ok(())
}

impl Database {
    pub(crate) fn open(dir: &Path, durable: bool) -> Result<Self, Failure> {
        let connection = Connection::open(dir.join("tasks.db"))?;
        connection.busy_timeout(LOCK_TIMEOUT)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        let synchronous = if durable { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(Self { connection })
    }

    /// Reads all tasks; returns their number.
    pub(crate) fn list(&self) -> Result<usize, Failure> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, subject, description, owner, status, priority, metadata FROM task \
             ORDER BY id",
        )?;
        let rows: Vec<Row> = statement
            .query_map([], read_row)?
            .collect::<Result<_, _>>()?;
        Ok(rows.len())
    }

    /// Finds the tasks that could be claimed now; returns their number.
    pub(crate) fn ready(&self) -> Result<usize, Failure> {
        let mut statement = self.connection.prepare_cached(READY)?;
        let ids: Vec<u64> = statement
            .query_map([NO_LIMIT], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(ids.len())
    }

    /// Creates `count` tasks in one transaction.
    pub(crate) fn create(&mut self, count: usize) -> Result<Duration, Failure> {
        let started = Instant::now();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for n in 0..count {
            let subject = format!("One more task, number {n}");
            transaction.prepare_cached(INSERT)?.execute(params![
                None::<u64>,
                subject,
                "Created while the clock runs.",
                "pending",
                0,
                "{}",
            ])?;
        }
        transaction.commit()?;
        Ok(started.elapsed())
    }

    /// The owner of each task.
    pub(crate) fn owners(&self) -> Result<HashMap<u64, String>, Failure> {
        let mut statement = self
            .connection
            .prepare("SELECT id, owner FROM task WHERE owner IS NOT NULL")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Claimer for Database {
    fn warm_up(&mut self) -> Result<(), Failure> {
        self.connection.prepare_cached(TAKE)?;
        self.connection
            .prepare_cached(READY)?
            .query_row([1], |row| row.get::<_, u64>(0))
            .optional()?;
        Ok(())
    }

    fn claim(&mut self, agent: &str) -> Result<Option<u64>, Failure> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let id: Option<u64> = transaction
            .prepare_cached(READY)?
            .query_row([1], |row| row.get(0))
            .optional()?;
        let Some(id) = id else {
            return Ok(None);
        };
        let row = transaction
            .prepare_cached(TAKE)?
            .query_row(params![id, agent], read_row)?;
        transaction.commit()?;
        debug_assert_eq!(row.owner.as_deref(), Some(agent));
        Ok(Some(row.id))
    }
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let metadata: String = row.get(6)?;
    Ok(Row {
        id: row.get(0)?,
        owner: row.get(3)?,
        _priority: row.get(5)?,
        _texts: [row.get(1)?, row.get(2)?, row.get(4)?],
        _metadata: serde_json::from_str(&metadata).ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_task_comes_straight_from_the_index() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path(), 100).unwrap();
        let mut database = Database::open(dir.path(), true).unwrap();
        let plan: Vec<String> = database
            .connection
            .prepare(&format!("EXPLAIN QUERY PLAN {READY}"))
            .unwrap()
            .query_map([1], |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(plan[0].contains("INDEX claimable"), "{plan:?}");
        assert!(
            !plan.iter().any(|step| step.contains("TEMP B-TREE")),
            "{plan:?}"
        );
        // Priority 4, and not one of the ten that are completed.
        assert_eq!(database.claim("a").unwrap(), Some(14));
        assert_eq!(database.ready().unwrap(), 89);
    }
}
