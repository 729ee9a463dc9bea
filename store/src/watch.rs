//! "Something changed, look again" for one directory, or for many.
//!
//! Events are hints and nothing more: queues overflow, file systems differ, and a user may have
//! only 128 watchers. A tick stands behind them, faster if no watcher could be had.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// Maximum of names that are kept; a look at everything costs no more than a look at so many.
const MOST_NAMES: usize = 256;

/// The places that may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// These entries of the directory, and no others since the last look.
    At(BTreeSet<OsString>),
    /// Any place.
    Everywhere,
}

impl Default for Look {
    fn default() -> Self {
        Self::At(BTreeSet::new())
    }
}

impl Look {
    /// Adds the places of `other`.
    pub fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::At(names), Self::At(more)) if names.len() + more.len() <= MOST_NAMES => {
                names.extend(more);
            }
            _ => *self = Self::Everywhere,
        }
    }

    /// True if nothing may have changed.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::At(names) if names.is_empty())
    }

    /// The places that an event names.
    fn of(event: notify::Result<notify::Event>) -> Self {
        match event {
            // Our own reading makes access events, which say nothing.
            Ok(event) if event.kind.is_access() => Self::default(),
            // Events were lost, or the directory itself changed.
            Ok(event) if event.need_rescan() || event.paths.is_empty() => Self::Everywhere,
            Ok(event) => {
                let names = event.paths.iter().map(|path| path.file_name());
                let names: Option<BTreeSet<_>> = names.map(|name| Some(name?.to_owned())).collect();
                names.map_or(Self::Everywhere, Self::At)
            }
            Err(_) => Self::Everywhere,
        }
    }
}

/// Waits for changes in a directory.
#[derive(Debug)]
pub struct DirWatch {
    events: mpsc::Receiver<()>,
    /// The places that the last hints were about.
    hinted: Arc<Mutex<Look>>,
    tick: Duration,
    looked: Instant,
    // Held so that watching continues.
    _watcher: Option<RecommendedWatcher>,
    _sender: mpsc::SyncSender<()>,
}

impl DirWatch {
    /// Watches `dir` (not what is below its sub-directories); never fails.
    pub fn new(dir: &Path) -> Self {
        // One waiting hint is enough: it says "look again", not what happened.
        let (sender, events) = mpsc::sync_channel(1);
        let hints = sender.clone();
        let hinted = Arc::new(Mutex::new(Look::default()));
        let seen = Arc::clone(&hinted);
        let watcher = notify::recommended_watcher(move |event| {
            let look = Look::of(event);
            if !look.is_empty() {
                let mut all = seen.lock().unwrap_or_else(PoisonError::into_inner);
                all.add(look);
                drop(all);
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
            hinted,
            tick,
            looked: Instant::now(),
            _watcher: watcher,
            _sender: sender,
        }
    }

    /// Waits for a hint or the tick, at most `limit`; true if it is time to look.
    pub fn wait(&mut self, limit: Duration) -> bool {
        !self.wait_where(limit).is_empty()
    }

    /// The same; returns the places to look at. Hints do not delay the tick, because it is there
    /// for what they leave out.
    pub fn wait_where(&mut self, limit: Duration) -> Look {
        let until_tick = self.tick.saturating_sub(self.looked.elapsed());
        self.events.recv_timeout(until_tick.min(limit)).ok();
        let mut hinted = self.hinted.lock().unwrap_or_else(PoisonError::into_inner);
        let look = std::mem::take(&mut *hinted);
        drop(hinted);
        if self.looked.elapsed() < self.tick && look != Look::Everywhere {
            return look;
        }
        self.looked = Instant::now();
        Look::Everywhere
    }
}

/// Hints for many directories, until it is dropped. It needs a thread and one of the few watchers a
/// user may have, so it is for views that wait long.
#[derive(Debug)]
pub struct Hints {
    came: Arc<AtomicBool>,
    complete: bool,
    // Held so that watching continues.
    _watcher: Option<RecommendedWatcher>,
}

impl Hints {
    /// Watches `dirs` (not what is below their sub-directories); never fails. `tell` is called
    /// when something changed, from another thread, and then not again before [`Self::take`].
    pub fn new(dirs: &[PathBuf], tell: impl Fn() + Send + 'static) -> Self {
        let came = Arc::new(AtomicBool::new(false));
        let hint = Arc::clone(&came);
        let made = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reading makes access events, which say nothing.
            let says_nothing = matches!(&event, Ok(event) if event.kind.is_access());
            if !says_nothing && !hint.swap(true, Ordering::AcqRel) {
                tell();
            }
        });
        let mut complete = made.is_ok();
        let mut watcher = made.ok();
        for dir in dirs {
            let Some(watcher) = &mut watcher else {
                break;
            };
            // The tick looks for a directory that is missing now.
            if let Err(error) = watcher.watch(dir, RecursiveMode::NonRecursive) {
                complete &= matches!(error.kind, notify::ErrorKind::PathNotFound) || !dir.exists();
            }
        }
        Self {
            came,
            complete,
            _watcher: watcher,
        }
    }

    /// True if all of the directories are watched.
    pub fn are_complete(&self) -> bool {
        self.complete
    }

    /// True if something changed since the last call.
    pub fn take(&self) -> bool {
        self.came.swap(false, Ordering::AcqRel)
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

    #[test]
    fn a_hint_names_what_changed_and_the_tick_everything() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = DirWatch::new(dir.path());
        watch.tick = Duration::from_secs(3600);
        std::fs::create_dir(dir.path().join("new")).unwrap();
        let new = Look::At(["new".into()].into());
        assert_eq!(watch.wait_where(Duration::from_secs(60)), new);
        watch.tick = Duration::ZERO;
        assert_eq!(watch.wait_where(Duration::from_secs(60)), Look::Everywhere);
    }

    #[test]
    fn many_names_are_everything() {
        let names = |of: std::ops::Range<usize>| of.map(|n| n.to_string().into()).collect();
        let mut look = Look::At(names(0..MOST_NAMES));
        look.add(Look::At(names(0..1)));
        assert_eq!(look, Look::Everywhere);
        look.add(Look::default());
        assert_eq!(look, Look::Everywhere);
    }

    #[test]
    fn many_directories_are_watched_and_the_hint_comes_once_until_it_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let dirs: Vec<PathBuf> = ["a", "b", "gone"].map(|name| dir.path().join(name)).into();
        std::fs::create_dir(&dirs[0]).unwrap();
        std::fs::create_dir(&dirs[1]).unwrap();
        let (sender, told) = mpsc::channel();
        let hints = Hints::new(&dirs, move || sender.send(()).unwrap());
        assert!(hints.are_complete());
        assert!(!hints.take());
        std::fs::create_dir(dirs[1].join("new")).unwrap();
        told.recv_timeout(Duration::from_secs(60)).unwrap();
        std::fs::create_dir(dirs[0].join("new")).unwrap();
        assert!(hints.take());
    }
}
