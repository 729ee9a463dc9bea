//! Ends system calls that block for too long.
//!
//! The kernel's call that waits for a file lock has no time limit, and handing the wait to another
//! thread costs a change of threads per lock. So the waiting thread itself blocks, and if its time
//! is up, one watchdog thread per process sends it a signal whose handler does nothing: the call
//! returns "interrupted".
//!
//! The signal is SIGURG, which no part of ccb uses and which is ignored by default, so that a late
//! one does no harm.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Maximum delay between the deadline of a wait and its end.
const PRECISION: Duration = Duration::from_millis(20);
/// Time for which the watchdog keeps running after the last wait before it sleeps.
const LINGER: Duration = Duration::from_secs(1);

static WAITS: Mutex<BTreeMap<u64, (Pthread, Instant)>> = Mutex::new(BTreeMap::new());
static ASLEEP: AtomicBool = AtomicBool::new(false);
static WATCHDOG: LazyLock<Result<Thread, String>> =
    LazyLock::new(|| start().map_err(|error| error.to_string()));

/// A wait of the current thread; from its deadline on, the thread is interrupted again and
/// again until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    id: u64,
}

impl Waiting {
    pub(crate) fn until(deadline: Instant) -> io::Result<Self> {
        let watchdog = WATCHDOG
            .as_ref()
            .map_err(|error| io::Error::other(error.as_str()))?;
        let mut waits = waits();
        let id = waits.last_key_value().map_or(0, |(id, _)| id + 1);
        waits.insert(id, (pthread_self(), deadline));
        drop(waits);
        if ASLEEP.swap(false, Ordering::SeqCst) {
            watchdog.unpark();
        }
        Ok(Self { id })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        waits().remove(&self.id);
    }
}

fn waits() -> MutexGuard<'static, BTreeMap<u64, (Pthread, Instant)>> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> io::Result<Thread> {
    extern "C" fn nothing(_: i32) {}
    // Without SA_RESTART, or the kernel would simply restart the interrupted call.
    let action = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::empty(),
        SigSet::empty(),
    );
    #[expect(
        unsafe_code,
        reason = "a handler that does nothing is safe in every context"
    )]
    // SAFETY: the handler touches nothing, so it may interrupt anything.
    unsafe {
        sigaction(Signal::SIGURG, &action)?;
    }
    let thread = std::thread::Builder::new()
        .name("watchdog".into())
        .spawn(watch)?;
    Ok(thread.thread().clone())
}

fn watch() {
    let mut busy = Instant::now();
    loop {
        let idle = {
            let waits = waits();
            let now = Instant::now();
            for (thread, deadline) in waits.values().filter(|(_, deadline)| *deadline <= now) {
                // The thread is alive: it cannot leave without taking itself off the list.
                if let Err(error) = pthread_kill(*thread, Signal::SIGURG) {
                    tracing::error!(%error, ?deadline, "a waiting thread cannot be interrupted");
                }
            }
            if !waits.is_empty() {
                busy = now;
            }
            // Decided under the lock: a wait that comes now will see that we sleep.
            let idle = busy.elapsed() > LINGER;
            ASLEEP.store(idle, Ordering::SeqCst);
            idle
        };
        if idle {
            std::thread::park();
            busy = Instant::now();
        } else {
            std::thread::park_timeout(PRECISION);
        }
    }
}
