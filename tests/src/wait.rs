use std::time::{Duration, Instant};

/// Waits until `condition` holds; fails the test after `limit`.
///
/// For conditions on other processes that give no signal. Never use a plain sleep.
pub fn wait_until(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {limit:?} for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
