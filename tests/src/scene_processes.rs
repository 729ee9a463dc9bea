//! The processes of a session, found from outside with their parts, so that a test can kill any of
//! them.

use std::path::Path;

/// The part of a process in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The `ccb` process that directs.
    Director,
    /// Supervises a host.
    Guard,
    /// Supervises an agent.
    Host,
    /// A git that one of them started, or an agent.
    Git,
    /// An agent, a check, or what they started.
    Work,
}

/// Every process that has this home in its environment, but for `tests` themselves.
pub fn of_home(home: &Path) -> Vec<(Part, i32)> {
    let wanted = format!("CCB_HOME={}", home.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // An ended process has no environment any more.
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let ours = read("environ")
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes());
        if ours {
            found.push((part(&read("comm"), &read("cmdline")), pid));
        }
    }
    found
}

fn part(comm: &[u8], cmdline: &[u8]) -> Part {
    if comm.starts_with(b"git") {
        return Part::Git;
    }
    let mut words = cmdline.split(|byte| *byte == 0);
    let program = words.next().unwrap_or_default();
    let first = words.next().unwrap_or_default();
    match first {
        b"__guard" => Part::Guard,
        b"__host" => Part::Host,
        _ if program.ends_with(b"ccb-under-test") && first == b"--list" => Part::Director,
        _ => Part::Work,
    }
}
