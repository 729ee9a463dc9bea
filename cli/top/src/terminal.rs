//! The terminal while the view has it, and its restoration: at the end, after a panic, a signal or
//! Ctrl-Z, and by another process if this one is killed.

use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::restorer::{LEAVE, Restorer};

/// The alternate screen, no cursor, and pasted text marked as such.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[2J";

/// Maximum wait for the drawing thread before another thread restores the terminal.
const PATIENCE: Duration = Duration::from_millis(300);

/// Maximum number of lines kept while nothing can be printed.
const MOST_HELD_BACK: usize = 50;

/// The screen that has the terminal now: a process has one terminal.
static CURRENT: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// Lines of other threads, kept while nothing can be printed.
static HELD_BACK: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The terminal, as long as the view has it. Dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    before: Termios,
    state: Mutex<State>,
    /// The thread that draws.
    thread: ThreadId,
}

#[derive(Debug)]
struct State {
    /// True if the terminal is in the view's mode.
    entered: bool,
    restorer: Option<Restorer>,
}

/// True if a view can be shown: a person at a terminal that can do more than print.
pub fn is_possible() -> bool {
    let terminal =
        io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    terminal && !dumb
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let shared = Arc::new(Shared {
            before,
            state: Mutex::new(State {
                entered: false,
                // The view works without it: then only a kill -9 leaves the terminal unrestored.
                restorer: Restorer::start()
                    .inspect_err(|error| tracing::debug!(%error, "no restorer"))
                    .ok(),
            }),
            thread: std::thread::current().id(),
        });
        *lock(&CURRENT) = Some(Arc::clone(&shared));
        watch_panics();
        let screen = Self { shared };
        screen.again()?;
        Ok(screen)
    }

    /// Restores the terminal until [`Self::again`].
    pub(crate) fn leave(&self) {
        self.shared.leave(&mut lock(&self.shared.state));
    }

    /// Takes the terminal again.
    pub(crate) fn again(&self) -> io::Result<()> {
        let mut state = lock(&self.shared.state);
        if let Some(restorer) = &mut state.restorer {
            restorer.entered(true);
        }
        state.entered = true;
        let mut ours = self.shared.before.clone();
        ours.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &ours)?;
        print(ENTER)
    }

    /// Runs `draw` while no other thread restores the terminal; does nothing if one has.
    pub(crate) fn while_ours<T>(&self, draw: impl FnOnce() -> io::Result<T>) -> io::Result<()> {
        let state = lock(&self.shared.state);
        if state.entered {
            draw()?;
        }
        Ok(())
    }
}

impl Shared {
    fn leave(&self, state: &mut State) {
        if !std::mem::replace(&mut state.entered, false) {
            return;
        }
        // A terminal that has gone needs nothing.
        print(LEAVE).ok();
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
        if let Some(restorer) = &mut state.restorer {
            restorer.entered(false);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
        lock(&self.shared.state).restorer = None;
        *lock(&CURRENT) = None;
        for text in std::mem::take(&mut *lock(&HELD_BACK)) {
            writeln!(io::stderr(), "{text}").ok();
        }
    }
}

/// Restores the terminal from any thread, because the process ends now.
pub(super) fn give_back() {
    let current = try_lock(&CURRENT).and_then(|current| current.clone());
    let Some(shared) = current else {
        return;
    };
    match try_lock(&shared.state) {
        Some(mut state) => shared.leave(&mut state),
        // The drawing thread is stuck, so the terminal most likely is.
        None => {
            tcsetattr(io::stdin(), OptionalActions::Now, &shared.before).ok();
        }
    }
}

/// Keeps a line until the view is closed. Returns it if no view is open.
pub fn hold_back(text: String) -> Option<String> {
    if lock(&CURRENT).is_none() {
        return Some(text);
    }
    let mut held_back = lock(&HELD_BACK);
    // The first ones name the cause; no person reads hundreds.
    if held_back.len() < MOST_HELD_BACK {
        held_back.push(text);
    }
    None
}

/// Restores the terminal before a panic of the drawing thread is printed; keeps a panic of another
/// thread until it can be read.
fn watch_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let current = try_lock(&CURRENT).and_then(|current| current.clone());
            let draws = current.is_none_or(|it| it.thread == std::thread::current().id());
            if draws {
                give_back();
                before(info);
            } else if let Some(text) = hold_back(info.to_string()) {
                writeln!(io::stderr(), "{text}").ok();
            }
        }));
    });
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the lock, at most the patience; `None` if another thread still holds it.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let end = Instant::now() + PATIENCE;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}
