//! The keeper: starts and ends the commands of one agent that shares its process with others.
//!
//! A process of several agents cannot be the one that inherits the processes an agent's commands
//! abandon: it could not tell whose they are. So each of these agents has a keeper, from its first
//! command on, which is to the agent's commands what a host is to those of an agent with a process
//! of its own. All processes they start are below it, bear the run's mark, and end when the keeper
//! gets the order or when no process is left that could give it.
//!
//! Orders come as messages with descriptors (`descriptors.rs`); answers go to a pipe that came with
//! the order, so that they need no sorting.
//!
//! One thread, no async runtime: there may be one keeper per agent.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus};

use super::descriptors::{Received, receive};
use super::family::{descendants, end_descendants, signal_group};
use super::mark::Mark;
use super::order::Order;

/// The argument that makes ccb a keeper; the next one is the run's directory.
pub const KEEPER: &str = "__keeper";

/// Start this: with the order, the three standard streams, and where to say what became of it.
pub(super) const START: u8 = b's';
/// Send a group of ours a signal: its leader and the signal, as text.
pub(super) const SIGNAL: u8 = b'k';
/// End everything; says which do not die.
pub(super) const SWEEP: u8 = b'w';
/// End, if nothing is there that would have to be ended.
pub(super) const REST: u8 = b'q';
/// Programs may have so many files open, as text: the process that orders has more.
pub(super) const FILES: u8 = b'n';

/// Maximum time for killed processes to die.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between waits for adopted processes that have ended.
const REAP: Duration = Duration::from_secs(1);

/// Keeps the commands of the run with this id until standard input, which is a socket, is closed.
/// Returns which processes do not die.
pub fn keep(id: &str) -> io::Result<Vec<Pid>> {
    rustix::process::setsid().ok();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if let Err(error) = Mark::of_run(id).bear() {
        tracing::debug!(%error, "the run's processes bear no mark");
    }
    let orders = io::stdin().as_fd().try_clone_to_owned()?;
    let mut keeper = Keeping::default();
    loop {
        let some = keeper.reap();
        if !keeper.wait(&orders, some)? {
            continue;
        }
        let Some(order) = receive(&orders)? else {
            return Ok(end_descendants(KILL_TIMEOUT));
        };
        if keeper.carry_out(order).is_none() {
            return Ok(Vec::new());
        }
    }
}

/// A program that the keeper started and that has not ended.
#[derive(Debug, Default)]
struct Keeping {
    started: HashMap<i32, Started>,
}

#[derive(Debug)]
struct Started {
    handle: Option<OwnedFd>,
    /// The pipe that gets its end.
    told: File,
}

impl Keeping {
    /// Waits for an order, or for the end of a program of ours; true if there is an order.
    fn wait(&self, orders: &OwnedFd, some: bool) -> io::Result<bool> {
        let handles = self.started.values().filter_map(|one| one.handle.as_ref());
        let mut fds = vec![PollFd::new(orders, PollFlags::IN)];
        fds.extend(handles.map(|handle| PollFd::new(handle, PollFlags::IN)));
        // Adopted processes do not report their end.
        let limit = some.then(|| Timespec::try_from(REAP).ok()).flatten();
        match rustix::event::poll(&mut fds, limit.as_ref()) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for all that have ended; true if any are left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Some(mut one) = self.started.remove(&pid.as_raw_nonzero().get()) {
                        one.told.write_all(&raw(status).to_le_bytes()).ok();
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Carries out an order. `None` if the keeper has to end.
    fn carry_out(&mut self, order: Received) -> Option<()> {
        let Received { bytes, descriptors } = order;
        let (what, text) = bytes.split_first()?;
        let text = str::from_utf8(text).unwrap_or_default();
        match *what {
            START => self.start(descriptors),
            SIGNAL => self.signal(text),
            SWEEP => {
                let left = end_descendants(KILL_TIMEOUT);
                // Waiters are notified when the process exits.
                self.started.clear();
                answer(descriptors, &numbers(&left));
            }
            REST => match self.reap() {
                true => answer(descriptors, b"stays"),
                false => {
                    answer(descriptors, b"gone");
                    return None;
                }
            },
            FILES => {
                let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
                let limit = Rlimit {
                    current: text.parse().ok(),
                    maximum: hard,
                };
                rustix::process::setrlimit(Resource::Nofile, limit).ok();
            }
            _ => tracing::warn!("an order that nobody knows"),
        }
        Some(())
    }

    fn start(&mut self, descriptors: Vec<OwnedFd>) {
        let Ok([order, stdin, stdout, stderr, told]) = <[OwnedFd; 5]>::try_from(descriptors) else {
            tracing::warn!("an order without its descriptors");
            return;
        };
        let mut told = File::from(told);
        let started = Order::read(File::from(order)).and_then(|order| {
            let mut command = order.command()?;
            command
                .stdin(Stdio::from(stdin))
                .stdout(Stdio::from(stdout))
                .stderr(Stdio::from(stderr))
                .process_group(0);
            command.spawn()
        });
        let pid = started.and_then(|child| {
            let pid = i32::try_from(child.id()).ok();
            pid.ok_or_else(|| io::Error::other("a process without an id"))
        });
        match pid {
            Ok(pid) => {
                told.write_all(&pid.to_le_bytes()).ok();
                let handle = Pid::from_raw(pid);
                let handle = handle
                    .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
                self.started.insert(pid, Started { handle, told });
            }
            Err(error) => {
                let io = rustix::io::Errno::IO.raw_os_error();
                let number = -error.raw_os_error().unwrap_or(io);
                told.write_all(&number.to_le_bytes()).ok();
            }
        }
    }

    fn signal(&self, text: &str) {
        let Some((pid, signal)) = text.split_once(' ') else {
            return;
        };
        let (Ok(pid), Ok(signal)) = (pid.parse(), signal.parse()) else {
            return;
        };
        let known = self.started.contains_key(&pid);
        let (Some(pid), Some(signal)) = (Pid::from_raw(pid), Signal::from_named_raw(signal)) else {
            return;
        };
        if known {
            // A process that was not waited for yet still has its id.
            return signal_group(pid, signal);
        }
        // Its leader has ended, and the id may be another's: only those below us are meant.
        for member in descendants(rustix::process::getpid()) {
            if rustix::process::getpgid(Some(member)) == Ok(pid) {
                rustix::process::kill_process(member, signal).ok();
            }
        }
    }
}

/// The status in the kernel's form.
fn raw(status: WaitStatus) -> i32 {
    status.as_raw()
}

fn numbers(left: &[Pid]) -> Vec<u8> {
    let numbers = left
        .iter()
        .map(|pid| pid.as_raw_nonzero().get().to_string());
    numbers.collect::<Vec<_>>().join(" ").into_bytes()
}

fn answer(to: Vec<OwnedFd>, bytes: &[u8]) {
    for to in to {
        File::from(to).write_all(bytes).ok();
    }
}

/// The descriptor of nothing to read.
pub(super) fn nothing() -> io::Result<OwnedFd> {
    Ok(File::open("/dev/null")?.into())
}

/// Borrows all of them.
pub(super) fn borrowed(all: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    all.iter().map(AsFd::as_fd).collect()
}
