//! Errors of a database, in words that say what to do.

use std::error::Error;
use std::time::Duration;

use store::{Category, Explain, Facts};
use tokio_postgres::error::SqlState;

/// Why a request to the database failed. `at` is its address without a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum DatabaseError {
    /// The address cannot be used. The address itself is not shown: it may hold a password.
    #[error("the address of the board is not usable: {why}")]
    BadUrl { why: String },
    /// No connection, or it broke and no new one could be made in time.
    #[error("the database at {at} cannot be reached: {why}")]
    Unreachable { at: String, why: String },
    /// It refused the login.
    #[error("the database at {at} refuses the connection: {why}")]
    Access { at: String, why: String },
    /// The encrypted connection could not be made.
    #[error("no encrypted connection to the database at {at}: {why}")]
    Tls { at: String, why: String },
    /// Every connection it allows is in use.
    #[error("the database at {at} has no free connection: {why}")]
    TooManyConnections { at: String, why: String },
    /// A standby, or a server that was set to read-only.
    #[error("the database at {at} is read-only")]
    ReadOnly { at: String },
    /// It answered too late.
    #[error("the database at {at} did not answer within {:.1} s", after.as_secs_f32())]
    TimedOut { at: String, after: Duration },
    /// Another change held a lock that this one needs for too long.
    #[error("another change holds what this one needs in the database at {at}: waited {:.1} s", after.as_secs_f32())]
    Locked { at: String, after: Duration },
    /// The schema is older than this program, or missing.
    #[error(
        "the schema {schema:?} of the database at {at} is not ready for this ccb: {component} is at version {found}, and version {needed} is needed"
    )]
    OldSchema {
        at: String,
        schema: String,
        component: &'static str,
        found: i32,
        needed: i32,
    },
    /// The schema is newer than this program.
    #[error(
        "the schema {schema:?} of the database at {at} belongs to a newer ccb: {component} is at version {found}, and this ccb knows {known}"
    )]
    NewSchema {
        at: String,
        schema: String,
        component: String,
        found: i32,
        known: i32,
    },
    /// The link broke during the commit, and the server could not be asked since.
    #[error(
        "the connection to the database at {at} broke while the change was being made, and it is not known whether it was made: {why}"
    )]
    Unknown { at: String, why: String },
    /// The server refused the statement.
    #[error("the database at {at} says: {message} ({code})")]
    Server {
        at: String,
        code: String,
        message: String,
        /// The table or constraint it is about.
        about: Option<String>,
    },
    /// The database holds something that ccb cannot read.
    #[error("the database at {at} holds something unexpected: {what}")]
    Unexpected { at: String, what: String },
    /// The thread for connections cannot be started.
    #[error("no thread for database connections: {why}")]
    NoThread { why: String },
}

/// The consequence of an error for the change in which it occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// A retry would fail again.
    Final,
    /// The server rolled the transaction back in favour of another one.
    Again,
    /// The link broke; a commit under way may have been made or not.
    Lost,
    /// The operation is recorded already: an earlier try got through.
    AlreadyDone,
}

impl DatabaseError {
    pub(crate) fn verdict(&self) -> RetryDecision {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::TooManyConnections { .. } => {
                RetryDecision::Lost
            }
            Self::Server { code, about, .. } => match code.as_str() {
                // Serialization failure, deadlock.
                "40001" | "40P01" => RetryDecision::Again,
                // Recorded by an earlier try of the same operation.
                "23505" if about.as_deref() == Some("operations") => RetryDecision::AlreadyDone,
                _ => RetryDecision::Final,
            },
            _ => RetryDecision::Final,
        }
    }

    /// True if the server refused because the row is there already.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Server { code, .. } if code == "23505")
    }

    /// The meaning of an error of the client. `after` is how long the statement has taken.
    pub(crate) fn of(error: &tokio_postgres::Error, at: &str, after: Duration) -> Self {
        let at = at.to_owned();
        let Some(db) = error.as_db_error() else {
            let why = deepest(error);
            // The client has no kind of its own for it.
            if why.contains("TLS") || why.contains("certificate") {
                return Self::Tls { at, why };
            }
            if error.to_string().contains("password") || why.contains("password missing") {
                return Self::Access { at, why };
            }
            return Self::Unreachable { at, why };
        };
        let (code, why) = (db.code(), db.message().to_owned());
        if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
            return Self::ReadOnly { at };
        }
        if *code == SqlState::TOO_MANY_CONNECTIONS {
            return Self::TooManyConnections { at, why };
        }
        if *code == SqlState::QUERY_CANCELED {
            return Self::TimedOut { at, after };
        }
        if *code == SqlState::LOCK_NOT_AVAILABLE {
            return Self::Locked { at, after };
        }
        match &code.code()[..2] {
            // Shut down by the administrator, starting up, crashed: it may be back soon.
            "57" | "08" => Self::Unreachable { at, why },
            // Authorisation, and a database that does not exist.
            "28" | "3D" => Self::Access { at, why },
            _ => Self::Server {
                at,
                code: code.code().to_owned(),
                about: db.table().or(db.constraint()).map(str::to_owned),
                message: why,
            },
        }
    }
}

/// The innermost cause of an error, which says the most.
pub(crate) fn deepest(error: &(dyn Error + 'static)) -> String {
    let mut last: &dyn Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

impl Explain for DatabaseError {
    fn facts(&self) -> Facts {
        use Category::{Failed, Invalid, Refused, TimedOut};
        match self {
            Self::BadUrl { .. } => Facts::new(Invalid, "bad_board")
                .hint("an address looks like postgres://user@host:5432/database?schema=ccb"),
            Self::Unreachable { .. } => Facts::new(Failed, "database_unreachable")
                .hint("check that the server runs and that this machine can reach it"),
            Self::Access { .. } => Facts::new(Refused, "database_access").hint(
                "check user, database and password: $CCB_BOARD with the password in the address, \
                 $PGPASSWORD, or ~/.pgpass (which only you may read)",
            ),
            Self::Tls { .. } => Facts::new(Failed, "database_tls").hint(
                "check sslmode, and name the authority's certificate with sslrootcert=FILE in the \
                 address",
            ),
            Self::TooManyConnections { .. } => Facts::new(Failed, "database_full").hint(
                "raise max_connections, or put PgBouncer in transaction mode in front of the server",
            ),
            Self::ReadOnly { .. } => Facts::new(Refused, "database_read_only").hint(
                "it may be a standby: name the primary in the address, or wait until the fail-over \
                 is done",
            ),
            Self::TimedOut { .. } => Facts::new(TimedOut, "database_timeout"),
            Self::Locked { .. } => Facts::new(TimedOut, "lock_timeout")
                .hint("try again; if it fails again, pg_stat_activity shows what hangs"),
            Self::OldSchema { .. } => Facts::new(Invalid, "old_schema").hint(
                "prepare it with: ccb board migrate (as a user who may create tables there)",
            ),
            Self::NewSchema { .. } => {
                Facts::new(Invalid, "newer_version").hint("upgrade ccb on this machine")
            }
            Self::Unknown { .. } => Facts::new(Failed, "unknown_outcome")
                .hint("look at the board before you repeat it"),
            Self::Server { .. } => Facts::new(Failed, "database"),
            Self::Unexpected { .. } => Facts::new(Failed, "database_damaged")
                .hint("was it changed by something other than ccb? See: ccb doctor"),
            Self::NoThread { .. } => Facts::new(Failed, "io"),
        }
    }
}
