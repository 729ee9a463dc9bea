//! "Give me something to do", in one statement.

use std::sync::atomic::Ordering;

use database::{Operation, Row, Session, Type};

use crate::board::Board;
use crate::claim::{ClaimRequest, Claimed};
use crate::error::BoardError;
use crate::facts::LeaseTerm;
use crate::next::{Next, Nothing};

use super::require;
use super::rows::{Answered, COLUMNS, ids, task};

/// What the statement answered.
enum Said {
    Next(Next),
    /// Leases ran out, and their tasks are to be returned first.
    Expired,
    /// The list has another number than it had.
    NoList,
}

impl Board {
    /// Claims the best task the agent can have; `None` if this board is not in a database.
    pub(crate) fn next_in_tables(
        &self,
        request: &ClaimRequest,
    ) -> Option<Result<Next, BoardError>> {
        self.options.database.as_ref()?;
        let claim = || {
            loop {
                match self.ask_tables(request)? {
                    Said::Next(next) => return Ok(next),
                    Said::Expired => self.return_expired()?,
                    Said::NoList => self.list_number.store(0, Ordering::Relaxed),
                }
            }
        };
        Some(claim())
    }

    /// Returns the tasks whose lease ran out; every change does that first.
    pub(crate) fn return_expired(&self) -> Result<(), BoardError> {
        self.in_tables(|_| Ok(Answered::default()))
            .map_or(Ok(()), |done| done.map(drop))
    }

    /// The same, if there are any; whether there were.
    pub(crate) fn return_overdue_in_tables(&self) -> Option<Result<bool, BoardError>> {
        let overdue = self.read_tables(|session, list| {
            let row = session.query_one(
                "SELECT coalesce((SELECT t.lease_until FROM @.tasks t \
                 WHERE t.list = (SELECT l.id FROM @.lists l WHERE l.name = $1) \
                 AND t.lease_until IS NOT NULL ORDER BY t.lease_until LIMIT 1) \
                 <= @.clock_ms(), false) AS overdue",
                &[(&list, Type::TEXT)],
            )?;
            Ok(session.column(&row, "overdue")?)
        })?;
        Some(overdue.and_then(|overdue| {
            if overdue {
                self.return_expired()?;
            }
            Ok(overdue)
        }))
    }

    /// The number of this list in the database, which it keeps; `None` if it is not there.
    fn number_of_list(&self) -> Result<Option<i32>, BoardError> {
        let known = self.list_number.load(Ordering::Relaxed);
        if known != 0 {
            return Ok(Some(known));
        }
        let found = self.read_tables(|session, list| {
            let sql = "SELECT id FROM @.lists WHERE name = $1";
            let row = session.query_opt(sql, &[(&list, Type::TEXT)])?;
            let number = row
                .map(|row| session.column::<i32>(&row, "id"))
                .transpose()?;
            Ok(number)
        });
        let found = found.unwrap_or(Ok(None))?;
        self.list_number
            .store(found.unwrap_or(0), Ordering::Relaxed);
        Ok(found)
    }

    fn ask_tables(&self, request: &ClaimRequest) -> Result<Said, BoardError> {
        let Some(database) = &self.options.database else {
            return Ok(Said::Next(Next::Nothing(Nothing::AllDone)));
        };
        require(database)?;
        let Some(list) = self.number_of_list()? else {
            return Ok(Said::Next(Next::Nothing(Nothing::AllDone)));
        };
        let (run, term) = match &request.lease {
            None => (None, None),
            Some(LeaseTerm::Milliseconds(ms)) => (None, Some(*ms)),
            Some(LeaseTerm::Run(run)) => (Some(run.as_str()), None),
            Some(LeaseTerm::Heartbeat { run, milliseconds }) => {
                (Some(run.as_str()), Some(*milliseconds))
            }
        };
        let (name, leased) = (self.name.as_str(), request.lease.is_some());
        // As a number, which is enough to tell requests of one agent apart.
        let operation = Operation::new().id().as_u64_pair().1.cast_signed();
        let patience = format!("{}ms", self.options.lock_timeout.as_millis().max(1));
        let ask = |session: &Session<'_>| {
            let row = session.query_one(
                "SELECT * FROM @.claim_next($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                &[
                    (&list, Type::INT4),
                    (&name, Type::TEXT),
                    (&request.agent, Type::TEXT),
                    (&request.check_busy, Type::BOOL),
                    (&leased, Type::BOOL),
                    (&run, Type::TEXT),
                    (&term, Type::INT8),
                    (&operation, Type::INT8),
                    (&patience, Type::TEXT),
                ],
            )?;
            said(session, &row)
        };
        // The earlier try may still be under way: its lock says when it is over. What it claimed
        // is held by the agent, who waits for this answer, so it is there unless somebody took
        // it away again.
        let recall = |session: &Session<'_>| {
            session.query(
                "SELECT set_config('lock_timeout', $2, true), pg_advisory_xact_lock($1)",
                &[(&operation, Type::INT8), (&patience, Type::TEXT)],
            )?;
            let sql = format!(
                "SELECT {COLUMNS} FROM @.tasks WHERE list = $1 AND status = 1 AND owner = $2 \
                 AND operation = $3"
            );
            let row = session.query_opt(
                &sql,
                &[
                    (&list, Type::INT4),
                    (&request.agent, Type::TEXT),
                    (&operation, Type::INT8),
                ],
            )?;
            row.map(|row| claimed(session, &row)).transpose()
        };
        database.change_at_once(ask, recall)
    }
}

fn said(session: &Session<'_>, row: &Row) -> Result<Said, BoardError> {
    let answer: String = session.column(row, "answer")?;
    Ok(match answer.as_str() {
        "claimed" => return claimed(session, row),
        "expired" => Said::Expired,
        "no_list" => Said::NoList,
        "busy" => Said::Next(Next::Busy(ids(session, session.column(row, "busy")?)?)),
        other => {
            let why = Nothing::parse(other).ok_or_else(|| session.unexpected(other.to_owned()))?;
            Said::Next(Next::Nothing(why))
        }
    })
}

fn claimed(session: &Session<'_>, row: &Row) -> Result<Said, BoardError> {
    let task = task(session, row)?;
    let token = task.lease().map(|lease| lease.token);
    Ok(Said::Next(Next::Claimed(Box::new(Claimed { task, token }))))
}
