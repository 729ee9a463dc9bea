//! Reading an inbox that is kept in files.

use std::sync::Arc;

use store::StoreError;
use store::fifo::Bell;
use store::lock::FileLock;
use store::shared_log::SyncHandle;

use crate::consumer::Consumer;
use crate::cursor::Cursor;
use crate::error::{MailError, Result};
use crate::files::inbox::{FileInbox, sweep};
use crate::files::live::Live;
use crate::line::{Scan, Scanned};
use crate::source::{Fetched, Source};

/// The log of an inbox, read from the beginning to the end.
#[derive(Debug)]
struct FileSource {
    inbox: Arc<FileInbox>,
    /// Up to which byte of which log it has read.
    read_to: u64,
    incarnation: u64,
    /// True if it has seen damaged lines that are still in the log.
    damaged: bool,
    log: Option<SyncHandle>,
    bell: Bell,
    _lease: FileLock,
}

impl FileInbox {
    /// Becomes the inbox's reader; refused while another process is.
    pub(super) fn read(self: Arc<Self>) -> Result<Consumer> {
        // Makes the inbox, so that its files have a place.
        self.section(|_| Ok(()))?;
        let timeout = self.options.reader_timeout;
        let lease =
            FileLock::exclusive(&self.paths.consumer, "the inbox", timeout).map_err(|error| {
                match error {
                    StoreError::LockTimeout { holder, .. } => MailError::BeingRead {
                        inbox: self.name().to_string(),
                        holder,
                    },
                    other => other.into(),
                }
            })?;
        // Only a process that died can have left files there: only the reader and the holder of the
        // lock make temporary files.
        self.section(|_| sweep(&self.paths.tmp))?;
        let cursor = Cursor::load(&self.paths.cursor)?;
        let source = FileSource {
            bell: Bell::new(&self.paths.wake)?,
            inbox: Arc::clone(&self),
            read_to: 0,
            incarnation: 0,
            damaged: false,
            log: None,
            _lease: lease,
        };
        Consumer::begin(self.name().clone(), Box::new(source), cursor)
    }
}

impl FileSource {
    fn read(&mut self, live: &Live, after: u64, fetched: &mut Fetched) -> Result<()> {
        if live.incarnation != self.incarnation {
            self.incarnation = live.incarnation;
            self.read_to = 0;
        }
        let bytes = live.log.read(self.read_to, live.log.end())?;
        let mut seen = after.max(fetched.last);
        // In another log of the same inbox, those seen before come again.
        let scan_after = if self.read_to == 0 { 0 } else { seen };
        for scanned in Scan::new(&bytes, scan_after) {
            match scanned {
                Scanned::Good(line, parsed) => {
                    let seq = parsed.message.seq;
                    if seq > seen {
                        seen = seq;
                        let length = line.len() as u64 + 1;
                        fetched.messages.push((parsed.message, length));
                    }
                }
                Scanned::Bad(..) => fetched.rejected += 1,
            }
        }
        fetched.last = seen;
        self.read_to = live.log.end();
        Ok(())
    }
}

impl Source for FileSource {
    fn fetch(&mut self, after: u64) -> Result<Fetched> {
        let inbox = Arc::clone(&self.inbox);
        inbox.section(|live| {
            let mut fetched = Fetched::default();
            self.read(live, after, &mut fetched)?;
            self.damaged |= fetched.rejected > 0;
            if self.damaged && live.set_aside(&inbox).is_ok_and(|count| count > 0) {
                self.damaged = false;
                self.read(live, after, &mut fetched)?;
            }
            self.log = live.log.sync_handle();
            Ok(fetched)
        })
    }

    fn sync(&self) -> Result<()> {
        Ok(self.inbox.sync(self.log.as_ref())?)
    }

    fn save(&mut self, cursor: &Cursor) -> Result<()> {
        let paths = &self.inbox.paths;
        cursor.save(&paths.tmp, &paths.cursor)
    }

    /// Moves acknowledged messages to an archive once they are the larger part of a long log.
    fn keep_short(&mut self, acked: u64, waiting: u64) -> Result<()> {
        self.inbox.section(|live| {
            let length = live.log.end();
            if length >= self.inbox.options.limits.rotate_bytes && waiting * 2 < length {
                live.rotate(&self.inbox, acked)?;
            }
            Ok(())
        })
    }

    fn now_ms(&self) -> i64 {
        self.inbox.now_ms()
    }

    fn bell(&self) -> &Bell {
        &self.bell
    }
}
