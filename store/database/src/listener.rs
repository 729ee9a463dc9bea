//! Notifications that something changed.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::connection::{Connection, Session};
use crate::database::Database;
use crate::error::DatabaseError;

/// Waits for notifications on a channel. They are only hints: behind PgBouncer none ever arrives,
/// and those sent while the link is down are lost. The tables are the truth, so every waiter also
/// reads them now and then.
pub struct Listener {
    database: Database,
    channel: String,
    line: Option<Line>,
    /// No reconnection before this moment.
    not_before: Option<Instant>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener")
            .field("channel", &self.channel)
            .finish()
    }
}

struct Line {
    connection: Connection,
    heard: Receiver<()>,
    /// True if a notification has arrived, so notifications do arrive.
    works: bool,
}

/// Poll interval where every notification arrives.
const SLOW: Duration = Duration::from_secs(1);
/// Poll interval where notifications may be lost.
const QUICK: Duration = Duration::from_millis(200);
const CONNECT_AGAIN: Duration = Duration::from_secs(5);

impl Database {
    /// Listens to `channel`, which must be a plain lower-case name.
    pub fn listen(&self, channel: &str) -> Listener {
        Listener {
            database: self.clone(),
            channel: channel.to_owned(),
            line: None,
            not_before: None,
        }
    }
}

impl Listener {
    /// Connects now, so that later notifications are heard. A failure is no error: then
    /// [`wait`](Self::wait) is short.
    pub fn prepare(&mut self) {
        let due = self.not_before.is_none_or(|at| at <= Instant::now());
        let gone = self
            .line
            .as_ref()
            .is_none_or(|line| line.connection.is_closed());
        if !gone || !due {
            return;
        }
        self.line = None;
        self.not_before = Some(Instant::now() + CONNECT_AGAIN);
        match self.call() {
            Ok(line) => self.line = Some(line),
            Err(error) => tracing::debug!(%error, "no connection for notifications"),
        }
    }

    /// Waits at most `limit` until something may have changed; true if a notification arrived. The
    /// caller reads the tables in both cases.
    pub fn wait(&mut self, limit: Duration) -> bool {
        self.prepare();
        let Some(line) = &mut self.line else {
            std::thread::sleep(limit.min(QUICK));
            return false;
        };
        let limit = limit.min(if line.works { SLOW } else { QUICK });
        match line.heard.recv_timeout(limit) {
            Ok(()) => {
                line.works = true;
                // One read of the tables is enough for all notifications so far.
                while line.heard.try_recv().is_ok() {}
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                self.line = None;
                std::thread::sleep(limit.min(QUICK));
                false
            }
        }
    }

    fn call(&self) -> Result<Line, DatabaseError> {
        let deadline = Instant::now() + CONNECT_AGAIN;
        let settings = self.database.settings();
        let (tell, heard) = channel();
        let connection = Connection::open(settings, Some(tell), deadline)?;
        let session = Session {
            connection: &connection,
            settings,
            deadline,
            broken: std::cell::Cell::new(false),
        };
        session.batch(&format!("LISTEN {}", self.channel))?;
        // A notification of one's own shows if they arrive here at all. It is sent on another link:
        // where transactions are pooled, one sent on this link would come back with its answer, and
        // no other ever would.
        let word = format!("NOTIFY {}", self.channel);
        self.database.read(|session| session.batch(&word))?;
        Ok(Line {
            connection,
            heard,
            works: false,
        })
    }
}
