//! The only crate that touches files.
//!
//! Everything `ccb` knows lives in files that several processes, and other tools, read and write at
//! the same time. This crate holds the few primitives that make this safe.
//!
//! # What this room knows
//!
//! How a file is replaced, locked, appended to and followed, and the settings files.
//!
//! | module | promise |
//! |---|---|
//! | [`atomic`] | a reader sees the old file or the new one, never half of one; an acknowledged change survives a power cut |
//! | [`lock`] | one holder at a time, released by the kernel when the holder dies; waiting has a limit and the error names the holder |
//! | [`lockdir`] | the lock *directories* other tools use on the same files |
//! | [`log`] | append-only lines; a line torn by a crash is cut off, never glued to the next |
//! | [`shared_log`] | the same for many writers that keep the file open: an append costs a look and a write |
//! | [`follow`] | reads a log that other processes write, as it grows, within bounds |
//! | [`fifo`] | wakes a reader without blocking |
//! | [`name`] | one rule for the names of lists, teams and agents |
//! | [`agent_id`] | one form for the ids of agents |
//! | [`home`] | every path under the home directory, named once |
//! | [`clock`] | time that tests can set |
//! | [`fields`] | fields of an object, read with errors that name the key |
//! | [`duration`] | one way to write lengths of time, everywhere |
//! | [`words!`] | enums whose values are words in files, each written once |
//! | [`settings`] | layered settings with errors that name the nearest key |
//! | [`tree`] | whole directories: copied, measured and deleted without leaving them |
//! | [`secret_filter`] | removes secrets from texts before they are stored |
//! | [`text`] | foreign text cannot steer the terminal it is shown on |
//! | [`watch`] | "something changed" hints, with a slow tick behind them |
//! | [`fault`] | named write points at which a test can crash or fail the process |
//!
//! # Lock order
//!
//! A list's lock file first, then its lock directories (`.lock.lock/`, then `<id>.json.lock/` in
//! ascending order). No process holds the locks of two lists, or of a list and an inbox, at once.
//!
//! # What it must not know (and where to go instead)
//!
//! * What the files mean: `taskboard`, `mailbox`, `swarm/team`, `worktrees`.
//! * An async runtime: `swarm`. Git: `worktrees`. Arguments, printing, the environment: `cli`. With
//!   the `fault-injection` feature (tests only) [`fault`] reads two environment variables; nothing
//!   else does.
//!
//! # The way through
//!
//! ```text
//! change ─▶ FileLock::exclusive ─▶ atomic::read ─▶ the caller decides ─▶ atomic::replace ─▶ unlock
//! append ─▶ SharedLog: a look at the length, one write, a sync outside of the lock
//! read   ─▶ no lock: the old file or the new one; Follow for what comes later
//! ```
//!
//! # Crash points
//!
//! [`FAULT_POINTS`]: `stage.*`, `dir.*` and `log.*`. A test crashes or fails a process at each.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | know what makes a file change safe | `store/src/atomic.rs`, `store/src/lock.rs`, `store/src/lockdir.rs` |
//! | know how waiting for a lock ends in time | `store/src/watchdog.rs` |
//! | add a write point that tests can crash at | `store/src/fault.rs`; declare it with `fault_points!` |
//! | know how ccb tells machines and repositories apart | `store/src/machine.rs`, `worktrees/src/address.rs` |
//! | change what is taken out of mail and tasks | `store/src/secret_filter.rs` (where it is applied), `swarm/src/starter.rs` (`secret_filter`); of checks' output: `worktrees/src/check/log.rs` |
//! | change how text of others is made harmless | `store/src/text.rs`; beside lines of ours: `cli/term/src/style.rs` (`hanging`, `quoted`) |
//! | add a setting | `store/src/settings/`, one file per section; how fields are read, there and in definitions and hooks: `store/src/fields.rs`; lengths of time, everywhere: `store/src/duration.rs` |
//! | fuzz a parser | its target is a function in the `fuzz` module of its crate (`store/src/fuzz.rs`, `swarm/src/fuzz.rs`, `swarm/native/src/fuzz.rs`; what they share is in the first); all targets: `cli/src/fuzz.rs`; programs and corpora: `fuzz/`; the replay: `tests/it/fuzz_corpus.rs` |

// Here, because every other crate is built after this one.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "ccb runs on Linux only so far: it supervises agents with pidfds, subreapers and /proc. \
     On Windows use it inside WSL 2, on macOS inside a Linux container or virtual machine."
);

pub mod agent_id;
pub mod atomic;
pub mod beneath;
pub mod clock;
pub mod duration;
mod error;
mod failure;
pub mod fault;
pub mod fields;
pub mod fifo;
pub mod follow;
#[doc(hidden)]
pub mod fuzz;
pub mod home;
pub mod lock;
pub mod lockdir;
pub mod log;
pub mod machine;
pub mod memory;
pub mod name;
mod plural;
pub mod secret_filter;
pub mod settings;
pub mod shared_log;
pub mod text;
pub mod tree;
pub mod watch;
mod watchdog;
mod words;

pub use error::{IoContext, Result, StoreError};
pub use failure::{Category, Explain, Facts, Failure};
pub use fault::FAULT_POINTS;
pub use plural::counted;
/// For [`words!`].
#[doc(hidden)]
pub use serde;

/// 64-bit FNV-1a: a stable fingerprint for noticing that bytes changed.
///
/// Not for security; chosen because its value never changes between releases.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A hint about a name that is none of `known`: the nearest known name, or `otherwise`.
pub fn did_you_mean<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    match nearest(given, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => otherwise.into(),
    }
}

/// The candidate most like `given`, if any is close enough to be a likely slip.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| {
            let alike = strsim::jaro_winkler(given, candidate);
            // Two letters changed places: in a short word that leaves little that is alike.
            let slip = given.len() > 2 && strsim::osa_distance(given, candidate) == 1;
            (if slip { alike.max(0.9) } else { alike }, candidate)
        })
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The host name of this machine, if it has one.
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}
