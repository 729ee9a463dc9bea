//! The mode of the terminal: without echo and line editing, which ccb does itself.

use std::sync::{Arc, Mutex, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTSTP;
use signal_hook::iterator::{Handle, Signals};

/// Keys come one by one and are not echoed. Ctrl-C and Ctrl-Z remain signals.
#[derive(Debug)]
pub(super) struct Mode {
    saved: Arc<Saved>,
    stops: Handle,
}

#[derive(Debug)]
struct Saved {
    before: Termios,
    /// True while the terminal is in our mode.
    entered: Mutex<bool>,
}

impl Mode {
    pub(super) fn enter() -> Option<Self> {
        let before = tcgetattr(std::io::stdin()).ok()?;
        let saved = Arc::new(Saved {
            before,
            entered: Mutex::new(false),
        });
        let mut signals = Signals::new([SIGTSTP]).ok()?;
        let stops = signals.handle();
        saved.enter();
        let for_stops = Arc::clone(&saved);
        // Restores the terminal before a signal stops the process, and takes it again afterwards.
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let entered = for_stops.leave();
                signal_hook::low_level::emulate_default_handler(signal).ok();
                if entered {
                    for_stops.enter();
                    super::above(|| {});
                }
            }
        });
        Some(Self { saved, stops })
    }

    /// Restores the terminal.
    pub(super) fn leave(&self) {
        self.saved.leave();
    }

    /// Enters our mode again.
    pub(super) fn again(&self) {
        self.saved.enter();
    }
}

impl Saved {
    fn enter(&self) {
        let mut entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ours = self.before.clone();
        ours.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        *entered = tcsetattr(std::io::stdin(), OptionalActions::Now, &ours).is_ok();
    }

    /// Restores the terminal; true if it was in our mode.
    fn leave(&self) -> bool {
        let mut entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        if *entered {
            tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before).ok();
        }
        std::mem::replace(&mut entered, false)
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        self.stops.close();
        self.saved.leave();
    }
}
