//! "Give me something to do", in one statement.

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

    fn ask_tables(&self, request: &ClaimRequest) -> Result<Said, BoardError> {
        let Some(database) = &self.options.database else {
            return Ok(Said::Next(Next::Nothing(Nothing::AllDone)));
        };
        require(database)?;
        let (run, term) = match &request.lease {
            None => (None, None),
            Some(LeaseTerm::Milliseconds(ms)) => (None, Some(*ms)),
            Some(LeaseTerm::Run(run)) => (Some(run.as_str()), None),
            Some(LeaseTerm::Heartbeat { run, milliseconds }) => {
                (Some(run.as_str()), Some(*milliseconds))
            }
        };
        let (name, leased) = (self.name.as_str(), request.lease.is_some());
        let operation = Operation::new().id();
        let patience = format!("{}ms", self.options.lock_timeout.as_millis().max(1));
        let ask = |session: &Session<'_>| {
            let row = session.query_one(
                "SELECT * FROM @.claim_next($1, $2, $3, $4, $5, $6, $7, $8)",
                &[
                    (&name, Type::TEXT),
                    (&request.agent, Type::TEXT),
                    (&request.check_busy, Type::BOOL),
                    (&leased, Type::BOOL),
                    (&run, Type::TEXT),
                    (&term, Type::INT8),
                    (&operation, Type::UUID),
                    (&patience, Type::TEXT),
                ],
            )?;
            said(session, &row)
        };
        // What was claimed is in the history, as it was then.
        let recall = |session: &Session<'_>| {
            let sql = format!(
                "SELECT {COLUMNS} FROM @.changes WHERE ordinal = \
                 (SELECT answer::bigint FROM @.operations WHERE id = $1)"
            );
            let row = session.query_opt(&sql, &[(&operation, Type::UUID)])?;
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
