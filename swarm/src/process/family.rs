//! Ending everything a process has started, however deep and in whatever session.
//!
//! A process group is not enough: agents start their tools in sessions of their own. But a
//! *subreaper* inherits every descendant whose parent dies, so as long as it has a child there
//! may be more, and when it has none there are none.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

/// Maximum wait for the end of a killed process before the next look.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Sends `signal` to the process group `leader` leads; one that is gone is no error.
pub fn signal_group(leader: Pid, signal: Signal) {
    if let Err(error) = rustix::process::kill_process_group(leader, signal) {
        tracing::debug!(%error, "nobody to signal");
    }
}

/// Kills and waits for every descendant of this process, which must be a subreaper, until none
/// is left. Says which were left at `limit`: a process that hangs in the kernel does not die.
pub fn end_descendants(limit: Duration) -> Vec<Pid> {
    let deadline = Instant::now() + limit;
    loop {
        match reap() {
            Reaped::NoneLeft => return Vec::new(),
            Reaped::SomeLeft => {}
        }
        let mut family = descendants(rustix::process::getpid());
        if Instant::now() >= deadline {
            return family;
        }
        // Parents first, so that they start nothing more.
        family.retain(|pid| kill(*pid));
        if let Some(child) = family.first() {
            await_end(*child, LOOK_AGAIN);
        }
    }
}

enum Reaped {
    NoneLeft,
    SomeLeft,
}

/// Waits for all children that have ended.
fn reap() -> Reaped {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Reaped::SomeLeft,
            // No children at all, so no descendants.
            Err(_) => return Reaped::NoneLeft,
        }
    }
}

/// Kills a process; true if there was one. The id may belong to another process since we looked, so
/// its parent is read again once it cannot change any more.
fn kill(pid: Pid) -> bool {
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let ours = is_descendant(pid, rustix::process::getpid());
    ours && rustix::process::pidfd_send_signal(&handle, Signal::KILL).is_ok()
}

/// Waits until `pid` has ended, at most `limit`.
fn await_end(pid: Pid, limit: Duration) {
    if let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        wait_readable(&handle, limit);
    }
}

/// Waits until `fd` is readable, at most `limit`; true if it is.
pub(super) fn wait_readable(fd: &OwnedFd, limit: Duration) -> bool {
    let timeout = Timespec::try_from(limit).ok();
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    matches!(rustix::event::poll(&mut fds, timeout.as_ref()), Ok(1..))
}

/// Everything below `root`, parents before their children.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let mut found = children(root);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        for child in children(pid) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found
}

/// True if this process, which must be a subreaper, has descendants. Waits for those that have
/// ended.
pub fn has_descendants() -> bool {
    matches!(reap(), Reaped::SomeLeft)
}

/// The children of this process.
pub fn children_of_this() -> Vec<Pid> {
    children(rustix::process::getpid())
}

/// The children of a process, of all its threads.
fn children(pid: Pid) -> Vec<Pid> {
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    let Ok(threads) = fs::read_dir(&tasks) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(parse_pid)),
            // The kernel was built without these lists.
            Err(_) => return children_by_scan(pid),
        }
    }
    found
}

fn children_by_scan(parent: Pid) -> Vec<Pid> {
    let all = all_processes();
    all.into_iter()
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect()
}

/// Every process there is.
pub fn all_processes() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| parse_pid(entry.file_name().to_str()?))
        .collect()
}

fn is_descendant(pid: Pid, root: Pid) -> bool {
    let mut current = pid;
    // Deeper than any real family; a loop cannot be, but what is read is not one moment.
    for _ in 0..512 {
        match parent_of(current) {
            Some(parent) if parent == root => return true,
            Some(parent) => current = parent,
            None => return false,
        }
    }
    false
}

fn parent_of(pid: Pid) -> Option<Pid> {
    parse_pid(stat_fields(pid)?.split_ascii_whitespace().nth(1)?)
}

/// The fields of `/proc/PID/stat` after the name, which may hold anything.
pub(super) fn stat_fields(pid: Pid) -> Option<String> {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = fs::read_to_string(Path::new(&path)).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.to_owned())
}

pub(super) fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}
