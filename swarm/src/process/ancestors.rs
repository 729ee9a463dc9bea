//! The processes above this one.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use rustix::process::Pid;

use super::family::{parse_pid, stat_fields};

/// Maximum restarts of the walk because a process on the way ended meanwhile: its children have
/// another parent then.
const TRIES: usize = 16;
/// Deeper than any real family.
const DEEPEST: usize = 512;

/// Walks up from the parent of `process` until `wanted` returns a value for one of its ancestors.
/// It gets each one's id and command line.
///
/// A process chooses its command line itself; a caller that relies on it has to check it.
pub fn find_ancestor<T>(
    process: Pid,
    mut wanted: impl FnMut(Pid, &[OsString]) -> Option<T>,
) -> Option<T> {
    for _ in 0..TRIES {
        match walk(process, &mut wanted) {
            Walk::Found(answer) => return Some(answer),
            Walk::Top => return None,
            Walk::Broken => {}
        }
    }
    None
}

enum Walk<T> {
    Found(T),
    Top,
    /// A process on the way ended.
    Broken,
}

fn walk<T>(process: Pid, wanted: &mut impl FnMut(Pid, &[OsString]) -> Option<T>) -> Walk<T> {
    let mut current = process;
    for _ in 0..DEEPEST {
        let Some(fields) = stat_fields(current) else {
            return Walk::Broken;
        };
        let parent = fields.split_ascii_whitespace().nth(1).and_then(parse_pid);
        let Some(parent) = parent else {
            return Walk::Top;
        };
        if let Some(answer) = wanted(parent, &command_line(parent)) {
            return Walk::Found(answer);
        }
        current = parent;
    }
    Walk::Top
}

/// The words a process was started with; empty for one that is gone, or that belongs to the kernel.
pub fn command_line(pid: Pid) -> Vec<OsString> {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    let parts = bytes.split(|byte| *byte == 0);
    parts
        .map(|part| OsString::from_vec(part.to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_is_the_parent_and_the_last_one_has_none() {
        let mut seen = Vec::new();
        let found: Option<()> = find_ancestor(rustix::process::getpid(), |pid, _| {
            seen.push(pid);
            None
        });
        assert!(found.is_none());
        assert_eq!(seen.first().copied(), rustix::process::getppid());
        let last = *seen.last().unwrap();
        let fields = stat_fields(last).unwrap();
        assert_eq!(fields.split_ascii_whitespace().nth(1), Some("0"));
    }
}
