//! Finding what is left of a run when everybody who knew its processes is dead.
//!
//! Every process of an agent has the run's id in its environment, and passes it on.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use super::family::{all_processes, descendants, wait_readable};

/// The variable that marks processes of a run.
pub const MARKER: &str = "CCB_RUN_ID";

/// Kills everything that has the marker of this run, and everything below, until nothing is
/// left. Only for a run nobody supervises any more. Never kills the caller. Says which were left
/// at `limit`.
pub fn sweep(run: &str, limit: Duration) -> Vec<Pid> {
    let deadline = Instant::now() + limit;
    let wanted = format!("{MARKER}={run}");
    let caller = rustix::process::getpid();
    loop {
        let mut targets: HashSet<Pid> = HashSet::new();
        let mut below: HashSet<Pid> = HashSet::new();
        for pid in all_processes() {
            if has_variable(pid, wanted.as_bytes()) {
                targets.insert(pid);
                below.extend(descendants(pid));
            }
        }
        targets.extend(&below);
        targets.remove(&caller);
        let mut dying = Vec::new();
        for pid in targets {
            let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            // Looked at again, now that the id cannot become somebody else's unnoticed.
            let still = has_variable(pid, wanted.as_bytes()) || below.contains(&pid);
            if still && rustix::process::pidfd_send_signal(&handle, Signal::KILL).is_ok() {
                dying.push((pid, handle));
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        dying.retain(|(_, handle)| !wait_readable(handle, left));
        if dying.is_empty() && !marked_left(&wanted, caller) {
            return Vec::new();
        }
        if Instant::now() >= deadline {
            return dying.into_iter().map(|(pid, _)| pid).collect();
        }
    }
}

/// Whether somebody was started while others were killed.
fn marked_left(wanted: &str, caller: Pid) -> bool {
    all_processes()
        .into_iter()
        .any(|pid| pid != caller && has_variable(pid, wanted.as_bytes()))
}

/// Whether a process of this user that runs has this in its environment.
fn has_variable(pid: Pid, wanted: &[u8]) -> bool {
    let dir = format!("/proc/{}", pid.as_raw_nonzero());
    let ours =
        fs::metadata(&dir).is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw());
    // One that has ended has no environment any more.
    ours && fs::read(format!("{dir}/environ")).is_ok_and(|environ| {
        environ
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted)
    })
}
