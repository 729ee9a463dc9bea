//! The mark every process of a run bears, whatever it does to its environment.
//!
//! A resource limit is inherited by everything a process starts; `env -i`, `setsid` and a double
//! fork leave it alone. `RLIMIT_RTTIME` only matters to processes with real-time priority, and the
//! marks are so large that they would not notice either. Only the soft limit is set: the hard one
//! stays as it is, so that a run that is started from within another gets a mark of its own. A
//! process can take its mark off; only the search for processes that a run left behind relies on
//! the mark.

use std::fs;
use std::io;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use sha2::{Digest, Sha256};

/// A limit this high can only mean "none".
const BASE: u64 = 1 << 62;
const BITS: u64 = (1 << 60) - 1;
/// The limit's name in `/proc/PID/limits`.
const LIMIT: &str = "Max realtime timeout";

/// The mark of one run, the same in all its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark(u64);

impl Mark {
    /// The mark of the run with this id.
    pub fn of_run(id: &str) -> Self {
        let digest = Sha256::digest(id.as_bytes());
        let number = digest
            .iter()
            .take(8)
            .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        Self(BASE + (number & BITS))
    }

    /// The mark a process bears, if it bears one.
    pub fn of_process(pid: Pid) -> Option<Self> {
        let limits = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix(LIMIT))?;
        let soft: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
        (BASE..=BASE + BITS).contains(&soft).then_some(Self(soft))
    }

    /// The mark this process bears, if it bears one.
    pub fn own() -> Option<Self> {
        Self::of_process(rustix::process::getpid())
    }

    /// Makes this process, and everything it starts from now on, bear the mark. Refused where a
    /// lower hard limit is set.
    pub fn bear(self) -> io::Result<()> {
        let hard = getrlimit(Resource::Rttime).maximum;
        let limit = Rlimit {
            current: Some(self.0),
            maximum: hard,
        };
        Ok(setrlimit(Resource::Rttime, limit)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_marks_of_their_own_that_do_not_change() {
        let mark = Mark::of_run("a0123456789abcdef");
        assert_eq!(mark, Mark::of_run("a0123456789abcdef"));
        assert_ne!(mark, Mark::of_run("a0123456789abcdee"));
        assert!((BASE..=BASE + BITS).contains(&mark.0));
    }

    #[test]
    fn a_process_without_a_mark_bears_none() {
        assert_eq!(Mark::of_process(rustix::process::getpid()), None);
    }
}
