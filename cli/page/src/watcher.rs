//! Reads the scene, as long as a browser shows the page.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use observe::live::{Live, WaiterBell};
use project::workplace::Workplace;
use store::Failure;
use store::clock::{Clock, SystemClock};

use super::pieces::changes;
use super::state::State;

/// Minimum time between two readings: no person sees more.
const PACE: Duration = Duration::from_millis(250);
/// Time after the last browser has gone until the watcher sleeps.
const LINGER: Duration = Duration::from_secs(10);

/// Wakes the reading thread.
#[derive(Debug, Clone)]
pub(super) struct Watcher {
    wanted: Arc<(Mutex<bool>, Condvar)>,
    bell: WaiterBell,
}

impl Watcher {
    /// Reads once, and then on its own thread whenever something may have changed, until `stop` is
    /// set.
    pub(super) fn start(
        workplace: &Workplace,
        state: &Arc<State>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let mut live = Live::open(workplace)?;
        let mut waiter = live.waiter();
        let watcher = Self {
            wanted: Arc::default(),
            bell: waiter.bell(),
        };
        let look = move |live: &mut Live, state: &State| {
            let scene = live.look(SystemClock.now_ms());
            state.put(changes(&state.scene(), &scene), scene);
        };
        look(&mut live, state);
        let (state, stop, own) = (Arc::clone(state), Arc::clone(stop), watcher.clone());
        let thread = std::thread::Builder::new().name("look".into());
        thread
            .spawn(move || {
                let mut heard = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    if state.listeners() > 0 {
                        heard = Instant::now();
                    }
                    if heard.elapsed() > LINGER {
                        own.sleep_until_wanted(&stop);
                        heard = Instant::now();
                    }
                    let begun = Instant::now();
                    look(&mut live, &state);
                    waiter.wait(Duration::from_secs(5));
                    std::thread::sleep(PACE.saturating_sub(begun.elapsed()));
                }
            })
            .map_err(|error| Failure::failed("io", format!("cannot start a thread: {error}")))?;
        Ok(watcher)
    }

    /// Requests a new reading.
    pub(super) fn wake(&self) {
        let (wanted, told) = &*self.wanted;
        *wanted.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
        self.bell.ring();
    }

    fn sleep_until_wanted(&self, stop: &AtomicBool) {
        let (wanted, told) = &*self.wanted;
        let mut wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *wanted) && !stop.load(Ordering::Relaxed) {
            let waited = told.wait_timeout(wanted, Duration::from_secs(60));
            wanted = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
