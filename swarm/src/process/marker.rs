//! Finding the processes that are left of a run when guard and host are dead.
//!
//! Every process of an agent has the run's id in its environment and bears the run's mark, and
//! passes both on. One that has dropped its environment is found by its mark, one that has dropped
//! the mark by its environment.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use super::family::{all_processes, descendants, wait_readable};
use super::identity::ProcessId;
use super::mark::Mark;

/// The variable that marks processes of a run.
pub const MARKER: &str = "CCB_RUN_ID";

/// A run whose processes are searched for.
struct Wanted<'a> {
    variable: String,
    mark: Mark,
    /// Its guard or its host: nothing of the run is older.
    first: Option<&'a ProcessId>,
}

/// Kills everything that belongs to this run, and everything below, until nothing is left. Only for
/// a run without a supervisor. Never kills the caller. Returns the processes that were left after
/// `limit`.
///
/// `first` is the guard or the host of the run's present life. A process that bears the mark
/// belongs to the run only if it is not older than that, so that a limit that was set by chance
/// means nothing; without `first` only the environment counts.
pub fn sweep(run: &str, first: Option<&ProcessId>, limit: Duration) -> Vec<Pid> {
    let deadline = Instant::now() + limit;
    let wanted = Wanted {
        variable: format!("{MARKER}={run}"),
        mark: Mark::of_run(run),
        first,
    };
    let caller = rustix::process::getpid();
    loop {
        let mut targets: HashSet<Pid> = HashSet::new();
        let mut below: HashSet<Pid> = HashSet::new();
        for pid in all_processes() {
            if wanted.is(pid) {
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
            // Read again, now that the id cannot pass to another process unnoticed.
            let still = wanted.is(pid) || below.contains(&pid);
            if still && rustix::process::pidfd_send_signal(&handle, Signal::KILL).is_ok() {
                dying.push((pid, handle));
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        dying.retain(|(_, handle)| !wait_readable(handle, left));
        // A process may have started while others were killed.
        let more = || {
            all_processes()
                .into_iter()
                .any(|pid| pid != caller && wanted.is(pid))
        };
        if dying.is_empty() && !more() {
            return Vec::new();
        }
        if Instant::now() >= deadline {
            return dying.into_iter().map(|(pid, _)| pid).collect();
        }
    }
}

impl Wanted<'_> {
    /// True if a process of this user that runs belongs to the run.
    fn is(&self, pid: Pid) -> bool {
        is_ours(pid) && (has_variable(pid, self.variable.as_bytes()) || self.is_marked(pid))
    }

    fn is_marked(&self, pid: Pid) -> bool {
        let Some(first) = self.first else {
            return false;
        };
        Mark::of_process(pid) == Some(self.mark)
            && runs(pid)
            && ProcessId::of(pid)
                .is_some_and(|it| it.boot == first.boot && it.start_time >= first.start_time)
    }
}

fn is_ours(pid: Pid) -> bool {
    let dir = format!("/proc/{}", pid.as_raw_nonzero());
    fs::metadata(dir).is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
}

/// True if the process runs. One that has ended keeps its limits until its parent has waited for
/// it.
fn runs(pid: Pid) -> bool {
    let state = super::family::stat_fields(pid);
    state.is_some_and(|fields| !matches!(fields.trim_start().chars().next(), Some('Z' | 'X')))
}

/// True if a process has this in its environment. One that has ended has none any more.
fn has_variable(pid: Pid, wanted: &[u8]) -> bool {
    environ(pid)
        .split(|byte| *byte == 0)
        .any(|entry| entry == wanted)
}

/// The run that a process's environment names. None also if the process does not show its environment.
pub fn run_in_environment(pid: Pid) -> Option<String> {
    let environ = environ(pid);
    let mut entries = environ.split(|byte| *byte == 0);
    let id = entries.find_map(|entry| {
        let value = entry.strip_prefix(MARKER.as_bytes())?;
        value.strip_prefix(b"=").filter(|id| !id.is_empty())
    })?;
    Some(String::from_utf8_lossy(id).into_owned())
}

/// The environment with which a process was started; empty if it has ended or does not show it.
fn environ(pid: Pid) -> Vec<u8> {
    fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default()
}
