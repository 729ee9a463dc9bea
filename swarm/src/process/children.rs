//! Starting programs and noticing their end, in a process that may adopt other processes' children,
//! too.
//!
//! A host is a *subreaper*: the processes an agent starts and abandons become the host's children.
//! The host has to wait for them, or they stay as zombies; and a wait for any child also gets the
//! ones it started itself. So there is one place that waits, and it reports each end to the task
//! that waits for that program.
//!
//! In a process of several agents a keeper starts them, one for each agent; see `keeper.rs`.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal as Kill, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::family::{end_descendants, signal_group};
use super::keeper::nothing;
use super::kept::{Keeper, StartedByKeeper};

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It is gone; how it ended is unknown.
    Unknown,
}

impl Ending {
    /// The words after "the program" in a sentence.
    pub fn in_words(self) -> String {
        match self {
            Self::Exited(code) => format!("ended with exit code {code}"),
            Self::Signaled(signal) => format!("was ended by signal {signal}"),
            Self::Unknown => "is gone".into(),
        }
    }

    /// True if a signal killed it: it, or the program that a shell had started, which says so with
    /// its code.
    pub fn is_kill(self) -> bool {
        matches!(self, Self::Signaled(9) | Self::Exited(137))
    }
}

impl Ending {
    /// From what the kernel says.
    fn of_raw(raw: i32) -> Self {
        let status = <ExitStatus as ExitStatusExt>::from_raw(raw);
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signaled(signal),
            (None, None) => Self::Unknown,
        }
    }

    /// The status in the standard library's form; an unknown end is as if it had been killed.
    pub fn status(self) -> ExitStatus {
        let raw = match self {
            Self::Exited(code) => (code & 0xff) << 8,
            Self::Signaled(signal) => signal,
            Self::Unknown => Kill::KILL.as_raw(),
        };
        ExitStatus::from_raw(raw)
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
    /// Its standard input, if that is a pipe.
    pub stdin: Option<pipe::Sender>,
    /// Its standard output, if that is a pipe.
    pub stdout: Option<pipe::Receiver>,
    /// Its standard error, if that is a pipe.
    pub stderr: Option<pipe::Receiver>,
    /// Its end.
    pub ended: Ended,
}

/// The end of a program, once it has come.
pub type Ended = oneshot::Receiver<Ending>;

/// The children that are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Only those this process started.
    Ours,
    /// Every child there is.
    All,
}

/// The programs this process has started and those it has adopted.
#[derive(Debug, Clone)]
pub struct Processes {
    /// The running ones; each sender reports the end to the code that started it here.
    table: Arc<Mutex<HashMap<i32, oneshot::Sender<Ending>>>>,
    /// The keeper that starts them; `None` if this process does.
    keeper: Option<Arc<Keeper>>,
    /// Further things that end when all of them are killed.
    kills: Arc<Mutex<Vec<OnKill>>>,
}

/// Ends something that is no process.
struct OnKill(Box<dyn Fn() + Send>);

impl fmt::Debug for OnKill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnKill")
    }
}

