//! Starting programs and noticing their end, in a process that may adopt other people's
//! children, too.
//!
//! A host is a *subreaper*: what an agent starts and abandons becomes the host's child. Somebody
//! has to wait for those, or they stay as zombies; and who waits for any child also gets the
//! ones it started. So there is one place that waits, and it tells whoever asked.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal as Kill, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It is gone; nobody knows how.
    Unknown,
}

impl Ending {
    /// What comes after "the program" in a sentence.
    pub fn in_words(self) -> String {
        match self {
            Self::Exited(code) => format!("ended with exit code {code}"),
            Self::Signaled(signal) => format!("was ended by signal {signal}"),
            Self::Unknown => "is gone".into(),
        }
    }

    /// Whether somebody killed it: it, or what a shell had started, which says so with its code.
    pub fn is_kill(self) -> bool {
        matches!(self, Self::Signaled(9) | Self::Exited(137))
    }
}

impl From<WaitStatus> for Ending {
    fn from(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signaled(signal),
            (None, None) => Self::Unknown,
        }
    }
}

/// A program that was started.
#[derive(Debug)]
pub struct Child {
    /// Its process id; its process group has the same.
    pub pid: Pid,
    /// Where it reads from, if that is a pipe.
    pub stdin: Option<pipe::Sender>,
    /// What it prints, if that is a pipe.
    pub stdout: Option<pipe::Receiver>,
    /// What it prints as errors, if that is a pipe.
    pub stderr: Option<pipe::Receiver>,
    /// Its end.
    pub ended: oneshot::Receiver<Ending>,
}

/// Which children are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Only those we started.
    Ours,
    /// Every child there is.
    All,
}

/// The programs this process has started and those it has adopted.
#[derive(Debug, Clone)]
pub struct Processes {
    table: Arc<Mutex<HashMap<i32, oneshot::Sender<Ending>>>>,
}

impl Processes {
    /// For a process that waits for nothing else and adopts what its descendants abandon.
    /// Must be called within a tokio runtime of one thread, which is where the waiting happens.
    pub fn adopting() -> io::Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Self::start(Whose::All)
    }

    /// For a process that has other children, whom somebody else waits for.
    pub fn own() -> io::Result<Self> {
        Self::start(Whose::Ours)
    }

    fn start(whose: Whose) -> io::Result<Self> {
        let processes = Self {
            table: Arc::default(),
        };
        let signals = signal(SignalKind::child())?;
        tokio::spawn(reap(signals, processes.clone(), whose));
        Ok(processes)
    }

    /// Starts `command` in a process group of its own. Standard input is a pipe if
    /// `with_stdin`, else empty; what it prints comes through pipes.
    pub fn spawn(&self, mut command: Command, with_stdin: bool) -> io::Result<Child> {
        let stdin = if with_stdin {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // The system's own words would leave open what is not there: the program or this.
        if let Some(dir) = command.get_current_dir().filter(|dir| !dir.is_dir()) {
            let why = format!("the directory {} is not there", dir.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        // Nobody may look for dead children between the start and the entry in the table.
        let mut table = self.table();
        let mut child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without an id"))?;
        let (sender, ended) = oneshot::channel();
        table.insert(pid.as_raw_nonzero().get(), sender);
        drop(table);
        let stdin = child.stdin.take().map(OwnedFd::from);
        let stdout = child.stdout.take().map(OwnedFd::from);
        let stderr = child.stderr.take().map(OwnedFd::from);
        let pipes = || {
            io::Result::Ok(Child {
                pid,
                stdin: stdin.map(pipe::Sender::from_owned_fd).transpose()?,
                stdout: stdout.map(pipe::Receiver::from_owned_fd).transpose()?,
                stderr: stderr.map(pipe::Receiver::from_owned_fd).transpose()?,
                ended,
            })
        };
        // Nobody would supervise a program whose start is reported as failed.
        pipes().inspect_err(|_| {
            rustix::process::kill_process_group(pid, Kill::KILL).ok();
        })
    }

    /// The programs that were started here and have not ended.
    pub fn running(&self) -> Vec<Pid> {
        let table = self.table();
        table.keys().copied().filter_map(Pid::from_raw).collect()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<i32, oneshot::Sender<Ending>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for all that have ended.
    fn collect(&self, whose: Whose) {
        let mut table = self.table();
        match whose {
            Whose::All => {
                while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
                    if let Some(waiting) = table.remove(&pid.as_raw_nonzero().get()) {
                        waiting.send(status.into()).ok();
                    }
                }
            }
            Whose::Ours => {
                let pids: Vec<i32> = table.keys().copied().collect();
                for raw in pids {
                    let Some(pid) = Pid::from_raw(raw) else {
                        continue;
                    };
                    let ending = match rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
                        Ok(Some((_, status))) => status.into(),
                        Ok(None) => continue,
                        Err(_) => Ending::Unknown,
                    };
                    if let Some(waiting) = table.remove(&raw) {
                        waiting.send(ending).ok();
                    }
                }
            }
        }
    }
}

async fn reap(mut signals: Signal, processes: Processes, whose: Whose) {
    loop {
        // One signal can stand for several children, and some may have ended before it was
        // listened for.
        processes.collect(whose);
        if signals.recv().await.is_none() {
            return;
        }
    }
}
