//! A team's messages as they pass, read from the tables.

use std::collections::BTreeMap;

use database::{Database, Type};

use super::MIGRATIONS;
use super::inbox::{Found, read_message};
use crate::error::Result;
use crate::message::Message;
use crate::passing::{Passes, shown};

/// Maximum number of the last messages read from an inbox that already exists.
const LAST: i64 = 50;

/// The rows of all inboxes of a team.
#[derive(Debug)]
pub(super) struct DatabasePassing {
    database: Database,
    team: String,
    /// The last message that was seen of each inbox.
    seen: BTreeMap<i64, i64>,
}

impl DatabasePassing {
    /// The mail of `team`, whose name is in lower case.
    pub(super) fn new(database: &Database, team: &str) -> Self {
        Self {
            database: database.clone(),
            team: team.to_owned(),
            seen: BTreeMap::new(),
        }
    }
}

impl Passes for DatabasePassing {
    fn look(&mut self) -> Result<Vec<Message>> {
        self.database.require(&MIGRATIONS)?;
        let (inboxes, seqs): (Vec<i64>, Vec<i64>) = self.seen.iter().unzip();
        let rows = self.database.read(|session| {
            let rows = session.query(
                "SELECT it.id, m.seq, m.line FROM @.mail_inboxes AS it \
                 LEFT JOIN unnest($2, $3) AS known (inbox, seq) ON known.inbox = it.id \
                 CROSS JOIN LATERAL (SELECT seq, line FROM @.mail_messages WHERE inbox = it.id \
                     AND seq > greatest(coalesce(known.seq, 0), it.last_seq - $4)) AS m \
                 WHERE it.team = $1 ORDER BY it.id, m.seq",
                &[
                    (&self.team, Type::TEXT),
                    (&inboxes, Type::INT8_ARRAY),
                    (&seqs, Type::INT8_ARRAY),
                    (&LAST, Type::INT8),
                ],
            )?;
            let row = |row| {
                Ok((
                    session.column::<i64>(row, "id")?,
                    session.column::<i64>(row, "seq")?,
                    session.column::<String>(row, "line")?,
                ))
            };
            rows.iter().map(row).collect::<Result<Vec<_>>>()
        })?;
        let mut found = Found::default();
        for (inbox, seq, line) in rows {
            self.seen.insert(inbox, seq);
            read_message(&line, &mut found);
        }
        let messages = found.0.into_iter().map(|(message, _)| shown(message));
        Ok(messages.collect())
    }
}
