//! Ctrl-C and SIGTERM: for commands that run until a signal ends them, and for those in the middle
//! of something.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use store::Failure;

use crate::exit::Exit;

/// Remembers the signal that asked the command to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    number: Arc<AtomicUsize>,
    /// Set by the first signal, for a command of the user's that should end as well.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Signals {
    /// From now on ccb remembers signals instead of ending the process.
    pub(crate) fn catch() -> Result<Self, Failure> {
        CAUGHT.store(true, Ordering::SeqCst);
        let signals = Self::default();
        let failed = |error| Failure::failed("io", format!("signals: {error}"));
        for number in [SIGINT, SIGTERM] {
            let value = usize::try_from(number).unwrap_or_default();
            signal_hook::flag::register_usize(number, Arc::clone(&signals.number), value)
                .map_err(failed)?;
            signal_hook::flag::register(number, Arc::clone(&signals.stop)).map_err(failed)?;
        }
        Ok(signals)
    }

    /// The signal that came since the last call, if one did.
    pub(crate) fn take(&self) -> Option<u8> {
        match self.number.swap(0, Ordering::Relaxed) {
            0 => None,
            number => u8::try_from(number).ok(),
        }
    }

    /// The exit code to end with, if a signal came.
    pub(crate) fn came(&self) -> Option<Exit> {
        match self.number.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Signal(u8::try_from(number).unwrap_or_default())),
        }
    }
}

/// True if the command handles signals itself.
static CAUGHT: AtomicBool = AtomicBool::new(false);

/// From now on, a signal that ends this process first ends the programs that it has started: git
/// with its remote helpers, set-ups. An ignored signal (`nohup`, a shell's background job) stays
/// ignored, and a command that [catches](Signals::catch) signals handles them alone.
pub(crate) fn end_programs_first() {
    let ignored = ignored_signals();
    let numbers = [SIGHUP, SIGINT, SIGTERM];
    let wanted = numbers
        .iter()
        .filter(|number| ignored & (1 << (**number - 1)) == 0);
    let mut signals = match signal_hook::iterator::Signals::new(wanted) {
        Ok(signals) => signals,
        Err(error) => {
            tracing::warn!(%error, "a signal would not end the programs that ccb has started");
            return;
        }
    };
    std::thread::spawn(move || {
        for number in signals.forever() {
            if !CAUGHT.load(Ordering::SeqCst) {
                worktrees::end_running_programs();
                signal_hook::low_level::emulate_default_handler(number).ok();
            }
        }
    });
}

/// The signals that this process ignores, as a mask.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
