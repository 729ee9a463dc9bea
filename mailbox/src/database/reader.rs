//! The right to read an inbox, as a lease in its row.
//!
//! A lease has three ends: its holder gives it back; the connection that it was last renewed on is
//! gone, as the server says; its time is over. The second frees the inbox of a process that was
//! killed at once, the third that of a machine whose connection to the server is cut, and that of a
//! reader behind PgBouncer, where connections outlive their users.
//!
//! A reader that takes a lease over writes another id into the row, and every write of a reader
//! names its id: a reader that was taken for dead by mistake changes nothing any more, and gets an
//! error.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use database::{Database, Parameter, Session, Type};
use store::fifo::Bell;
use uuid::Uuid;

use super::inbox::{DatabaseInbox, Found, cursor_of, read_message};
use super::watcher::Watcher;
use super::{Json, MIGRATIONS, number, stored};
use crate::consumer::Consumer;
use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::source::{Fetched, Source};

/// Duration of a lease without renewal.
const LEASE: Duration = Duration::from_secs(15);
/// Interval between two renewals of a lease.
pub(super) const RENEW: Duration = Duration::from_secs(5);
/// Poll interval while waiting for another reader to end.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time to give the lease back; after that it ends without help.
const GIVE_BACK: Duration = Duration::from_secs(1);

/// After a day no process asks if a change was made.
const FORGET_OPERATIONS: &str = "DELETE FROM @.operations WHERE at < now() - interval '1 day'";

/// Condition: true if a lease in the row `it` is valid. A statement of its own reads the
/// connections, after the row is locked: a transaction sees one unchanging list of them.
pub(super) const HOLDS: &str = "it.reader IS NOT NULL AND it.reader_until > @.mail_now() \
    AND EXISTS (SELECT FROM pg_stat_activity WHERE pid = it.reader_backend)";

/// The right to read one inbox.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    database: Database,
    inbox: i64,
    id: Uuid,
}

/// Messages of an inbox, for its reader.
#[derive(Debug)]
struct DatabaseSource {
    at: Arc<DatabaseInbox>,
    lease: Lease,
    /// The first number to fetch: the one after the acknowledged messages.
    from: u64,
    cursor_version: i64,
    now_ms: i64,
    watcher: Watcher,
}

/// Becomes the reader of `inbox`, once there is no other.
pub(super) fn begin(inbox: &Arc<DatabaseInbox>) -> Result<Consumer> {
    inbox.database.require(&MIGRATIONS)?;
    let id = Uuid::new_v4();
    let started = Instant::now();
    let (lease, cursor, cursor_version) = loop {
        match take(inbox, id)? {
            Ok(taken) => break taken,
            Err(holder) if started.elapsed() >= inbox.options.reader_timeout => {
                return Err(MailError::BeingRead {
                    inbox: inbox.name.to_string(),
                    holder,
                });
            }
            Err(_) => std::thread::sleep(LOOK),
        }
    };
    let cursor = cursor_of(cursor);
    let source = DatabaseSource {
        watcher: Watcher::start(inbox, lease.clone())?,
        at: Arc::clone(inbox),
        lease,
        from: cursor.acked,
        cursor_version,
        now_ms: 0,
    };
    Consumer::begin(inbox.name.clone(), Box::new(source), cursor)
}

/// The leased value with the cursor and its version, or the holder of the lease.
type Taken<T> = Result<(T, Option<String>, i64), String>;

fn take(inbox: &DatabaseInbox, id: Uuid) -> Result<Taken<Lease>> {
    let operation = database::Operation::new();
    let Json(taken): Json<Taken<i64>> = inbox.database.change(operation, |session| {
        let row = inbox.lock(session)?;
        let held = session.query_one(
            &format!(
                "SELECT {HOLDS} AS held, reader_who, cursor, cursor_version \
                     FROM @.mail_inboxes AS it WHERE id = $1"
            ),
            &[(&row.id, Type::INT8)],
        )?;
        if session.column::<bool>(&held, "held")? {
            let who: Option<String> = session.column(&held, "reader_who")?;
            let who = who.unwrap_or_else(|| "another process".into());
            return Ok::<_, MailError>(Json(Err(who)));
        }
        session.execute(
            "UPDATE @.mail_inboxes SET reader = $2, reader_who = $3, \
                 reader_backend = pg_backend_pid(), reader_until = @.mail_now() + $4 \
                 WHERE id = $1",
            &[
                (&row.id, Type::INT8),
                (&id, Type::UUID),
                (&this_process(), Type::TEXT),
                (&lease_ms(), Type::INT8),
            ],
        )?;
        let cursor = session.column(&held, "cursor")?;
        let version = session.column(&held, "cursor_version")?;
        Ok(Json(Ok((row.id, cursor, version))))
    })?;
    let database = inbox.database.clone();
    Ok(taken.map(|(inbox, cursor, version)| {
        let lease = Lease {
            database,
            inbox,
            id,
        };
        (lease, cursor, version)
    }))
}

