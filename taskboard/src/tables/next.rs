//! "Give me something to do", in one statement.

use database::{Operation, Row, Session, Type};

use crate::error::BoardError;
use crate::facts::LeaseTerm;
use crate::rules::claim::ClaimRequest;
use crate::rules::next::{Next, Nothing};

use super::rows::{COLUMNS, ids, task};
use super::{Tables, require};

/// The statement's answer.
enum Said {
    Next(Next),
    /// Leases ran out, and their tasks are to be returned first.
    Expired,
    /// The list has another number than it had.
    NoList,
}

impl Tables {
    /// Claims the best task the agent can have.
    pub(super) fn next_for(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        loop {
            match self.ask(request)? {
                Said::Next(next) => return Ok(next),
                Said::Expired => self.return_expired()?,
                Said::NoList => self.forget_number(),
            }
        }
    }

    fn ask(&self, request: &ClaimRequest) -> Result<Said, BoardError> {
        require(&self.database)?;
        let Some(list) = self.number()? else {
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
        let (name, leased) = (&self.name, request.lease.is_some());
        // A number, which is enough to tell requests of one agent apart.
        let operation = Operation::new().id().as_u64_pair().1.cast_signed();
        let patience = format!("{}ms", self.lock_timeout.as_millis().max(1));
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
        // The earlier try may still be running: its lock says when it is over. The agent that waits
        // for this answer holds its claim, so the task is there unless another caller took it away
        // again.
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
        self.database.change_at_once(ask, recall)
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
    Ok(Said::Next(Next::claimed(task(session, row)?)))
}
