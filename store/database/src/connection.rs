//! One connection, and statements on it.

use std::cell::Cell;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Row};

use crate::error::DatabaseError;
use crate::settings::Settings;
use crate::tls::Tls;
use crate::wait::{sockets, wait_until};

/// A parameter of a statement and its type. Naming the type saves asking the server for it.
pub type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection; closed when it is dropped.
pub(crate) struct Connection {
    client: Client,
}

impl Connection {
    /// Connects, and passes notifications on to `heard` if it is given.
    pub(crate) fn open(
        settings: &Settings,
        heard: Option<Sender<()>>,
        deadline: Instant,
    ) -> Result<Self, DatabaseError> {
        let at = || settings.shown().to_owned();
        let tls = Tls::new(settings).map_err(|why| DatabaseError::Tls { at: at(), why })?;
        let config = settings.config.clone();
        let (started, sockets) = (Instant::now(), sockets()?);
        let connecting = sockets.spawn(async move {
            let (client, mut connection) = config.connect(tls).await?;
            tokio::spawn(async move {
                // Ends when the client is dropped or the link breaks, which the client sees too.
                while let Some(Ok(message)) =
                    std::future::poll_fn(|cx| connection.poll_message(cx)).await
                {
                    if let (AsyncMessage::Notification(_), Some(heard)) = (message, &heard)
                        && heard.send(()).is_err()
                    {
                        break;
                    }
                }
            });
            Ok::<_, tokio_postgres::Error>(client)
        });
        let abort = connecting.abort_handle();
        match wait_until(connecting, deadline) {
            Some(Ok(Ok(client))) => Ok(Self { client }),
            Some(Ok(Err(error))) => Err(DatabaseError::of(
                &error,
                settings.shown(),
                started.elapsed(),
            )),
            Some(Err(error)) => Err(DatabaseError::Unreachable {
                at: at(),
                why: error.to_string(),
            }),
            None => {
                abort.abort();
                Err(DatabaseError::Unreachable {
                    at: at(),
                    why: format!("no answer within {:.1} s", started.elapsed().as_secs_f32()),
                })
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

/// A connection for as long as one piece of work needs it.
pub struct Session<'d> {
    pub(crate) connection: &'d Connection,
    pub(crate) settings: &'d Settings,
    pub(crate) deadline: Instant,
    /// True if the state of the connection is not known: it must not be used again.
    pub(crate) broken: Cell<bool>,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(self.settings).finish()
    }
}

impl Session<'_> {
    /// Runs a statement and returns its rows. `@.` in front of a name stands for the schema.
    pub fn query(&self, sql: &str, params: &[Parameter<'_>]) -> Result<Vec<Row>, DatabaseError> {
        let sql = self.qualified(sql);
        let params: Vec<_> = params
            .iter()
            .map(|(value, ty)| (*value, ty.clone()))
            .collect();
        self.finish(self.connection.client.query_typed(&sql, &params))
    }

    /// The same for a statement with exactly one row.
    pub fn query_one(&self, sql: &str, params: &[Parameter<'_>]) -> Result<Row, DatabaseError> {
        let rows = self.query(sql, params)?;
        let row = <[Row; 1]>::try_from(rows).map(|[row]| row);
        row.map_err(|rows| self.unexpected(format!("{} rows instead of one", rows.len())))
    }

    /// The same for a statement with at most one row.
    pub fn query_opt(
        &self,
        sql: &str,
        params: &[Parameter<'_>],
    ) -> Result<Option<Row>, DatabaseError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// Runs a statement and returns how many rows it changed.
    pub fn execute(&self, sql: &str, params: &[Parameter<'_>]) -> Result<u64, DatabaseError> {
        let sql = self.qualified(sql);
        let params: Vec<_> = params
            .iter()
            .map(|(value, ty)| (*value, ty.clone()))
            .collect();
        self.finish(self.connection.client.execute_typed(&sql, &params))
    }

    /// Runs several statements without parameters in one message.
    pub fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        let sql = self.qualified(sql);
        self.finish(self.connection.client.batch_execute(&sql))
    }

    /// A column of a row.
    pub fn column<'r, T: tokio_postgres::types::FromSql<'r>>(
        &self,
        row: &'r Row,
        name: &str,
    ) -> Result<T, DatabaseError> {
        row.try_get(name)
            .map_err(|error| self.unexpected(format!("column {name}: {error}")))
    }

    /// The schema that holds the tables.
    pub fn schema(&self) -> &str {
        self.settings.schema()
    }

    /// The error for content of the database that ccb did not write.
    pub fn unexpected(&self, what: impl Into<String>) -> DatabaseError {
        DatabaseError::Unexpected {
            at: self.settings.shown().to_owned(),
            what: what.into(),
        }
    }

    pub(crate) fn begin(&self) -> Result<(), DatabaseError> {
        // Local to the transaction: behind PgBouncer the next one may be on another connection.
        let (lock, left) = (self.settings.lock_timeout, self.left());
        self.batch(&format!(
            "BEGIN; SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = {}; \
             SET LOCAL idle_in_transaction_session_timeout = {}",
            lock.as_millis().max(1),
            left.as_millis().max(1),
            2 * left.as_millis().max(1),
        ))
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn qualified(&self, sql: &str) -> String {
        // The schema's name is checked: nothing in it needs escaping.
        sql.replace("@.", &format!("\"{}\".", self.settings.schema))
    }

    fn finish<T>(
        &self,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DatabaseError> {
        let started = Instant::now();
        let at = self.settings.shown();
        let result = match wait_until(statement, self.deadline) {
            Some(result) => {
                result.map_err(|error| DatabaseError::of(&error, at, started.elapsed()))
            }
            None => Err(DatabaseError::TimedOut {
                at: at.to_owned(),
                after: started.elapsed(),
            }),
        };
        if let Err(error) = &result
            && (self.connection.is_closed() || !matches!(error, DatabaseError::Server { .. }))
        {
            self.broken.set(true);
        }
        result
    }
}
