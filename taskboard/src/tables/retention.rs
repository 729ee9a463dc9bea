//! Deleting rows that no process needs: old lines of the history, and operations whose answers no
//! caller can ask for again. Tasks stay.

use std::time::Duration;

use database::{Database, DatabaseError, Type};

/// Minimum age of a line of the history before a process that watches the list removes it by the
/// way.
pub const KEPT: Duration = Duration::from_secs(30 * 86_400);
/// Minimum age of a removed operation; the process that makes a change asks for its operation
/// within minutes.
const OPERATIONS_KEPT: Duration = Duration::from_secs(86_400);
/// Delay until a process that watches a list removes old rows for the first time, and the interval
/// after that.
pub(super) const FIRST: Duration = Duration::from_secs(600);
pub(super) const EVERY: Duration = Duration::from_secs(3_600);
/// Maximum rows of each kind in one transaction: few enough that no other transaction waits long.
const AT_ONCE: i64 = 20_000;

/// The number of rows that were removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Lines of the history. A follower at an earlier line gets an error that they are gone.
    pub changes: u64,
    /// Operations that are stored so that they happen once.
    pub operations: u64,
}

/// Forgets changes older than `age`, and operations older than that or than a day. With `dry_run` it
/// only counts them.
pub fn prune(database: &Database, age: Duration, dry_run: bool) -> Result<Pruned, DatabaseError> {
    let (changes, operations) = (millis(age), millis(age.min(OPERATIONS_KEPT)));
    if dry_run {
        return database.read(|session| {
            let row = session.query_one(
                "SELECT (SELECT count(*) FROM @.changes WHERE at < @.clock_ms() - $1) AS changes, \
                 (SELECT count(*) FROM @.operations \
                 WHERE at < now() - $2 * interval '1 millisecond') AS operations",
                &[(&changes, Type::INT8), (&operations, Type::INT8)],
            )?;
            Ok(Pruned {
                changes: count(session.column(&row, "changes")?),
                operations: count(session.column(&row, "operations")?),
            })
        });
    }
    let mut all = Pruned::default();
    loop {
        let some = some(database, changes, operations)?;
        all.changes += some.changes;
        all.operations += some.operations;
        if some.changes.max(some.operations) < AT_ONCE.unsigned_abs() {
            return Ok(all);
        }
    }
}

/// Removes a few old rows, for all processes; called now and then by a process that watches a list.
pub(super) fn prune_a_little(database: &Database) {
    match some(database, millis(KEPT), millis(OPERATIONS_KEPT)) {
        Ok(pruned) => tracing::debug!(?pruned, "forgot what is old"),
        Err(error) => tracing::warn!(%error, "what is old could not be forgotten"),
    }
}

/// One transaction. Done again after a broken link it forgets a little more, which is no harm.
fn some(database: &Database, changes: i64, operations: i64) -> Result<Pruned, DatabaseError> {
    database.change_at_once(
        |session| {
            let row = session.query_one(
                "SELECT changes, operations FROM @.prune($1, $2, $3)",
                &[
                    (&changes, Type::INT8),
                    (&operations, Type::INT8),
                    (&AT_ONCE, Type::INT8),
                ],
            )?;
            Ok(Pruned {
                changes: count(session.column(&row, "changes")?),
                operations: count(session.column(&row, "operations")?),
            })
        },
        |_| Ok(None),
    )
}

fn millis(age: Duration) -> i64 {
    // Some centuries are enough, and fit where they are subtracted from a time.
    i64::try_from(age.as_millis())
        .unwrap_or(i64::MAX)
        .min(1 << 44)
}

fn count(number: i64) -> u64 {
    number.max(0).unsigned_abs()
}
