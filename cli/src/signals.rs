//! Ctrl-C and SIGTERM for commands that run until they are told to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use store::Failure;

use crate::exit::Exit;

/// Remembers the signal that asked the command to end.
#[derive(Debug, Clone)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// From now on signals are remembered instead of ending the process.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM] {
            let value = usize::try_from(number).unwrap_or_default();
            signal_hook::flag::register_usize(number, Arc::clone(&signal), value)
                .map_err(|error| Failure::failed("io", format!("signals: {error}")))?;
        }
        Ok(Self(signal))
    }

    /// The signal that came since the last call, if one did.
    pub(crate) fn take(&self) -> Option<u8> {
        match self.0.swap(0, Ordering::Relaxed) {
            0 => None,
            number => u8::try_from(number).ok(),
        }
    }

    /// The exit code to end with, if a signal came.
    pub(crate) fn came(&self) -> Option<Exit> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Signal(u8::try_from(number).unwrap_or_default())),
        }
    }
}
