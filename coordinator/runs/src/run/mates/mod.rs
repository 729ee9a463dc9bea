//! Agents of a team that share one process.
//!
//! ```text
//! a starter of agents   ──▶ guard (ccb __mates) ──▶ hosts and loops, one thread each (ccb __mates_host)
//!        run, alive.lock,     holds every run's        │
//!        environment          locks                    └▶ one keeper for each agent that runs commands
//! ```
//!
//! Everything else about a run is as for a run with processes of its own: its directory, its locks,
//! its host's code, its end. Only the processes differ. The guard holds `alive.lock` and
//! `result.lock` of all of them. If the process dies, the guard ends what is left of it, starts
//! another one, and every agent continues from its conversation, in the same life: a caller that
//! waits for it does not notice, and its task stays its own.

mod guard;
mod starter;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::net::SocketAddrUnix;
use store::settings::{MatesIn, RuntimeKind};
use swarm::process::Mark;
use swarm::run::{Meta, Standing};

pub use guard::mates_guard_main;

/// The first argument of the guard; the second is ccb's directory of the team.
pub const MATES_GUARD: &str = "__mates";
/// The same of the process in which the agents are.
pub const MATES: &str = "__mates_host";

/// The socket the guard listens on, in ccb's directory of the team.
const SOCKET: &str = "mates.sock";
/// Held while a guard is started, so that there is one.
const STARTING: &str = "mates.lock";
/// The log of guard and process, for maintainers.
const LOG: &str = "mates.log";

/// The guard's answer to a starter whose run it has taken.
const TAKEN: &[u8] = b"taken";

/// The process's message to its guard that a run's result is written.
pub const RESULT_WRITTEN: u8 = b'r';
/// Everything is done.
pub const FINISHED: u8 = b'f';
/// The run's host could not continue; the guard is to finish it.
pub const GIVEN_UP: u8 = b'e';
/// The process takes no more runs: one of its threads may never end.
pub const RETIRES: u8 = b't';

/// True if this agent may share a process with others.
///
/// It lacks nothing that a process of its own would give it: ccb's own loop is not confined itself,
/// only its commands are, and each of those is started through a program that confines it. The lead
/// keeps a process of its own: the session depends on it, and there is only one.
pub(super) fn may_share(meta: &Meta) -> bool {
    meta.options.mates_in == MatesIn::Process
        && meta.runtime.kind == RuntimeKind::Native
        && meta.runtime.command.is_empty()
        && !Standing::of(meta).leads()
        // Processes that an agent starts are below its host, and end with it: the guard of all
        // teammates must not.
        && swarm::scope::current().is_none()
        && Mark::own().is_none()
}

/// The guard's address. Paths of sockets are short, so it is named by an open directory; the address
/// is good as long as that is open.
fn address(dir: &Path) -> io::Result<(File, SocketAddrUnix)> {
    let open = File::open(dir)?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", open.as_raw_fd());
    let address = SocketAddrUnix::new(path)?;
    Ok((open, address))
}

fn socket_path(dir: &Path) -> PathBuf {
    dir.join(SOCKET)
}

/// A message that names a run.
pub fn about(what: u8, run: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    [&[what], run.as_os_str().as_bytes()].concat()
}

/// The run a message names.
fn named(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}
