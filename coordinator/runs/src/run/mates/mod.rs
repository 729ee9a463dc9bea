//! Agents of a team that share one process.
//!
//! ```text
//! whoever starts agents ──▶ guard (ccb __mates) ──▶ hosts and loops, one thread each (ccb __mates_host)
//!        run, alive.lock,     holds every run's        │
//!        environment          locks                    └▶ one keeper for each agent that runs commands
//! ```
//!
//! Everything about a run is as it is for one with processes of its own: its directory, its locks, its
//! host's code, its end. Only who is in which process differs. The guard holds `alive.lock` and
//! `result.lock` of all of them. If the process dies, the guard ends what is left of it, starts
//! another one, and every agent goes on from its conversation, in the same life: nobody who waits for
//! it notices, and its task stays its own.

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

/// The first argument of the guard; the second is the team's directory of ours.
pub const MATES_GUARD: &str = "__mates";
/// The same of the process in which the agents are.
pub const MATES: &str = "__mates_host";

/// Where the guard listens, in the team's directory of ours.
const SOCKET: &str = "mates.sock";
/// Held while a guard is started, so that there is one.
const STARTING: &str = "mates.lock";
/// What guard and process have to say, for maintainers.
const LOG: &str = "mates.log";

/// What the guard answers to one whose run it has taken.
const TAKEN: &[u8] = b"taken";

/// What the process tells its guard of a run: it is written down how it ended.
pub const RESULT_WRITTEN: u8 = b'r';
/// Everything is done.
pub const FINISHED: u8 = b'f';
/// Its host could not go on; the guard is to finish it.
pub const GIVEN_UP: u8 = b'e';
/// Of the process: one of its threads may never end, so it takes in nobody more.
pub const RETIRES: u8 = b't';

/// Whether this agent may share a process with others.
///
/// Nothing that a process of its own would give it is missing: our own loop is not confined itself,
/// only its commands are, and each of those is started through a program that confines it. The lead
/// keeps its own: the session depends on it, and it is not one of many.
pub(super) fn may_share(meta: &Meta) -> bool {
    meta.options.mates_in == MatesIn::Process
        && meta.runtime.kind == RuntimeKind::Native
        && meta.runtime.command.is_empty()
        && !Standing::of(meta).leads()
        // What an agent starts is below its host, and ends with it: the guard of all mates must not.
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
