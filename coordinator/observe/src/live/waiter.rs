//! Waits until something may have changed.
//!
//! While much happens, events are useless: a view would receive thousands a second to learn that a
//! look is due, which it knows anyway. So as long as looks find changes, the next one simply
//! follows after the pace; later, if looks are expensive, because hundreds of agents work. Only
//! after a few looks without changes does the system watch the directories, and then nothing runs
//! until an event or a slow tick.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::watch::Hints;

/// Interval between two looks while something happens.
const PACE: Duration = Duration::from_millis(100);
/// Looks take at most 1/`SHARE` of a processor's time.
const SHARE: u32 = 40;
/// Maximum interval between two looks, however expensive they are.
const SLOWEST: Duration = Duration::from_secs(1);
/// Number of looks without changes after which the system is asked to watch.
const QUIET: u32 = 5;
/// Poll interval for changes without an event (a process that died, a file system without events).
const TICK: Duration = Duration::from_secs(2);
/// The same if the system cannot watch.
const POLL: Duration = Duration::from_millis(500);

/// The reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// It is time to look again.
    Look,
    /// Another thread rang ([`WaiterBell::ring`]).
    Rung,
    /// The time is over.
    TimeUp,
}

/// The state that looks and waits share.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The directories in which changes are possible.
    pub(super) dirs: Vec<PathBuf>,
    /// Number of consecutive looks that found nothing.
    pub(super) quiet: u32,
    /// True if changes happen in places the system cannot watch.
    pub(super) elsewhere: bool,
}

/// The interval between two looks, if a look, and its use by the view, took this much of the
/// processor's time.
fn distance(took: Duration) -> Duration {
    let fair = took.saturating_mul(SHARE).min(SLOWEST);
    PACE.max(fair)
}

/// Waits on a thread of its own for the next time to look.
#[derive(Debug)]
pub struct Waiter {
    pace: Arc<Mutex<Pace>>,
    sender: SyncSender<()>,
    rings: Receiver<()>,
    watch: Option<(Vec<PathBuf>, Hints)>,
    looked: Instant,
    /// The processor's time of this thread when the last wait ended.
    worked: Duration,
}

/// Ends a wait from any thread.
#[derive(Debug, Clone)]
pub struct WaiterBell(SyncSender<()>);

impl WaiterBell {
    /// Ends the present wait, or the next one if no thread waits.
    pub fn ring(&self) {
        self.0.try_send(()).ok();
    }
}

impl Waiter {
    pub(super) fn new(pace: Arc<Mutex<Pace>>) -> Self {
        let (sender, rings) = sync_channel(1);
        Self {
            pace,
            sender,
            rings,
            watch: None,
            looked: Instant::now(),
            worked: Duration::ZERO,
        }
    }

    /// A bell with which others end a wait.
    pub fn bell(&self) -> WaiterBell {
        WaiterBell(self.sender.clone())
    }

    /// Waits until it is time to look again, a bell rings, or `limit` is over. Uses no time of the
    /// processor while nothing happens. If looks run on the same thread, the wait is longer the
    /// more they cost.
    pub fn wait(&mut self, limit: Duration) -> Woken {
        let begun = Instant::now();
        let distance = distance(processor_time().saturating_sub(self.worked));
        let (quiet, dirs, elsewhere) = {
            let pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            let dirs = (pace.quiet >= QUIET).then(|| pace.dirs.clone());
            (pace.quiet, dirs, pace.elsewhere)
        };
        let due = match dirs {
            None => {
                self.watch = None;
                distance.saturating_mul(quiet.max(1))
            }
            Some(dirs) if elsewhere => self.watch(dirs).min(POLL),
            Some(dirs) => self.watch(dirs),
        };
        let due = due.saturating_sub(self.looked.elapsed());
        let woken = match self.rings.recv_timeout(due.min(limit)) {
            Ok(()) if self.hinted() => Woken::Look,
            Ok(()) => Woken::Rung,
            Err(RecvTimeoutError::Timeout) if due <= limit => Woken::Look,
            Err(_) => Woken::TimeUp,
        };
        if woken == Woken::Look {
            // Looks keep their distance, regardless of the number of hints.
            let early = distance.saturating_sub(self.looked.elapsed());
            let left = limit.saturating_sub(begun.elapsed());
            std::thread::sleep(early.min(left));
            self.looked = Instant::now();
        }
        if woken != Woken::TimeUp {
            self.worked = processor_time();
        }
        woken
    }

    /// Has the system watch these directories; returns the longest wait.
    fn watch(&mut self, dirs: Vec<PathBuf>) -> Duration {
        if self.watch.as_ref().is_none_or(|(now, _)| *now != dirs) {
            let ring = self.sender.clone();
            let hints = Hints::new(&dirs, move || {
                ring.try_send(()).ok();
            });
            self.watch = Some((dirs, hints));
            // One more look finds changes between the last look and the start of the watch.
            return Duration::ZERO;
        }
        match self
            .watch
            .as_ref()
            .is_some_and(|(_, hints)| hints.are_complete())
        {
            true => TICK,
            false => POLL,
        }
    }

    /// True if the system rang.
    fn hinted(&self) -> bool {
        self.watch.as_ref().is_some_and(|(_, hints)| hints.take())
    }
}

/// The processor time of this thread: on a busy machine a look takes longer without costing more.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expensive_looks_come_less_often_but_come() {
        let after = |took: u64| distance(Duration::from_micros(took));
        assert_eq!(after(0), PACE);
        assert_eq!(after(2_000), PACE);
        assert_eq!(after(5_000), Duration::from_millis(200));
        assert_eq!(after(1_000_000), SLOWEST);
    }
}
