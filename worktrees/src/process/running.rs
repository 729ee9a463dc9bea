//! The programs that run for this process, so that a signal that ends it ends them first.
//!
//! Each is the leader of a process group of its own, which no signal to this process reaches: not a
//! SIGTERM, and not a Ctrl-C at the terminal. A git that waits for a remote would remain with the
//! helper it has started.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Time that programs have to end by themselves after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Poll interval for their end.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug)]
struct Running {
    groups: BTreeSet<i32>,
    /// True if no further program may start.
    ending: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    groups: BTreeSet::new(),
    ending: false,
});

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program in [`RUNNING`] until this is dropped.
#[derive(Debug)]
pub(super) struct Listed(i32);

impl Drop for Listed {
    fn drop(&mut self) {
        let mut running = running();
        running.groups.remove(&self.0);
        if running.ending {
            drop(running);
            // The end of the program must have no consequences: this process is as good as dead.
            thread::sleep(2 * GRACE);
        }
    }
}

/// Starts `command`, which leads a process group, unless this process is ending.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Listed)> {
    let mut running = running();
    if running.ending {
        return Err(io::Error::other("ccb is ending"));
    }
    let child = command.spawn()?;
    let id = i32::try_from(child.id()).unwrap_or_default();
    running.groups.insert(id);
    drop(running);
    Ok((child, Listed(id)))
}

/// Ends every program that runs for this process, with all processes of its group: by SIGTERM, so
/// that git removes its lock files, and by SIGKILL after two seconds. Nothing can be started
/// afterwards. For a process that is about to end because of a signal.
pub fn end_running_programs() {
    let mut left: Vec<Pid> = {
        let mut running = running();
        running.ending = true;
        let groups = running.groups.iter().copied();
        groups.filter_map(Pid::from_raw).collect()
    };
    for group in &left {
        kill_process_group(*group, Signal::TERM).ok();
    }
    let deadline = Instant::now() + GRACE;
    while !left.is_empty() && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
        left.retain(|group| test_kill_process_group(*group).is_ok());
    }
    for group in left {
        kill_process_group(group, Signal::KILL).ok();
    }
}