impl Source for DatabaseSource {
    fn fetch(&mut self, after: u64) -> Result<Fetched> {
        let after = stored(after.max(self.from));
        let params = [
            (&self.lease.inbox as _, Type::INT8),
            (&after as _, Type::INT8),
        ];
        let ((messages, rejected), last, now) = self.at.database.read(|session| {
            let rows = session.query(
                "SELECT it.last_seq, @.mail_now() AS now, line FROM @.mail_inboxes AS it \
                 LEFT JOIN @.mail_messages AS m ON m.inbox = it.id AND m.seq > $2 \
                 WHERE it.id = $1 ORDER BY m.seq",
                &params,
            )?;
            let mut found = Found::default();
            let (mut last, mut now) = (0, 0);
            for row in &rows {
                last = number(session.column(row, "last_seq")?);
                now = session.column(row, "now")?;
                if let Some(line) = session.column(row, "line")? {
                    read_message(line, &mut found);
                }
            }
            Ok::<_, MailError>((found, last, now))
        })?;
        self.now_ms = now;
        Ok(Fetched {
            messages,
            last,
            rejected,
        })
    }

    fn sync(&self) -> Result<()> {
        // Every readable message is committed.
        Ok(())
    }

    fn save(&mut self, cursor: &Cursor) -> Result<()> {
        let version = self.cursor_version + 1;
        let (acked, text) = (stored(cursor.acked), cursor.to_text()?);
        let database = self.lease.database.clone();
        // Safe to repeat: it sets what it sets, and a repeat that comes late finds a later
        // version.
        let saved = database.change_at_once(
            |session| {
                session.execute(
                    "UPDATE @.mail_inboxes SET cursor = $3, cursor_version = $4, acked = $5, \
                     acked_bytes = coalesce((SELECT m.bytes FROM @.mail_messages AS m \
                         WHERE m.inbox = $1 AND m.seq = $5), acked_bytes), \
                     reader_backend = pg_backend_pid(), reader_until = @.mail_now() + $6 \
                     WHERE id = $1 AND reader = $2 AND cursor_version < $4",
                    &[
                        (&self.lease.inbox, Type::INT8),
                        (&self.lease.id, Type::UUID),
                        (&text, Type::TEXT),
                        (&version, Type::INT8),
                        (&acked, Type::INT8),
                        (&lease_ms(), Type::INT8),
                    ],
                )?;
                self.check(session, version)
            },
            |_| Ok(None),
        );
        saved?;
        self.cursor_version = version;
        Ok(())
    }

    fn keep_short(&mut self, acked: u64, _waiting: u64) -> Result<()> {
        self.forget_old(acked)
    }

    /// When it last fetched, by the clock of the database.
    fn now_ms(&self) -> i64 {
        self.now_ms
    }

    fn bell(&self) -> &Bell {
        self.watcher.bell()
    }
}

impl DatabaseSource {
    /// Fails if the lease is another's by now, or the cursor is not at `version`.
    fn check(&self, session: &Session<'_>, version: i64) -> Result<()> {
        let row = session.query_one(
            "SELECT reader, reader_who, cursor_version FROM @.mail_inboxes WHERE id = $1",
            &[(&self.lease.inbox, Type::INT8)],
        )?;
        let reader: Option<Uuid> = session.column(&row, "reader")?;
        let found: i64 = session.column(&row, "cursor_version")?;
        if reader == Some(self.lease.id) && found == version {
            return Ok(());
        }
        let who: Option<String> = session.column(&row, "reader_who")?;
        Err(MailError::BeingRead {
            inbox: self.at.name.to_string(),
            holder: who.unwrap_or_else(|| "another process".into()),
        })
    }

