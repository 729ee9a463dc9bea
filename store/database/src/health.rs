//! The state of a server: can ccb rely on it?

use std::time::{Duration, Instant};

use store::clock::{Clock, SystemClock};
use tokio_postgres::types::Type;

use crate::connection::Session;
use crate::database::{About, Database};
use crate::error::DatabaseError;

/// The result of a look at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Facts that the server reports about itself.
    pub about: About,
    /// Lead of its clock over this machine's, in milliseconds.
    pub skew_ms: i64,
    /// Maximum of connections that ordinary users may have at once.
    pub max_connections: i64,
    /// Connections of all users and databases.
    pub connections: i64,
    /// True if the server removes dead rows by itself.
    pub autovacuum: bool,
    /// True if a notification arrives. It does not where PgBouncer pools transactions.
    pub hears: bool,
    /// The tables of the schema, by name.
    pub tables: Vec<TableHealth>,
}

/// A table in numbers, as far as the server keeps count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableHealth {
    /// Its name, without the schema.
    pub name: String,
    /// With its indexes.
    pub bytes: i64,
    /// Rows, roughly.
    pub rows: i64,
    /// Old versions of rows that no transaction can see any more.
    pub dead: i64,
}

/// Time limit for a notification that ccb sends to itself.
const PATIENCE: Duration = Duration::from_secs(3);

impl Database {
    /// Looks at the server. Works on any schema, also on one that is not there.
    pub fn health(&self) -> Result<Health, DatabaseError> {
        // Connecting takes long; that is not the clock's fault.
        self.about()?;
        let asked = SystemClock.now_ms();
        let about = self.about()?;
        let skew_ms = about.now_ms - (asked + SystemClock.now_ms()) / 2;
        let (connections, max_connections, autovacuum, tables) = self.read(|session| {
            let row = session.query_one(
                "SELECT (SELECT count(*) FROM pg_stat_activity \
                 WHERE backend_type = 'client backend') AS used, \
                 (current_setting('max_connections')::bigint \
                 - current_setting('superuser_reserved_connections')::bigint \
                 - coalesce(current_setting('reserved_connections', true), '0')::bigint) AS most, \
                 (current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on') \
                 AS vacuum",
                &[],
            )?;
            Ok::<_, DatabaseError>((
                session.column(&row, "used")?,
                session.column(&row, "most")?,
                session.column(&row, "vacuum")?,
                tables(session)?,
            ))
        })?;
        Ok(Health {
            about,
            skew_ms,
            max_connections,
            connections,
            autovacuum,
            hears: self.hears(),
            tables,
        })
    }

    /// True if a notification on a channel arrives here.
    fn hears(&self) -> bool {
        let mut listener = self.listen(&format!("{}_doctor", self.settings().schema()));
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            // The first notification is its own.
            if listener.wait(PATIENCE) {
                return true;
            }
        }
        false
    }
}

fn tables(session: &Session<'_>) -> Result<Vec<TableHealth>, DatabaseError> {
    let schema = session.schema();
    let rows = session.query(
        "SELECT relname::text AS name, pg_total_relation_size(relid) AS bytes, n_live_tup AS rows, \
         n_dead_tup AS dead FROM pg_stat_user_tables WHERE schemaname = $1 ORDER BY relname",
        &[(&schema, Type::TEXT)],
    )?;
    let one = |row| {
        Ok(TableHealth {
            name: session.column(row, "name")?,
            bytes: session.column(row, "bytes")?,
            rows: session.column(row, "rows")?,
            dead: session.column(row, "dead")?,
        })
    };
    rows.iter().map(one).collect()
}
