//! An inbox as a row, and its messages as rows of another table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use database::{Database, Row, Session, Type};
use store::name::Name;
use uuid::Uuid;

use super::follow::DatabaseFollow;
use super::reader::HOLDS;
use super::{MIGRATIONS, number, stored};
use crate::activity::Activity;
use crate::backend::{Feed, Kept};
use crate::consumer::Consumer;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::line::{self, Sealed};
use crate::listing::Listing;
use crate::message::{Draft, Message, Posted};
use crate::notification::derived_id;
use crate::options::MailOptions;

/// One agent's inbox, in a database.
#[derive(Debug)]
pub(super) struct DatabaseInbox {
    pub(super) database: Database,
    pub(super) team: String,
    pub(super) dir: PathBuf,
    pub(super) name: Name,
    /// The owner's name in lower case.
    pub(super) canonical: String,
    pub(super) options: Arc<MailOptions>,
}

/// An inbox whose row is locked until the transaction ends.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) id: i64,
    last_seq: u64,
    acked: u64,
    bytes: u64,
    acked_bytes: u64,
    pub(super) activity: Activity,
    /// The time when it was locked.
    pub(super) now_ms: i64,
}

const LOCK: &str = "SELECT id, last_seq, acked, bytes, acked_bytes, busy, busy_times, \
    @.mail_now() AS now FROM @.mail_inboxes WHERE team = $1 AND name = $2 FOR UPDATE";

/// Makes the inboxes that are not there and locks all of them, by name.
pub(super) fn lock_all(session: &Session<'_>, team: &str, names: &[&str]) -> Result<()> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    let params = [(&team as _, Type::TEXT), (&names as _, Type::TEXT_ARRAY)];
    session.execute(
        "INSERT INTO @.mail_inboxes (team, name) SELECT $1, name FROM unnest($2) AS name \
         ORDER BY name ON CONFLICT DO NOTHING",
        &params,
    )?;
    session.query(
        "SELECT id FROM @.mail_inboxes WHERE team = $1 AND name = ANY ($2) \
         ORDER BY name FOR UPDATE",
        &params,
    )?;
    Ok(())
}

impl DatabaseInbox {
    /// The channel that announces new messages for this inbox. Schemas share a database's channels.
    pub(super) fn channel(&self) -> String {
        let schema = self.database.settings().schema();
        let (team, name) = (&self.team, &self.canonical);
        let id = derived_id(&format!("inbox:{schema}:{team}:{name}"));
        format!("ccb_mail_{}", id.simple())
    }

    /// The key of the inbox's row.
    pub(super) fn key(&self) -> [database::Parameter<'_>; 2] {
        [(&self.team, Type::TEXT), (&self.canonical, Type::TEXT)]
    }

    pub(super) fn read<T>(&self, body: impl FnMut(&Session<'_>) -> Result<T>) -> Result<T> {
        self.database.require(&MIGRATIONS)?;
        self.database.read(body)
    }

    /// Locks its row, which is made if it is not there.
    pub(super) fn lock(&self, session: &Session<'_>) -> Result<Locked> {
        if let Some(row) = session.query_opt(LOCK, &self.key())? {
            return Locked::read(session, &row);
        }
        let make = "INSERT INTO @.mail_inboxes (team, name) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        session.execute(make, &self.key())?;
        let row = session.query_one(LOCK, &self.key())?;
        Locked::read(session, &row)
    }

    /// Adds a message, as part of a change.
    pub(super) fn post(&self, session: &Session<'_>, draft: &Draft) -> Result<Posted> {
        let row = self.lock(session)?;
        let sealed = line::seal(draft, row.now_ms, None, &self.options.secret_filter)?;
        let id = sealed.id;
        if draft.id.is_some()
            && let Some(seq) = row.seq_of(session, id)?
        {
            let already = true;
            return Ok(Posted { id, seq, already });
        }
        self.check_room(&row)?;
        let seq = self.append(session, &row, &sealed, draft.id)?;
        let already = false;
        Ok(Posted { id, seq, already })
    }

    /// Refuses if too much waits to be read.
    pub(super) fn check_room(&self, row: &Locked) -> Result<()> {
        let unread = row.last_seq.saturating_sub(row.acked);
        let bytes = row.bytes.saturating_sub(row.acked_bytes);
        self.options.limits.check_room(&self.name, unread, bytes)
    }

    /// Gives a message the next number, and wakes the reader when all of this is committed.
    pub(super) fn append(
        &self,
        session: &Session<'_>,
        row: &Locked,
        sealed: &Sealed,
        once: Option<Uuid>,
    ) -> Result<u64> {
        let seq = row.last_seq + 1;
        let mut bytes = Vec::new();
        sealed.write(seq, &mut bytes);
        let total = row.bytes + bytes.len() as u64;
        let line = String::from_utf8_lossy(&bytes);
        session.query(
            "WITH message AS (INSERT INTO @.mail_messages (inbox, seq, bytes, line) \
                 VALUES ($1, $2, $3, $4)), \
             counted AS (UPDATE @.mail_inboxes SET last_seq = $2, bytes = $3 WHERE id = $1), \
             remembered AS (INSERT INTO @.mail_ids (inbox, id, seq) \
                 SELECT $1, $5, $2 WHERE $5 IS NOT NULL \
                 ON CONFLICT (inbox, id) DO UPDATE SET seq = excluded.seq) \
             SELECT pg_notify($6, '')",
            &[
                (&row.id, Type::INT8),
                (&stored(seq), Type::INT8),
                (&stored(total), Type::INT8),
                (&line.trim_end_matches('\n'), Type::TEXT),
                (&once, Type::UUID),
                (&self.channel(), Type::TEXT),
            ],
        )?;
        Ok(seq)
    }
}

impl Kept for DatabaseInbox {
    fn name(&self) -> &Name {
        &self.name
    }

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn exists(&self) -> bool {
        let look = self.read(|session| {
            let select = "SELECT id FROM @.mail_inboxes WHERE team = $1 AND name = $2";
            Ok(session.query_opt(select, &self.key())?.is_some())
        });
        look.unwrap_or(true)
    }

