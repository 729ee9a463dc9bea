//! A process that is still the same one: ids are given out again within a minute.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use super::family::stat_fields;

/// Index of the start time in `/proc/PID/stat`, counted after the name.
const START_TIME: usize = 19;

/// A process of this machine, for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessId {
    /// Its process id.
    pub pid: i32,
    /// Its start time, in the kernel's own count.
    pub start_time: u64,
    /// Since which start of the machine that counts.
    pub boot: String,
}

impl ProcessId {
    /// This process.
    pub fn own() -> Self {
        Self::of(rustix::process::getpid()).unwrap_or(Self {
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            start_time: 0,
            boot: String::new(),
        })
    }

    /// The process that has this id now.
    pub fn of(pid: Pid) -> Option<Self> {
        let fields = stat_fields(pid)?;
        let start = fields.split_ascii_whitespace().nth(START_TIME)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Self {
            pid: pid.as_raw_nonzero().get(),
            start_time: start.parse().ok()?,
            boot: boot.trim_end().to_owned(),
        })
    }

    /// Sends it a signal; true if it was still there.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return false;
        };
        // The handle first: from then on the id cannot pass to another process unnoticed.
        let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        Self::of(pid).as_ref() == Some(self)
            && rustix::process::pidfd_send_signal(handle, signal).is_ok()
    }

    /// True if it is still there.
    pub fn is_alive(&self) -> bool {
        Pid::from_raw(self.pid).and_then(Self::of).as_ref() == Some(self)
    }
}
