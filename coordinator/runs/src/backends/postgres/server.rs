//! Checks that the database of the board is reliable, with remedies.

use database::{COMMON, Component, Database, Health};
use store::{Explain, Failure};

use crate::finding::Finding;

/// The components of a schema.
pub const SCHEMA: [&Component; 4] = [
    &COMMON,
    &taskboard::MIGRATIONS,
    &mailbox::MIGRATIONS,
    &team::MIGRATIONS,
];
/// The oldest server version that ccb works with.
const OLDEST: i32 = 140_000;
/// Difference between clocks, in ms, above which there is a finding. Leases tolerate it; people do
/// not.
const SKEW: i64 = 2_000;
/// Number of free connections below which there is a finding.
const FREE: i64 = 10;
/// Number of dead rows above which, if there are also fewer live ones, a table is not vacuumed as
/// it should be.
const DEAD: i64 = 100_000;

/// Checks the database. Only if it returns `true`, its content can be checked.
pub(in crate::backends) fn look(database: &Database, findings: &mut Vec<Finding>) -> bool {
    let health = match database.health() {
        Ok(health) => health,
        Err(error) => {
            let kind = error.kind();
            findings.push(Finding::new(kind, Failure::from(error).in_a_line()));
            return false;
        }
    };
    findings.extend(findings_of(&health, database.shown()));
    if health.about.version_number < OLDEST {
        return false;
    }
    for component in SCHEMA {
        if let Err(error) = database.require(component) {
            let kind = error.kind();
            findings.push(Finding::new(kind, Failure::from(error).in_a_line()));
            return false;
        }
    }
    true
}

/// The findings about a server that answers.
pub fn findings_of(health: &Health, at: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut say = |kind, message: String| found.push(Finding::new(kind, message));
    if health.about.version_number < OLDEST {
        let version = &health.about.version;
        say(
            "database_version",
            format!("{at} is PostgreSQL {version}, and ccb needs 14 or later: upgrade the server"),
        );
    }
    if health.about.read_only {
        say(
            "database_read_only",
            format!(
                "{at} is read-only, so tasks can be looked at and not changed: name the primary in \
                 the address, or wait until the fail-over is done"
            ),
        );
    }
    if health.skew_ms.abs() > SKEW {
        let seconds = health.skew_ms.abs() / 1000;
        let side = if health.skew_ms > 0 {
            "behind"
        } else {
            "ahead of"
        };
        say(
            "clock_skew",
            format!(
                "the clock of this machine is {seconds} s {side} the one of {at}. Leases go by the \
                 database's clock, but times in reports and logs are this machine's: synchronise it \
                 (NTP)"
            ),
        );
    }
    let free = health.max_connections - health.connections;
    if free < FREE {
        say(
            "database_connections",
            format!(
                "{at} has {} of {} connections in use: raise max_connections, or put PgBouncer in \
                 transaction mode in front of it",
                health.connections, health.max_connections
            ),
        );
    }
    if !health.autovacuum {
        say(
            "database_autovacuum",
            format!(
                "{at} removes no dead rows by itself, so claims get slower and slower: set autovacuum \
                 = on and track_counts = on in postgresql.conf and reload the server"
            ),
        );
    }
    for table in &health.tables {
        if table.dead > DEAD && table.dead > table.rows {
            say(
                "database_dead_rows",
                format!(
                    "table {} at {at} has {} dead rows and {} live ones: end transactions that stay \
                     open (pg_stat_activity), then run VACUUM on it",
                    table.name, table.dead, table.rows
                ),
            );
        }
    }
    if !health.hears {
        let message =
            format!("notifications of {at} do not arrive, as behind PgBouncer in transaction mode");
        found.push(Finding {
            kind: "database_no_notifications",
            message,
            fixed: Some("ccb looks five times a second instead; nothing to do".into()),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use database::{About, TableHealth};

    use super::*;

    fn sound() -> Health {
        Health {
            about: About {
                version: "15.3".into(),
                version_number: 150_003,
                read_only: false,
                now_ms: 0,
            },
            skew_ms: 20,
            max_connections: 97,
            connections: 5,
            autovacuum: true,
            hears: true,
            tables: vec![TableHealth {
                name: "tasks".into(),
                bytes: 1,
                rows: 10,
                dead: 2_000,
            }],
        }
    }

    fn kinds(health: &Health) -> Vec<&'static str> {
        let found = findings_of(health, "postgres://db/ccb");
        found.iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn a_sound_server_gives_no_reason_to_speak() {
        assert_eq!(kinds(&sound()), Vec::<&str>::new());
    }

    #[test]
    fn every_trouble_is_told_by_itself() {
        let spoil = |spoil: fn(&mut Health)| {
            let mut health = sound();
            spoil(&mut health);
            kinds(&health)
        };
        assert_eq!(
            spoil(|h| h.about.version_number = 130_011),
            ["database_version"]
        );
        assert_eq!(spoil(|h| h.about.read_only = true), ["database_read_only"]);
        assert_eq!(spoil(|h| h.skew_ms = -600_000), ["clock_skew"]);
        assert_eq!(spoil(|h| h.connections = 90), ["database_connections"]);
        assert_eq!(spoil(|h| h.autovacuum = false), ["database_autovacuum"]);
        assert_eq!(
            spoil(|h| h.tables[0].dead = 200_000),
            ["database_dead_rows"]
        );
        assert_eq!(spoil(|h| h.hears = false), ["database_no_notifications"]);
    }
}
