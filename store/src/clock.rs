//! Time that tests can set.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Where the current time comes from.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        Timestamp::now().as_millisecond()
    }
}

/// A clock that stands still until it is set.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now_ms`.
    pub fn at(now_ms: i64) -> Self {
        Self(AtomicI64::new(now_ms))
    }

    /// Moves it, forwards or backwards.
    pub fn set(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Nanoseconds on a clock that cannot be set and that all processes of this machine share; it
/// restarts with the machine.
pub fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// RFC 3339 in UTC with milliseconds, as in all our files.
pub fn rfc3339(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

/// Reads what [`rfc3339`] wrote, or any other RFC 3339 time.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    text.parse::<Timestamp>()
        .ok()
        .map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip_with_milliseconds() {
        assert_eq!(rfc3339(1_700_000_000_007), "2023-11-14T22:13:20.007Z");
        assert_eq!(
            parse_rfc3339("2023-11-14T22:13:20.007Z"),
            Some(1_700_000_000_007)
        );
        assert_eq!(parse_rfc3339("yesterday"), None);
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
    }
}