impl Processes {
    /// For a process that waits for nothing else and adopts what its descendants abandon.
    /// Must be called within a tokio runtime of one thread, which is where the waiting happens.
    pub fn adopting() -> io::Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Self::start(Whose::All)
    }

    /// For a process that has other children, which other code waits for.
    pub fn own() -> io::Result<Self> {
        Self::start(Whose::Ours)
    }

    /// For one of several agents in this process: its keeper starts them.
    pub fn kept(keeper: Arc<Keeper>) -> Self {
        Self::with(Some(keeper))
    }

    fn with(keeper: Option<Arc<Keeper>>) -> Self {
        Self {
            table: Arc::default(),
            keeper,
            kills: Arc::default(),
        }
    }

    fn start(whose: Whose) -> io::Result<Self> {
        let processes = Self::with(None);
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
        if let Some(keeper) = &self.keeper {
            return self.spawn_kept(keeper, &command, with_stdin);
        }
        // The system's own words would leave open what is not there: the program or this.
        check_dir(&command)?;
        // The reaper must not run between the start and the entry in the table.
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
        // A program whose start is reported as failed would have no supervisor.
        pipes().inspect_err(|_| {
            rustix::process::kill_process_group(pid, Kill::KILL).ok();
        })
    }

    fn spawn_kept(
        &self,
        keeper: &Arc<Keeper>,
        command: &Command,
        with_stdin: bool,
    ) -> io::Result<Child> {
        check_dir(command)?;
        let (stdin, to_it) = match with_stdin {
            true => {
                let (theirs, ours) = io::pipe()?;
                (theirs.into(), Some(OwnedFd::from(ours)))
            }
            false => (nothing()?, None),
        };
        let (stdout, its_out) = io::pipe()?;
        let (stderr, its_err) = io::pipe()?;
        let streams = [stdin, its_out.into(), its_err.into()];
        let started = keeper.spawn(command, streams)?;
        let pid = started.pid;
        Ok(Child {
            pid,
            stdin: to_it.map(pipe::Sender::from_owned_fd).transpose()?,
            stdout: Some(pipe::Receiver::from_owned_fd(stdout.into())?),
            stderr: Some(pipe::Receiver::from_owned_fd(stderr.into())?),
            ended: self.follow(started)?,
        })
    }

    /// Starts `command`, which prints everything to `output`, by the keeper; `None` if there is no
    /// keeper, and the caller starts it itself.
    pub fn spawn_into(
        &self,
        command: &Command,
        output: OwnedFd,
    ) -> Option<io::Result<(Pid, Ended)>> {
        let keeper = self.keeper.as_ref()?;
        let start = || {
            check_dir(command)?;
            let streams = [nothing()?, output.try_clone()?, output];
            let started = keeper.spawn(command, streams)?;
            let pid = started.pid;
            Ok((pid, self.follow(started)?))
        };
        Some(start())
    }

    /// Waits for the end of what a keeper has started.
    fn follow(&self, started: StartedByKeeper) -> io::Result<Ended> {
        let StartedByKeeper { pid, told } = started;
        let raw = pid.as_raw_nonzero().get();
        let mut told = pipe::Receiver::from_owned_fd(told)?;
        let (sender, ended) = oneshot::channel();
        self.table().insert(raw, sender);
        let processes = self.clone();
        tokio::spawn(async move {
            let mut status = [0; 4];
            let ending = match told.read_exact(&mut status).await {
                Ok(_) => Ending::of_raw(i32::from_le_bytes(status)),
                Err(_) => Ending::Unknown,
            };
            if let Some(waiting) = processes.table().remove(&raw) {
                waiting.send(ending).ok();
            }
        });
        Ok(ended)
    }

    /// Sends a signal to the group of one of them.
    pub fn signal_group(&self, leader: Pid, signal: Kill) {
        match &self.keeper {
            // Only the keeper knows if the id is still the program's.
            Some(keeper) => keeper.signal(leader, signal),
            None => signal_group(leader, signal),
        }
    }

    /// Sends a signal to all that were started here; killing them ends what is no process, too.
    pub fn signal_all(&self, signal: Kill) {
        for pid in self.running() {
            self.signal_group(pid, signal);
        }
        if signal == Kill::KILL {
            let kills = self.kills.lock().unwrap_or_else(PoisonError::into_inner);
            for kill in kills.iter() {
                (kill.0)();
            }
        }
    }

    /// Has `end` called when everything is killed.
    pub fn on_kill(&self, end: impl Fn() + Send + 'static) {
        let mut kills = self.kills.lock().unwrap_or_else(PoisonError::into_inner);
        kills.push(OnKill(Box::new(end)));
    }

    /// Ends everything these programs have started, and them; says which do not die by `limit`.
    pub fn end_all(&self, limit: Duration) -> Vec<Pid> {
        match &self.keeper {
            Some(keeper) => keeper.sweep(),
            None => end_descendants(limit),
        }
    }

    /// Tells that no program will be started for a while. True if none is left that was started
    /// here.
    pub fn rest(&self) -> bool {
        match &self.keeper {
            Some(keeper) => keeper.rest(),
            None => self.running().is_empty(),
        }
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

fn check_dir(command: &Command) -> io::Result<()> {
    if let Some(dir) = command.get_current_dir().filter(|dir| !dir.is_dir()) {
        let why = format!("the directory {} is not there", dir.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    Ok(())
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
