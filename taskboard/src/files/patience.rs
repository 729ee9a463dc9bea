//! Waiting for another process, with a limit.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use store::StoreError;
use store::lock::DEFAULT_TIMEOUT;
use store::lockdir::STALE_AFTER;

use crate::error::BoardError;
use crate::files::Files;

/// Waiting for another tool, outside the lock: one task in its hands must not stop the rest.
pub(crate) struct Patience {
    what: String,
    started: Instant,
    limit: Duration,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(files: &Files) -> Self {
        Self {
            what: files.lock_name(),
            started: Instant::now(),
            // A lock directory of a killed process is free after STALE_AFTER at the latest, so
            // waiting a little longer than that means never failing because of one. Only a caller
            // that asked for less gets less.
            limit: match files.options.lock_timeout {
                short if short < DEFAULT_TIMEOUT => short,
                long => long.max(STALE_AFTER + Duration::from_secs(2)),
            },
            pause: Duration::from_micros(300),
        }
    }

    /// Pauses, or fails when it has taken too long.
    pub(crate) fn wait(&mut self, path: PathBuf, age: Duration) -> Result<(), BoardError> {
        let waited = self.started.elapsed();
        if waited > self.limit {
            let holder = format!(
                "another tool, which last touched it {:.1} s ago",
                age.as_secs_f32()
            );
            let what = self.what.clone();
            return Err(StoreError::LockTimeout {
                what,
                path,
                holder,
                waited,
            }
            .into());
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(Duration::from_millis(4));
        Ok(())
    }
}
