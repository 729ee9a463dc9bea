//! Whether an agent in this process still moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often it is felt.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// Beats as long as the thread of an agent's loop comes back to its scheduler.
#[derive(Debug, Clone)]
pub struct Pulse {
    began: Instant,
    /// When it last beat, in milliseconds since it began.
    last: Arc<AtomicU64>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            last: Arc::default(),
        }
    }
}

impl Pulse {
    /// It moves.
    pub(crate) fn beat(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    /// It has no thread until it is woken, so nothing can block it.
    pub(crate) fn rest(&self) {
        self.last.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether it has no thread at the moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.last.load(Ordering::Relaxed) == u64::MAX
    }

    /// How long it has not moved.
    pub fn silent_for(&self) -> Duration {
        let last = self.last.load(Ordering::Relaxed);
        Duration::from_millis(self.now().saturating_sub(last))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
