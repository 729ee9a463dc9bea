//! Commands that a keeper starts for us; see `keeper.rs`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal};

use super::descriptors::{pair, send};
use super::keeper::{FILES, REST, SIGNAL, START, SWEEP, borrowed};
use super::order::Order;

/// Starts a keeper whose standard input is this socket.
type StartKeeper = Box<dyn Fn(OwnedFd) -> io::Result<std::process::Child> + Send + Sync>;

/// The keeper of one agent. It starts with the first program, and ends, with everything it has
/// started, when this is dropped.
pub struct Keeper {
    start: StartKeeper,
    /// Maximum open files of its programs.
    files: Option<u64>,
    alive: Mutex<Option<Alive>>,
    /// True if no program may start any more.
    closed: AtomicBool,
}

struct Alive {
    /// Closed first: that ends it.
    orders: OwnedFd,
    process: std::process::Child,
}

/// A program that a keeper has started.
#[derive(Debug)]
pub(super) struct StartedByKeeper {
    pub(super) pid: Pid,
    /// Its end comes from here: four bytes of wait status, or nothing if that is not known.
    pub(super) told: OwnedFd,
}

impl Keeper {
    /// A keeper that `start` starts; its programs may have `files` files open, if that differs from
    /// this process's limit.
    pub fn new(
        files: Option<u64>,
        start: impl Fn(OwnedFd) -> io::Result<std::process::Child> + Send + Sync + 'static,
    ) -> Self {
        Self {
            start: Box::new(start),
            files,
            alive: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Ends the keeper with everything it has started; after that no thread starts anything with
    /// it, not even one that was given up and comes back.
    pub fn close(&self) {
        let mut alive = self.alive();
        self.closed.store(true, Ordering::Relaxed);
        alive.take();
    }

    /// Starts `command` with these streams.
    pub(super) fn spawn(
        &self,
        command: &Command,
        [stdin, stdout, stderr]: [OwnedFd; 3],
    ) -> io::Result<StartedByKeeper> {
        let order = OwnedFd::from(Order::of(command).write()?);
        let (told, tells) = io::pipe()?;
        let descriptors = [order, stdin, stdout, stderr, tells.into()];
        self.order(&[START], &descriptors)?;
        // Ours would keep the pipes open.
        drop(descriptors);
        let mut told = File::from(OwnedFd::from(told));
        let mut number = [0; 4];
        let gone = |_| io::Error::other("the process that starts its commands is gone");
        told.read_exact(&mut number).map_err(gone)?;
        let number = i32::from_le_bytes(number);
        if number <= 0 {
            return Err(io::Error::from_raw_os_error(-number));
        }
        let pid = Pid::from_raw(number);
        let pid = pid.ok_or_else(|| io::Error::other("a process without an id"))?;
        let told = told.into();
        Ok(StartedByKeeper { pid, told })
    }

    /// Sends a signal to the group of a program that has not been waited for.
    pub(super) fn signal(&self, leader: Pid, signal: Signal) {
        let text = format!("{} {}", leader.as_raw_nonzero(), signal.as_raw());
        let bytes = [&[SIGNAL], text.as_bytes()].concat();
        if let Some(alive) = &*self.alive() {
            send(&alive.orders, &bytes, &[]).ok();
        }
    }

    /// Ends everything it has started; says which do not die.
    pub(super) fn sweep(&self) -> Vec<Pid> {
        let said = self.ask(SWEEP).unwrap_or_default();
        let pids = said.split_ascii_whitespace().map(str::parse);
        pids.flatten().filter_map(Pid::from_raw).collect()
    }

    /// Lets the keeper end if it has no programs; true if there is none then.
    pub(super) fn rest(&self) -> bool {
        if self.ask(REST).as_deref() == Some("gone") {
            self.alive().take();
        }
        self.alive().is_none()
    }

    /// The keeper's answer; `None` if there is none.
    fn ask(&self, what: u8) -> Option<String> {
        let (mut said, tells) = io::pipe().ok()?;
        {
            let alive = self.alive();
            let alive = alive.as_ref()?;
            send(&alive.orders, &[what], &[tells.as_fd()]).ok()?;
        }
        drop(tells);
        let mut text = String::new();
        said.read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn order(&self, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<()> {
        let mut alive = self.alive();
        if self.closed.load(Ordering::Relaxed) {
            return Err(io::Error::other("the agent has ended"));
        }
        if let Some(there) = &*alive {
            if send(&there.orders, bytes, &borrowed(descriptors)).is_ok() {
                return Ok(());
            }
            // Another process has killed it. The guard now owns the processes it had started, and
            // ends them.
            alive.take();
        }
        let (orders, theirs) = pair()?;
        let process = (self.start)(theirs)?;
        let started = alive.insert(Alive { orders, process });
        if let Some(files) = self.files {
            let bytes = [&[FILES], files.to_string().as_bytes()].concat();
            send(&started.orders, &bytes, &[])?;
        }
        send(&started.orders, bytes, &borrowed(descriptors))
    }

    fn alive(&self) -> MutexGuard<'_, Option<Alive>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        // Everything in this process has its copies closed when programs start, so this is the last.
        rustix::net::shutdown(&self.orders, rustix::net::Shutdown::Both).ok();
        if let Err(error) = self.process.wait() {
            tracing::warn!(%error, "a keeper cannot be waited for");
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}
