//! Reads and changes that survive a broken link.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::connection::{Connection, Session};
use crate::error::{DatabaseError, RetryDecision};
use crate::migrate::{Component, applied_versions, apply, check_version, missing, names};
use crate::settings::Settings;

/// A database, and the connections this process has to it. Connects when it is first used.
#[derive(Clone)]
pub struct Database(Arc<Inner>);

struct Inner {
    settings: Settings,
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    /// True if there was a connection before: the address is right, and it is worth waiting for the
    /// server.
    was_there: bool,
    /// Components whose version was found to be the one this program knows.
    checked: Vec<&'static str>,
    /// The versions of all components, as they were when one was last asked for.
    versions: Vec<(String, i32)>,
}

/// Maximum of idle connections kept for later work.
const KEEP: usize = 8;
/// Time limit of the first connection: the address may be wrong.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
/// The pause after the first failed try; it grows up to the second one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The id of one change, so that it happens once however often it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation(Uuid);

impl Operation {
    /// A new id. Ids sort by time, so that the index of operations grows at its end.
    #[expect(clippy::new_without_default, reason = "each one is another")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id, for statements that record the operation themselves.
    pub fn id(&self) -> Uuid {
        self.0
    }
}

/// The result of a change, kept as long as a caller may ask for it again.
pub trait Answer: Sized {
    /// The stored form.
    fn write(&self) -> String;

    /// Reads the stored form; `None` if it belongs to another type.
    fn read(text: &str) -> Option<Self>;
}

impl Answer for () {
    fn write(&self) -> String {
        String::new()
    }

    fn read(_: &str) -> Option<Self> {
        Some(())
    }
}

/// An error that may come from the database; then the change may be tried again.
pub trait Carries: From<DatabaseError> {
    /// The database's error, if it is one.
    fn database(&self) -> Option<&DatabaseError>;
}

impl Carries for DatabaseError {
    fn database(&self) -> Option<&DatabaseError> {
        Some(self)
    }
}

/// Facts that a server reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its version, as `15.3`.
    pub version: String,
    /// The same as a number, as `150003`.
    pub version_number: i32,
    /// True if it takes no changes.
    pub read_only: bool,
    /// Its clock, in milliseconds since 1970.
    pub now_ms: i64,
}

/// How a change is committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    /// By us, after its last statement.
    AtTheEnd,
    /// By its only statement.
    ByItself,
}

