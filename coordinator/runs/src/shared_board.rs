//! Boards and mail that several machines share: how a process of ours finds the database.
//!
//! What is written down of a run has the address without its password; the password comes from the
//! environment of whoever acts, by the way all of that goes (`swarm::starter`).

#[cfg(feature = "postgres")]
use std::ffi::OsString;
#[cfg(feature = "postgres")]
use std::path::PathBuf;
#[cfg(feature = "postgres")]
use std::time::Duration;

use store::Failure;
#[cfg(feature = "postgres")]
use swarm::run::SharedPlace;
use taskboard::TaskId;

#[cfg(feature = "postgres")]
use crate::env;

/// The database at `address`, with the password that these variables hold. Nothing is connected yet.
#[cfg(feature = "postgres")]
pub fn settings(
    address: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<database::Settings, Failure> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let secrets = database::Secrets {
        password: set("PGPASSWORD").and_then(|value| value.into_string().ok()),
        pass_file: set("PGPASSFILE").map(PathBuf::from).or_else(|| {
            let home = PathBuf::from(set("HOME")?);
            Some(home.join(".pgpass"))
        }),
    };
    let given = set(env::BOARD).and_then(|value| value.into_string().ok());
    let found = database::Settings::parse(address, &secrets)?;
    // Only the address in the environment may hold a password.
    let with_password = given
        .filter(|_| !found.has_password_in_address())
        .and_then(|given| database::Settings::parse(&given, &secrets).ok())
        .filter(|given| given.address() == found.address());
    Ok(with_password.unwrap_or(found))
}

/// The database a run's board and mail are in.
#[cfg(feature = "postgres")]
pub(crate) fn of_run(
    place: &SharedPlace,
    environment: &[(OsString, OsString)],
    lock_timeout: Duration,
) -> Result<database::Database, Failure> {
    let find = |wanted: &str| {
        let found = environment.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone())
    };
    let settings = settings(&place.board, find)?;
    Ok(database::Database::new(
        settings.with_lock_timeout(lock_timeout),
    ))
}

/// This program cannot talk to databases.
#[cfg(not(feature = "postgres"))]
pub fn refuse() -> Failure {
    let message = "the board is in PostgreSQL, and this ccb was built without it";
    Failure::usage("no_postgres", message)
        .with_hint("build it with: cargo install --path cli --features postgres")
}

/// Below which the remote keeps the results of a list.
pub fn results_of(list: &str) -> String {
    format!("results/{list}")
}

/// Under which name, below `refs/ccb/`, the remote keeps what this run did for a task. No two runs
/// have one name, so nothing is ever replaced there.
pub fn result_name(list: &str, task: TaskId, run: &str) -> String {
    format!("results/{list}/{task}/{run}")
}
