//! Ctrl-C and SIGTERM while a command of the user's runs in a tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use store::Failure;

use crate::exit::Exit;

/// From when it is made, signals end the command that runs and not us.
#[derive(Debug)]
pub(super) struct Signals {
    /// Set by the first one.
    pub(super) stop: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Signals {
    pub(super) fn catch() -> Result<Self, Failure> {
        let signals = Self {
            stop: Arc::default(),
            number: Arc::default(),
        };
        for number in [SIGINT, SIGTERM] {
            let value = usize::try_from(number).unwrap_or_default();
            let failed = |error| Failure::failed("io", format!("signals: {error}"));
            signal_hook::flag::register_usize(number, Arc::clone(&signals.number), value)
                .map_err(failed)?;
            signal_hook::flag::register(number, Arc::clone(&signals.stop)).map_err(failed)?;
        }
        Ok(signals)
    }

    /// How we end if there was one.
    pub(super) fn exit(&self) -> Option<Exit> {
        let number = self.number.load(Ordering::Relaxed);
        (number != 0).then(|| Exit::Signal(u8::try_from(number).unwrap_or_default()))
    }
}
