//! Guards that wait for their next run, in a process that starts many.
//!
//! A guard and its host are two starts of a program, which is more than supervising a short command
//! takes. So a director keeps those whose run is over for the next one. They end when their end of
//! the socket is closed: when they have had nothing to do for a while, and with the director.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use store::atomic;
use swarm::environment::for_supervisors;
use swarm::process::{pair, receive};
use swarm::run::{HandedRun, RunDir};
use swarm::starter;

use crate::env::OWN_PROGRAM;
use crate::identity::GUARD;

/// The message of a guard that has taken a run.
pub(super) const TAKEN: &[u8] = b"taken";
/// The message of a guard that has finished its run.
pub(super) const FREE: &[u8] = b"free";

/// Maximum time a guard without a run is kept.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// A guard that may see to another run.
#[derive(Debug)]
struct Kept {
    socket: OwnedFd,
    /// The time when it became free; `None` while it has a run.
    free_since: Option<Instant>,
}

/// The guards of the runs that this process has started.
#[derive(Debug, Default)]
pub(super) struct Guards(Mutex<Vec<Kept>>);

impl Guards {
    /// A guard without a run, for the caller alone.
    fn take(&self) -> Option<OwnedFd> {
        let mut kept = self.look();
        let free = kept.iter().rposition(|it| it.free_since.is_some())?;
        Some(kept.swap_remove(free).socket)
    }

    /// It has a run, and will be free again.
    fn keep(&self, socket: OwnedFd) {
        let free_since = None;
        self.lock().push(Kept { socket, free_since });
    }

    /// Lets those go that have had nothing to do for a while.
    pub(super) fn rest(&self) {
        let over = |since: Instant| since.elapsed() >= KEPT_FOR;
        self.look().retain(|it| !it.free_since.is_some_and(over));
    }

    /// All guards that are left, with their messages since the last read.
    fn look(&self) -> MutexGuard<'_, Vec<Kept>> {
        let mut kept = self.lock();
        kept.retain_mut(|it| {
            if it.free_since.is_none() && is_ready(&it.socket) {
                let said = receive(&it.socket).ok().flatten();
                if said.is_none_or(|said| said.bytes != FREE) {
                    // It has died, or finished a run whose host had.
                    return false;
                }
                it.free_since = Some(Instant::now());
            }
            true
        });
        kept
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if a message has arrived, or the other end is closed.
fn is_ready(socket: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    let now = Timespec::default();
    rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
}

/// Gives the run to a guard and waits until the guard has passed it on, or dies. `environment` is
/// handed over where no other process can see it; the guard's own shows next to nothing. If there
/// are `guards`, one of them is used, and kept for the next run.
pub(super) fn start_guard(
    guards: Option<&Guards>,
    run: &RunDir,
    alive: File,
    environment: &[(OsString, OsString)],
) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    // Made here, so that what keeps it from being made is known here.
    atomic::open_private(&run.log_path()).map_err(|error| words(&error))?;
    let environment_file = starter::hand_over(environment).map_err(|error| words(&error))?;
    let handed = HandedRun {
        dir: run.path().to_owned(),
        alive: alive.into(),
        environment: environment_file.into(),
    };
    while let Some(socket) = guards.and_then(Guards::take) {
        if handed.send(&socket).is_err() {
            // It died while it had nothing to do.
            continue;
        }
        if !was_taken(&socket) {
            return Err("its guard died".into());
        }
        if let Some(guards) = guards {
            guards.keep(socket);
        }
        return Ok(());
    }
    let not_started = |error| format!("its guard could not be started: {error}");
    let (socket, mut guard) = new_guard(run, environment).map_err(not_started)?;
    if handed.send(&socket).is_ok() && was_taken(&socket) {
        // The guard is reaped by the process that inherits it, or by the next call.
        reap_later(guard);
        if let Some(guards) = guards {
            guards.keep(socket);
        }
        return Ok(());
    }
    let how = guard.wait().map_err(|error| error.to_string())?;
    Err(format!("its guard died ({how})"))
}

fn was_taken(guard: impl AsFd) -> bool {
    let said = receive(guard).ok().flatten();
    said.is_some_and(|said| said.bytes == TAKEN)
}

fn new_guard(run: &RunDir, environment: &[(OsString, OsString)]) -> io::Result<(OwnedFd, Child)> {
    let (ours, theirs) = pair()?;
    let guard = Command::new(OWN_PROGRAM)
        .arg(GUARD)
        .arg(run.runs_dir())
        // The guard does not depend on its directory, and keeps no other directory busy.
        .current_dir(Path::new("/"))
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env_clear()
        .envs(for_supervisors(environment.iter().cloned()))
        .spawn()?;
    Ok((ours, guard))
}

/// A process that starts many runs must not collect zombies of ended ones.
pub(super) fn reap_later(guard: Child) {
    static GUARDS: Mutex<Vec<Child>> = Mutex::new(Vec::new());
    let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
    guards.push(guard);
    guards.retain_mut(|guard| matches!(guard.try_wait(), Ok(None)));
}
