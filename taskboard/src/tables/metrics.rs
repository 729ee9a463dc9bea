//! Numbers about the lists of a database, for people and for what watches over it.

use database::{Database, DatabaseError, Type};

/// A lease that ends within this many milliseconds is about to end.
const SOON: i64 = 60_000;

/// A list in numbers. Internal tasks count, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListMetrics {
    /// The list's name.
    pub name: String,
    /// All of its tasks.
    pub tasks: i64,
    /// Tasks that any agent could claim now.
    pub ready: i64,
    /// Pending tasks with an owner.
    pub assigned: i64,
    /// Pending, and blocked by an open task.
    pub blocked: i64,
    /// Pending tasks that wait for a person.
    pub parked: i64,
    /// Tasks in progress.
    pub in_progress: i64,
    /// Completed tasks.
    pub completed: i64,
    /// Milliseconds since the longest-ready task became ready; `None` if no task is ready.
    pub oldest_ready_ms: Option<i64>,
    /// Leases that end within a minute unless they are renewed, and ended ones whose tasks no
    /// process has returned yet.
    pub leases_ending: i64,
    /// The number of the last change that a process has read.
    pub last_change: i64,
}

/// Every list of the database, by name. Reads every task once.
pub fn metrics(database: &Database) -> Result<Vec<ListMetrics>, DatabaseError> {
    database.read(|session| {
        let rows = session.query(
            "SELECT l.name, l.last_change, count(t.id) AS tasks, \
             count(*) FILTER (WHERE r.ready) AS ready, \
             count(*) FILTER (WHERE t.status = 0 AND t.owner IS NOT NULL) AS assigned, \
             count(*) FILTER (WHERE t.status = 0 AND t.open_blockers > 0) AS blocked, \
             count(*) FILTER (WHERE t.status = 0 AND t.parked) AS parked, \
             count(*) FILTER (WHERE t.status = 1) AS in_progress, \
             count(*) FILTER (WHERE t.status = 2) AS completed, \
             @.clock_ms() - min(t.since) FILTER (WHERE r.ready) AS oldest, \
             count(*) FILTER (WHERE t.lease_until < @.clock_ms() + $1) AS ending \
             FROM @.lists l LEFT JOIN @.tasks t ON t.list = l.id CROSS JOIN LATERAL (SELECT \
             t.status = 0 AND t.owner IS NULL AND t.open_blockers = 0 AND NOT t.parked AS ready) r \
             GROUP BY l.id ORDER BY l.name",
            &[(&SOON, Type::INT8)],
        )?;
        let one = |row| {
            Ok(ListMetrics {
                name: session.column(row, "name")?,
                tasks: session.column(row, "tasks")?,
                ready: session.column(row, "ready")?,
                assigned: session.column(row, "assigned")?,
                blocked: session.column(row, "blocked")?,
                parked: session.column(row, "parked")?,
                in_progress: session.column(row, "in_progress")?,
                completed: session.column(row, "completed")?,
                oldest_ready_ms: session.column(row, "oldest")?,
                leases_ending: session.column(row, "ending")?,
                last_change: session.column(row, "last_change")?,
            })
        };
        rows.iter().map(one).collect()
    })
}
