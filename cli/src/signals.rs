//! Ctrl-C and SIGTERM for commands that run until they are told to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use store::Failure;

use crate::exit::Exit;

/// Remembers the signal that asked the command to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    number: Arc<AtomicUsize>,
    /// Set by the first one, for a command of the user's that is to end as well.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Signals {
    /// From now on signals are remembered instead of ending the process.
    pub(crate) fn catch() -> Result<Self, Failure> {
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