impl Database {
    /// The database that these settings name. Nothing is connected yet.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Inner {
            settings,
            pool: Mutex::default(),
        }))
    }

    /// The settings it was opened with.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The address without a password.
    pub fn shown(&self) -> &str {
        self.settings().shown()
    }

    /// Refuses to continue if the schema is not the one this program knows. The first call asks for
    /// all components; later calls for the sound ones cost nothing.
    pub fn require(&self, component: &Component) -> Result<(), DatabaseError> {
        let known = {
            let pool = self.pool();
            if pool.checked.contains(&component.name) {
                return Ok(());
            }
            check_version(self.settings(), &pool.versions, component)
        };
        // An earlier call failed; the schema may have been migrated since.
        if known.is_err() {
            let versions = self.read(applied_versions)?.unwrap_or_default();
            check_version(self.settings(), &versions, component)?;
            self.pool().versions = versions;
        }
        self.pool().checked.push(component.name);
        Ok(())
    }

    /// Facts that the server reports about itself.
    pub fn about(&self) -> Result<About, DatabaseError> {
        self.read(|session| {
            let row = session.query_one(
                "SELECT current_setting('server_version') AS version, \
                 current_setting('server_version_num')::int AS number, \
                 (current_setting('transaction_read_only') = 'on' OR pg_is_in_recovery()) AS ro, \
                 floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms",
                &[],
            )?;
            Ok(About {
                version: session.column(&row, "version")?,
                version_number: session.column(&row, "number")?,
                read_only: session.column(&row, "ro")?,
                now_ms: session.column(&row, "now_ms")?,
            })
        })
    }

    /// Only reads, with one statement or several; reads again if the link breaks.
    pub fn read<T, E: Carries>(
        &self,
        mut body: impl FnMut(&Session<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut tries = Tries::new(self);
        loop {
            let error = match self.visit(&tries, &mut body) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            match error.database().map(DatabaseError::verdict) {
                Some(RetryDecision::Again | RetryDecision::Lost) if tries.pause() => {}
                _ => return Err(error),
            }
        }
    }

    /// Changes something in one transaction, once.
    ///
    /// `body` is called again if the transaction was rolled back, so it must depend on nothing but
    /// the database and its arguments. Its result is recorded with `operation`. An error of `body`
    /// rolls everything back.
    pub fn change<T: Answer, E: Carries>(
        &self,
        operation: Operation,
        mut body: impl FnMut(&Session<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let record = |session: &Session<'_>, value: &T| {
            let (id, answer) = (operation.id(), value.write());
            let insert = "INSERT INTO @.operations (id, answer) VALUES ($1, $2)";
            session
                .execute(insert, &[(&id, Type::UUID), (&answer, Type::TEXT)])
                .map(drop)
        };
        let recorded = |session: &Session<'_>| match recall(session, operation)? {
            Some(text) => match T::read(&text) {
                Some(value) => Ok(Some(value)),
                None => Err(session.unexpected("the answer of an operation").into()),
            },
            None => Ok(None),
        };
        let body = |session: &Session<'_>| {
            let value = body(session)?;
            record(session, &value)?;
            Ok(value)
        };
        self.persist(Commit::AtTheEnd, body, recorded)
    }

    /// Changes something with one statement, which commits by itself and records the operation
    /// itself. `recorded` returns the result if an earlier try got through.
    pub fn change_at_once<T, E: Carries>(
        &self,
        body: impl FnMut(&Session<'_>) -> Result<T, E>,
        recorded: impl FnMut(&Session<'_>) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        self.persist(Commit::ByItself, body, recorded)
    }

    fn persist<T, E: Carries>(
        &self,
        commit: Commit,
        mut body: impl FnMut(&Session<'_>) -> Result<T, E>,
        mut recorded: impl FnMut(&Session<'_>) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        let mut tries = Tries::new(self);
        // The link broke when the change may have been committed.
        let mut unsure = false;
        loop {
            let sent = Cell::new(false);
            let result = self.visit(&tries, |session| {
                if unsure && let Some(value) = recorded(session)? {
                    return Ok(value);
                }
                if commit == Commit::ByItself {
                    sent.set(true);
                    return body(session);
                }
                session.begin()?;
                let value = match body(session) {
                    Ok(value) => value,
                    Err(error) => {
                        if !session.broken.get() && session.batch("ROLLBACK").is_err() {
                            session.broken.set(true);
                        }
                        return Err(error);
                    }
                };
                sent.set(true);
                session.batch("COMMIT")?;
                Ok(value)
            });
            let error = match result {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let verdict = error
                .database()
                .map_or(RetryDecision::Final, DatabaseError::verdict);
            unsure |= sent.get() && verdict == RetryDecision::Lost;
            unsure |= verdict == RetryDecision::AlreadyDone;
            if verdict != RetryDecision::Final && tries.pause() {
                continue;
            }
            return Err(match error.database() {
                Some(why) if unsure => DatabaseError::Unknown {
                    at: self.shown().to_owned(),
                    why: why.to_string(),
                }
                .into(),
                _ => error,
            });
        }
    }

    /// Lends a connection to `work`.
    fn visit<T, E: Carries>(
        &self,
        tries: &Tries,
        work: impl FnOnce(&Session<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let connection = self.connection(tries)?;
        let session = Session {
            connection: &connection,
            settings: self.settings(),
            deadline: tries.deadline,
            broken: Cell::new(false),
        };
        let result = work(&session);
        let broken = session.broken.get();
        if !broken && !connection.is_closed() {
            let mut pool = self.pool();
            if pool.idle.len() < KEEP {
                pool.idle.push(connection);
            }
        }
        result
    }

    fn connection(&self, tries: &Tries) -> Result<Connection, DatabaseError> {
        // An idle connection may be broken unnoticed; then the first statement fails, which does no
        // harm.
        while let Some(connection) = { self.pool().idle.pop() } {
            if !connection.is_closed() {
                return Ok(connection);
            }
        }
        let connection = Connection::open(self.settings(), None, tries.deadline)?;
        self.pool().was_there = true;
        Ok(connection)
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.0.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Database").field(self.settings()).finish()
    }
}

/// The answer of an operation, if it was carried out.
fn recall(session: &Session<'_>, operation: Operation) -> Result<Option<String>, DatabaseError> {
    let id = operation.id();
    let select = "SELECT answer FROM @.operations WHERE id = $1";
    let row = session.query_opt(select, &[(&id, Type::UUID)])?;
    row.map(|row| session.column(&row, "answer")).transpose()
}

/// Tries with growing pauses, until the time is over.
struct Tries {
    deadline: Instant,
    pause: Duration,
}

impl Tries {
    fn new(database: &Database) -> Self {
        let patience = database.settings().patience;
        let limit = match database.pool().was_there {
            true => patience,
            false => patience.min(FIRST_PATIENCE),
        };
        Self {
            deadline: Instant::now() + limit,
            pause: PAUSES.0,
        }
    }

    /// Waits before the next try; `false` if no time is left for one.
    fn pause(&mut self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left <= self.pause {
            return false;
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(PAUSES.1);
        true
    }
}

/// Applies every missing migration, all of them or none, and returns what it applied (`board 2`).
/// With `dry_run` it only returns what it would apply.
pub fn migrate(
    database: &Database,
    components: &[&Component],
    dry_run: bool,
) -> Result<Vec<String>, DatabaseError> {
    database.read(|session| {
        if dry_run {
            return missing(session, components).map(|list| names(&list));
        }
        session.begin()?;
        let applied = apply(session, components);
        match &applied {
            Ok(_) => session.batch("COMMIT")?,
            Err(_) => session.batch("ROLLBACK")?,
        }
        applied
    })
}

impl Database {
    /// The version of every component of the schema, as `("board", 1)`; none if it is empty.
    pub fn versions(&self) -> Result<Vec<(String, i32)>, DatabaseError> {
        let mut versions = self.read(applied_versions)?.unwrap_or_default();
        versions.sort();
        Ok(versions)
    }
}
