//! Migrates a schema to the version this program knows.

use tokio_postgres::types::Type;

use crate::connection::Session;
use crate::error::DatabaseError;
use crate::settings::Settings;

/// A part of the schema with its own row of migrations.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// Its name, as `board`.
    pub name: &'static str,
    /// Every migration, oldest first; the first is number 1. `@.` stands for the schema.
    pub migrations: &'static [&'static str],
}

impl Component {
    /// The version this program knows.
    pub fn version(&self) -> i32 {
        i32::try_from(self.migrations.len()).unwrap_or(i32::MAX)
    }
}

/// The tables that board and mail share.
pub const COMMON: Component = Component {
    name: "database",
    migrations: &[include_str!("../migrations/001.sql")],
};

/// The table of applied migrations. Never changes.
const LEDGER: &str = "CREATE SCHEMA IF NOT EXISTS @S@; \
    CREATE TABLE IF NOT EXISTS @.migrations (component text NOT NULL, number integer NOT NULL, \
    applied_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (component, number))";

/// A missing migration.
pub(crate) type Migration = (&'static str, i32, &'static str);

pub(crate) fn names(steps: &[Migration]) -> Vec<String> {
    let name = |(component, number, _): &Migration| format!("{component} {number}");
    steps.iter().map(name).collect()
}

pub(crate) fn apply(
    session: &Session<'_>,
    components: &[&Component],
) -> Result<Vec<String>, DatabaseError> {
    // Two migrations at once: the second one waits, and finds nothing to do.
    let schema = session.settings.schema();
    let key = "SELECT pg_advisory_xact_lock(hashtextextended('ccb migrate ' || $1, 0))";
    session.query(key, &[(&schema, Type::TEXT)])?;
    let steps = missing(session, components)?;
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    // Asked first, because a user who may use a schema may not be allowed to create it.
    if applied_versions(session)?.is_none() {
        session.batch(&LEDGER.replace("@S@", &format!("\"{schema}\"")))?;
    }
    for (component, number, sql) in &steps {
        session.batch(sql)?;
        let note = "INSERT INTO @.migrations (component, number) VALUES ($1, $2)";
        session.execute(note, &[(component, Type::TEXT), (number, Type::INT4)])?;
    }
    Ok(names(&steps))
}

/// The migrations not applied yet; refused if the schema is newer than this program.
pub(crate) fn missing(
    session: &Session<'_>,
    components: &[&Component],
) -> Result<Vec<Migration>, DatabaseError> {
    let versions = applied_versions(session)?.unwrap_or_default();
    let mut steps = Vec::new();
    for component in components {
        let found = version_of(&versions, component.name);
        if found > component.version() {
            return Err(too_new(session.settings, component, found));
        }
        for (sql, number) in component.migrations.iter().zip(1..) {
            if number > found {
                steps.push((component.name, number, *sql));
            }
        }
    }
    Ok(steps)
}

/// Refuses a schema of another version than this program's.
pub(crate) fn check_version(
    settings: &Settings,
    versions: &[(String, i32)],
    component: &Component,
) -> Result<(), DatabaseError> {
    let (found, needed) = (version_of(versions, component.name), component.version());
    if found > needed {
        return Err(too_new(settings, component, found));
    }
    if found < needed {
        return Err(DatabaseError::OldSchema {
            at: settings.shown().to_owned(),
            schema: settings.schema().to_owned(),
            component: component.name,
            found,
            needed,
        });
    }
    Ok(())
}

fn too_new(settings: &Settings, component: &Component, found: i32) -> DatabaseError {
    DatabaseError::NewSchema {
        at: settings.shown().to_owned(),
        schema: settings.schema().to_owned(),
        component: component.name.to_owned(),
        found,
        known: component.version(),
    }
}

fn version_of(versions: &[(String, i32)], component: &str) -> i32 {
    let found = versions.iter().find(|(name, _)| name == component);
    found.map_or(0, |(_, number)| *number)
}

/// The version of every component; `None` if nothing was ever applied.
pub(crate) fn applied_versions(
    session: &Session<'_>,
) -> Result<Option<Vec<(String, i32)>>, DatabaseError> {
    // Read from the catalogue: a failed statement would end the transaction.
    let schema = session.settings.schema();
    let there = "SELECT to_regclass('\"' || $1 || '\".migrations') IS NOT NULL AS there";
    let row = session.query_one(there, &[(&schema, Type::TEXT)])?;
    if !session.column::<bool>(&row, "there")? {
        return Ok(None);
    }
    let select = "SELECT component, max(number) AS number FROM @.migrations GROUP BY component";
    let rows = session.query(select, &[])?;
    let version = |row| {
        Ok((
            session.column(row, "component")?,
            session.column(row, "number")?,
        ))
    };
    rows.iter().map(version).collect::<Result<_, _>>().map(Some)
}