    /// Deletes the oldest messages up to `acked`, once more is kept than archives would hold.
    fn forget_old(&self, acked: u64) -> Result<()> {
        let limits = &self.at.options.limits;
        let one = limits.rotate_bytes;
        let kept = one.saturating_mul(limits.archives as u64);
        // Not one by one, but as much at a time as there is in an archive.
        let delete = "DELETE FROM @.mail_messages USING (SELECT acked_bytes - $3 AS bytes \
                FROM @.mail_inboxes WHERE id = $1) AS old \
             WHERE inbox = $1 AND seq <= $2 AND mail_messages.bytes <= old.bytes \
             AND (SELECT first.bytes FROM @.mail_messages AS first WHERE inbox = $1 \
                 ORDER BY seq LIMIT 1) <= old.bytes - $4";
        let forget = "DELETE FROM @.mail_ids WHERE inbox = $1 AND seq <= $2 AND seq <= (SELECT seq \
             FROM @.mail_ids WHERE inbox = $1 ORDER BY seq DESC OFFSET $3 LIMIT 1)";
        let remembered = stored(limits.remembered_ids as u64);
        let (acked, kept, one) = (stored(acked), stored(kept), stored(one));
        let inbox = &self.lease.inbox;
        self.at.database.change_at_once(
            |session| {
                let number = |it| -> Parameter<'_> { (it, Type::INT8) };
                let params = [inbox, &acked, &kept, &one].map(|it| number(it));
                if session.execute(delete, &params)? > 0 {
                    let params = [inbox, &acked, &remembered].map(|it| number(it));
                    session.execute(forget, &params)?;
                    session.execute(FORGET_OPERATIONS, &[])?;
                }
                Ok::<_, MailError>(())
            },
            |_| Ok(None),
        )
    }
}

impl Drop for DatabaseSource {
    fn drop(&mut self) {
        self.watcher.stop();
        // On a thread of its own, because a database that does not answer must not keep the caller
        // from ending.
        let lease = self.lease.clone();
        let (tell, done) = channel();
        std::thread::spawn(move || {
            if let Err(error) = lease.give_back() {
                tracing::warn!(%error, "the inbox counts as being read for a while");
            }
            tell.send(()).ok();
        });
        done.recv_timeout(GIVE_BACK).ok();
    }
}

impl Lease {
    /// Makes it last; returns the number of the inbox's last message, or `None` if the lease is
    /// another's by now.
    pub(super) fn renew(&self) -> Result<Option<u64>> {
        let renew = "UPDATE @.mail_inboxes SET reader_backend = pg_backend_pid(), \
             reader_until = @.mail_now() + $3 WHERE id = $1 AND reader = $2 RETURNING last_seq";
        self.database.change_at_once(
            |session| {
                let params = [
                    (&self.inbox as _, Type::INT8),
                    (&self.id as _, Type::UUID),
                    (&lease_ms() as _, Type::INT8),
                ];
                let row = session.query_opt(renew, &params)?;
                let last = row.map(|row| session.column(&row, "last_seq").map(number));
                Ok(last.transpose()?)
            },
            |_| Ok(None),
        )
    }

    /// The number of the inbox's last message.
    pub(super) fn last_seq(&self) -> Result<u64> {
        self.database.read(|session| {
            let select = "SELECT last_seq FROM @.mail_inboxes WHERE id = $1";
            let row = session.query_one(select, &[(&self.inbox, Type::INT8)])?;
            Ok(number(session.column(&row, "last_seq")?))
        })
    }

    fn give_back(&self) -> Result<()> {
        let free = "UPDATE @.mail_inboxes SET reader = NULL, reader_who = NULL, \
             reader_backend = NULL, reader_until = NULL WHERE id = $1 AND reader = $2";
        self.database.change_at_once(
            |session| {
                let params = [(&self.inbox as _, Type::INT8), (&self.id as _, Type::UUID)];
                session.execute(free, &params)?;
                Ok(())
            },
            |_| Ok(None),
        )
    }
}

fn lease_ms() -> i64 {
    i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX)
}

/// The name of this process in errors of other readers.
fn this_process() -> String {
    let pid = std::process::id();
    match store::host_name() {
        Some(host) => format!("process {pid} on {host}"),
        None => format!("process {pid}"),
    }
}