    fn list(&self, all: bool) -> Result<Listing> {
        self.read(|session| {
            let row = session.query_opt(
                "SELECT id, cursor, @.mail_now() AS now FROM @.mail_inboxes \
                 WHERE team = $1 AND name = $2",
                &self.key(),
            )?;
            let Some(row) = row else {
                return Ok(Listing::default());
            };
            let id: i64 = session.column(&row, "id")?;
            let cursor = cursor_of(session.column(&row, "cursor")?);
            let after = if all { 0 } else { cursor.acked };
            let (messages, rejected) = messages_after(session, id, after)?;
            let now = session.column(&row, "now")?;
            let messages = messages.into_iter().map(|(message, _)| message);
            Ok(Listing::new(messages, &cursor, rejected, all, now))
        })
    }

    fn follow(self: Arc<Self>, since: Option<u64>) -> Result<Box<dyn Feed>> {
        Ok(Box::new(DatabaseFollow::new(self, since)?))
    }

    fn consumer(self: Arc<Self>) -> Result<Consumer> {
        super::reader::begin(&self)
    }

    fn has_reader(&self) -> Result<bool> {
        self.read(|session| {
            let select = format!(
                "SELECT {HOLDS} AS held FROM @.mail_inboxes AS it WHERE team = $1 AND name = $2"
            );
            let row = session.query_opt(&select, &self.key())?;
            let held = row.map(|row| session.column(&row, "held"));
            Ok(held.transpose()?.unwrap_or(false))
        })
    }
}

impl Locked {
    fn read(session: &Session<'_>, row: &Row) -> Result<Self> {
        let count = |name| session.column(row, name).map(number);
        Ok(Self {
            id: session.column(row, "id")?,
            last_seq: count("last_seq")?,
            acked: count("acked")?,
            bytes: count("bytes")?,
            acked_bytes: count("acked_bytes")?,
            activity: Activity {
                busy: session.column(row, "busy")?,
                times: count("busy_times")?,
                ..Activity::START
            },
            now_ms: session.column(row, "now")?,
        })
    }

    /// The number of the message with this id, if there is or was one.
    fn seq_of(&self, session: &Session<'_>, id: Uuid) -> Result<Option<u64>> {
        let select = "SELECT seq FROM @.mail_ids WHERE inbox = $1 AND id = $2";
        let row = session.query_opt(select, &[(&self.id, Type::INT8), (&id, Type::UUID)])?;
        let seq = row.map(|row| session.column(&row, "seq").map(number));
        Ok(seq.transpose()?)
    }

    pub(super) fn note_activity(&self, session: &Session<'_>, activity: Activity) -> Result<()> {
        session.execute(
            "UPDATE @.mail_inboxes SET busy = $2, busy_times = $3 WHERE id = $1",
            &[
                (&self.id, Type::INT8),
                (&activity.busy, Type::BOOL),
                (&stored(activity.times), Type::INT8),
            ],
        )?;
        Ok(())
    }
}

/// Parses the stored position up to which the inbox is read.
pub(super) fn cursor_of(text: Option<String>) -> Cursor {
    text.map_or_else(Cursor::default, |text| {
        Cursor::parse(text.as_bytes()).unwrap_or_else(|| {
            tracing::warn!("the cursor of an inbox is unreadable, starting over");
            Cursor::lost()
        })
    })
}

/// Messages with their lengths, and how many rows are none.
pub(super) type Found = (Vec<(Message, u64)>, usize);

/// The messages of an inbox after number `after`.
fn messages_after(session: &Session<'_>, inbox: i64, after: u64) -> Result<Found> {
    let rows = session.query(
        "SELECT line FROM @.mail_messages WHERE inbox = $1 AND seq > $2 ORDER BY seq",
        &[(&inbox, Type::INT8), (&stored(after), Type::INT8)],
    )?;
    let mut found = Found::default();
    for row in &rows {
        read_message(session.column(row, "line")?, &mut found);
    }
    Ok(found)
}

/// Adds the message in `line`.
pub(super) fn read_message(line: &str, (messages, rejected): &mut Found) {
    match line::parse(line.as_bytes()) {
        Ok(parsed) => messages.push((parsed.message, line.len() as u64 + 1)),
        Err(why) => {
            tracing::warn!(%why, "a damaged message is passed over");
            *rejected += 1;
        }
    }
}
