//! Ringing for a reader when mail comes, and keeping its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use database::Listener;
use store::IoContext;
use store::fifo::{self, Bell, PipeRinger};

use super::inbox::DatabaseInbox;
use super::reader::{Lease, RENEW};
use crate::error::{MailError, Result};

/// Maximum time to wait for a notification of new mail before reading the table.
const LOOK: Duration = Duration::from_secs(1);

/// A thread that listens, and reads the table now and then, as long as the inbox has a reader.
#[derive(Debug)]
pub(super) struct Watcher {
    bell: Bell,
    stopped: Arc<AtomicBool>,
}

impl Watcher {
    pub(super) fn start(inbox: &DatabaseInbox, lease: Lease) -> Result<Self> {
        let (bell, ringer) = fifo::pipe()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let mut listener = inbox.database.listen(&inbox.channel());
        // Now and not on the thread, so that what is sent from now on is heard.
        listener.prepare();
        let watch = Watch {
            lease,
            listener,
            ringer,
            stopped: Arc::clone(&stopped),
            last: 0,
        };
        std::thread::Builder::new()
            .name("mail".into())
            .spawn(move || watch.run())
            .context("start a thread for", &inbox.dir)
            .map_err(MailError::from)?;
        Ok(Self { bell, stopped })
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The thread ends a moment later.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

struct Watch {
    lease: Lease,
    listener: Listener,
    ringer: PipeRinger,
    stopped: Arc<AtomicBool>,
    /// Up to this message the reader was rung for.
    last: u64,
}

impl Watch {
    fn run(mut self) {
        let mut renewed = Instant::now();
        while !self.stopped.load(Ordering::SeqCst) {
            let due = renewed.elapsed() >= RENEW;
            let looked = if due {
                self.lease.renew()
            } else {
                self.lease.last_seq().map(Some)
            };
            match looked {
                Ok(Some(last)) => {
                    if due {
                        renewed = Instant::now();
                    }
                    if last > self.last {
                        self.last = last;
                        self.ringer.ring();
                    }
                }
                // Another process is the reader: this one finds out at its next read.
                Ok(None) => {
                    self.ringer.ring();
                    return;
                }
                Err(error) => tracing::debug!(%error, "cannot look for mail"),
            }
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            self.listener.wait(LOOK);
        }
    }
}
