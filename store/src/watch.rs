//! "Something changed, look again" for one directory.
//!
//! Events are hints and nothing more: queues overflow, file systems differ, and a user may
//! have only 128 watchers. A tick stands behind them, faster when no watcher could be had.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// Waits for changes in a directory.
#[derive(Debug)]
pub struct DirWatch {
    events: mpsc::Receiver<()>,
    tick: Duration,
    looked: Instant,
    // Held so that watching goes on.
    _watcher: Option<RecommendedWatcher>,
    _sender: mpsc::SyncSender<()>,
}

impl DirWatch {
    /// Watches `dir` (not what is below its sub-directories); never fails.
    pub fn new(dir: &Path) -> Self {
        // One waiting hint is enough: it says "look again", not what happened.
        let (sender, events) = mpsc::sync_channel(1);
        let hints = sender.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reading makes access events, which say nothing.
            if !matches!(&event, Ok(event) if event.kind.is_access()) {
                hints.try_send(()).ok();
            }
        })
        .and_then(|mut watcher| {
            watcher.watch(dir, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        let (watcher, tick) = match watcher {
            Ok(watcher) => (Some(watcher), Duration::from_secs(2)),
            Err(error) => {
                tracing::info!(%error, dir = %dir.display(), "no watcher, looking regularly");
                (None, Duration::from_millis(250))
            }
        };
        Self {
            events,
            tick,
            looked: Instant::now(),
            _watcher: watcher,
            _sender: sender,
        }
    }

    /// Waits for a hint or the tick, at most `limit`; says whether it is time to look.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let until_tick = self.tick.saturating_sub(self.looked.elapsed());
        let hint = self.events.recv_timeout(until_tick.min(limit)).is_ok();
        let look = hint || self.looked.elapsed() >= self.tick;
        if look {
            self.looked = Instant::now();
        }
        look
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_falls_back_to_the_tick() {
        let mut watch = DirWatch::new(Path::new("/nonexistent/dir"));
        assert!(
            !watch.wait(Duration::from_millis(1)),
            "the limit is not a reason to look"
        );
        assert!(watch.wait(Duration::from_secs(60)), "the tick is");
    }

    #[test]
    fn a_change_is_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = DirWatch::new(dir.path());
        std::fs::create_dir(dir.path().join("new")).unwrap();
        assert!(watch.wait(Duration::from_secs(60)));
    }
}
