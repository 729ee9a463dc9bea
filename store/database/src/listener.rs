//! Being woken when something changes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::connection::{Connection, Session};
use crate::database::Database;
use crate::error::DatabaseError;

/// Hears that something happened on a channel. Only a hint: behind PgBouncer nothing is ever
/// heard, and what is said while the link is down is lost. The tables are the truth, so whoever
/// waits looks at them now and then in any case.
pub struct Listener {
    database: Database,
    channel: String,
    line: Option<Line>,
    /// No new line before this moment.
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
    /// It was heard speaking, so what is said does arrive.
    works: bool,
}

/// How often to look where every word arrives.
const SLOW: Duration = Duration::from_secs(1);
/// How often to look where it may not.
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
    /// Connects now, so that what happens from now on is heard. Not being able to is no error:
    /// then [`wait`](Self::wait) is short.
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
            Err(error) => tracing::debug!(%error, "nobody can be heard"),
        }
    }

    /// Waits until something may have happened, at most `limit`; whether a word was heard. Without
    /// one it is time to look anyway.
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
                // One look is enough for all that was said so far.
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
        // A word of one's own tells whether words arrive here at all. It is said on another link:
        // where transactions are pooled, what is said on this one would come back with its answer,
        // and nothing else ever would.
        let word = format!("NOTIFY {}", self.channel);
        self.database.read(|session| session.batch(&word))?;
        Ok(Line {
            connection,
            heard,
            works: false,
        })
    }
}
