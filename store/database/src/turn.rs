//! A lock between machines: a named turn that one process holds as long as it renews it. It is
//! measured by the database's clock, and is no session lock, because behind PgBouncer the next
//! statement may be on another connection.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::connection::Session;
use crate::database::Database;
use crate::error::DatabaseError;

/// Renewals of a turn within its term.
const TIMES: u32 = 3;
/// The clock that measures turns, in milliseconds since 1970.
const NOW: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// A held turn; given back when it is dropped.
#[derive(Debug)]
pub struct Turn {
    database: Database,
    name: String,
    holder: Uuid,
    over: Option<Sender<()>>,
    /// True if the turn ends with its term, and not when this is dropped.
    stays: bool,
}

/// A process that asks for a turn.
#[derive(Debug, Clone, Copy)]
pub struct Claimant<'a> {
    /// Its name, for people.
    pub who: &'a str,
    /// Its id. A claimant with the same id takes its own turn over: one that was killed and comes
    /// back.
    pub holder: Uuid,
    /// Labels of its machine.
    pub labels: &'a [String],
}

/// The holder of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its name, for people.
    pub who: String,
    /// Labels of its machine, if it named any.
    pub labels: Vec<String>,
    /// Time until the turn ends unless it is renewed.
    pub left: Duration,
}

impl Turn {
    /// Takes the turn `name` unless another process holds it.
    pub fn take(
        database: &Database,
        name: &str,
        claimant: Claimant<'_>,
        term: Duration,
    ) -> Result<Result<Self, Taken>, DatabaseError> {
        let Claimant {
            who,
            holder,
            labels,
        } = claimant;
        let ms = i64::try_from(term.as_millis()).unwrap_or(i64::MAX);
        // Taking it twice does no harm, so it needs no operation.
        let taken = database.read(|session| {
            let sql = format!(
                "INSERT INTO @.turns AS t (name, holder, who, until, labels) \
                 VALUES ($1, $2, $3, {NOW} + $4, $5) \
                 ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, who = excluded.who, \
                 until = excluded.until, labels = excluded.labels WHERE t.until <= {NOW} OR t.holder = excluded.holder \
                 RETURNING t.name"
            );
            let params = [
                (&name as _, Type::TEXT),
                (&holder as _, Type::UUID),
                (&who as _, Type::TEXT),
                (&ms as _, Type::INT8),
                (&labels as _, Type::TEXT_ARRAY),
            ];
            match session.query_opt(&sql, &params)? {
                Some(_) => Ok(None),
                None => whose(session, name).map(Some),
            }
        })?;
        match taken {
            Some(Some(taken)) => return Ok(Err(taken)),
            // Given back between the two statements: the caller asks again.
            Some(None) => {
                return Ok(Err(Taken {
                    who: String::new(),
                    labels: Vec::new(),
                    left: Duration::ZERO,
                }));
            }
            None => {}
        }
        let (over, ended) = mpsc::channel::<()>();
        let (base, key) = (database.clone(), name.to_owned());
        let renew = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(term / TIMES) {
                if let Err(error) = renew(&base, &key, holder, ms) {
                    tracing::warn!(%error, turn = key, "the turn is not renewed");
                }
            }
        };
        let thread = std::thread::Builder::new().name("turn".into()).spawn(renew);
        if let Err(error) = thread {
            tracing::error!(%error, turn = name, "the turn is not renewed");
        }
        Ok(Ok(Self {
            database: database.clone(),
            name: name.to_owned(),
            holder,
            over: Some(over),
            stays: false,
        }))
    }

    /// Lets the turn end with its term: no process gets it before, although this one is done.
    pub fn let_run_out(mut self) {
        self.stays = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.over = None;
        if self.stays {
            return;
        }
        let (name, holder) = (&self.name, self.holder);
        let given = self.database.read(|session| {
            let sql = "DELETE FROM @.turns WHERE name = $1 AND holder = $2";
            session.execute(sql, &[(name, Type::TEXT), (&holder, Type::UUID)])
        });
        if let Err(error) = given {
            tracing::warn!(%error, turn = name, "not given back; the turn ends with its term");
        }
    }
}

fn renew(database: &Database, name: &str, holder: Uuid, ms: i64) -> Result<(), DatabaseError> {
    database.read(|session| {
        let sql = format!("UPDATE @.turns SET until = {NOW} + $3 WHERE name = $1 AND holder = $2");
        let params = [
            (&name as _, Type::TEXT),
            (&holder as _, Type::UUID),
            (&ms as _, Type::INT8),
        ];
        session.execute(&sql, &params).map(drop)
    })
}

fn whose(session: &Session<'_>, name: &str) -> Result<Option<Taken>, DatabaseError> {
    let sql = format!("SELECT who, labels, until - {NOW} AS left FROM @.turns WHERE name = $1");
    let row = session.query_opt(&sql, &[(&name, Type::TEXT)])?;
    row.map(|row| taken(session, &row)).transpose()
}

fn taken(session: &Session<'_>, row: &Row) -> Result<Taken, DatabaseError> {
    let left: i64 = session.column(row, "left")?;
    Ok(Taken {
        who: session.column(row, "who")?,
        labels: session.column(row, "labels")?,
        left: Duration::from_millis(left.max(0).cast_unsigned()),
    })
}

/// Every held turn whose name begins with `prefix`, with its holder.
pub fn turns(database: &Database, prefix: &str) -> Result<Vec<(String, Taken)>, DatabaseError> {
    database.read(|session| {
        let sql = format!(
            "SELECT name, who, labels, until - {NOW} AS left FROM @.turns \
             WHERE starts_with(name, $1) AND until > {NOW} ORDER BY name"
        );
        let rows = session.query(&sql, &[(&prefix, Type::TEXT)])?;
        let mut all = Vec::new();
        for row in &rows {
            all.push((session.column(row, "name")?, taken(session, row)?));
        }
        Ok(all)
    })
}
