//! A sign that an agent in this process still moves.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// State outside the transcript that a resumed agent needs. Only its runtime can look into it; the
/// first caller that takes it has it.
#[derive(Debug, Clone)]
pub struct Known(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl Known {
    /// Wraps the state.
    pub fn new(known: Box<dyn Any + Send>) -> Self {
        Self(Arc::new(Mutex::new(Some(known))))
    }

    /// An empty state.
    fn nothing() -> Self {
        Self(Arc::default())
    }

    /// The state, for the first caller.
    pub fn take(&self) -> Option<Box<dyn Any + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, known: Box<dyn Any + Send>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }
}

/// Beats as long as the thread of an agent's loop comes back to its scheduler.
#[derive(Debug, Clone)]
pub struct Pulse {
    began: Instant,
    /// The time of the last beat, in milliseconds since it began.
    last: Arc<AtomicU64>,
    /// Its state while it has no thread.
    asleep: Known,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            last: Arc::default(),
            asleep: Known::nothing(),
        }
    }
}

impl Pulse {
    /// The time between two beats.
    pub const BEAT: Duration = Duration::from_secs(1);

    /// Notes that it moves.
    pub fn beat(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    /// Notes that it has no thread until it is woken, so nothing can block it; `known` is the state
    /// it continues with.
    pub fn rest(&self, known: Box<dyn Any + Send>) {
        self.asleep.put(known);
        self.last.store(u64::MAX, Ordering::Relaxed);
    }

    /// The state with which a woken agent continues; `None` if another one has taken over its
    /// conversation.
    pub fn wake(&self) -> Option<Box<dyn Any + Send>> {
        let known = self.asleep.take()?;
        self.beat();
        Some(known)
    }

    /// Takes the state of an agent that has no thread: it does not wake any more, and another one
    /// can continue its conversation.
    pub(crate) fn take_over(&self) -> Option<Known> {
        self.asleep.take().map(Known::new)
    }

    /// True if it has no thread at the moment.
    pub fn is_at_rest(&self) -> bool {
        self.last.load(Ordering::Relaxed) == u64::MAX
    }

    /// The time since it last moved.
    pub fn silent_for(&self) -> Duration {
        let last = self.last.load(Ordering::Relaxed);
        Duration::from_millis(self.now().saturating_sub(last))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
