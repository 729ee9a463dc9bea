//! A command as a process group of its own, which ends with the caller that waits for it.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use swarm::process::{Ended, Ending, Processes};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{self, SignalKind};

/// Between asking a command to end and making it.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum bytes of one read.
const CHUNK: usize = 32 * 1024;

/// A command that runs. Dropping it kills everything in its group.
#[derive(Debug)]
pub(super) struct Running {
    process: Process,
    group: Pid,
    output: Option<pipe::Receiver>,
    ended: Option<ExitStatus>,
}

/// The process that waits for it.
#[derive(Debug)]
enum Process {
    /// We do.
    Ours {
        child: Child,
        /// Some child has ended.
        signals: unix::Signal,
    },
    /// Another process has started it for us.
    Theirs { processes: Processes, ended: Ended },
}

/// The next event of a command.
#[derive(Debug)]
pub(super) enum Next {
    /// It printed these bytes.
    Output(Vec<u8>),
    /// It ended; all its output was returned before.
    Ended(ExitStatus),
}

impl Running {
    /// Starts `words` in `dir` with nothing to read, and both outputs in one pipe.
    pub(super) fn start(
        words: &[OsString],
        dir: &std::path::Path,
        env: &[(OsString, OsString)],
        processes: Option<&Processes>,
    ) -> io::Result<Self> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::other("there is no command"))?;
        let (reader, writer) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(dir)
            .env_clear()
            .envs(env.iter().cloned());
        let theirs = match processes {
            Some(processes) => {
                let started = processes.spawn_into(&command, writer.try_clone()?.into());
                started.map(|started| (processes.clone(), started))
            }
            None => None,
        };
        let (group, process) = match theirs {
            Some((processes, started)) => {
                let (group, ended) = started?;
                (group, Process::Theirs { processes, ended })
            }
            None => start(&mut command, writer)?,
        };
        // Its copies of the pipe's end, which would keep it open.
        drop(command);
        Ok(Self {
            process,
            group,
            output: Some(output),
            ended: None,
        })
    }

    /// Waits for output or the end. The command's own output comes before its end; later output of
    /// processes it left behind does not come at all.
    pub(super) async fn next(&mut self) -> io::Result<Next> {
        let mut bytes = Vec::with_capacity(CHUNK);
        loop {
            if let Some(status) = self.ended {
                let left = self.output.as_ref().map(left_in);
                if let Some(left) = left.filter(|left| !left.is_empty()) {
                    return Ok(Next::Output(left));
                }
                self.output = None;
                return Ok(Next::Ended(status));
            }
            tokio::select! {
                biased;
                read = read(&mut self.output, &mut bytes) => match read? {
                    0 => self.output = None,
                    _ => return Ok(Next::Output(bytes)),
                },
                ended = self.process.ended() => self.ended = ended?,
            }
        }
    }

    /// Asks the group to end, then makes it.
    pub(super) async fn end(&mut self) {
        if self.ended.is_none() {
            self.process.signal(self.group, Signal::TERM);
            let over = self.process.over(self.group);
            if let Ok(Some(status)) = tokio::time::timeout(GRACE, over).await {
                self.ended = Some(status);
                // Others of its group need not have ended with it.
                self.process.signal(self.group, Signal::KILL);
            }
        }
        self.kill();
    }

    fn kill(&mut self) {
        // The id stays taken as long as the process was not waited for.
        if self.ended.is_none() {
            self.process.signal(self.group, Signal::KILL);
            if let Process::Ours { child, .. } = &mut self.process {
                self.ended = child.try_wait().ok().flatten();
            }
        }
    }
}

/// Starts it as a child of this process.
fn start(command: &mut Command, writer: io::PipeWriter) -> io::Result<(Pid, Process)> {
    // Before the start, so that no end is missed.
    let signals = unix::signal(SignalKind::child())?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let child = command.spawn()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = group.ok_or_else(|| io::Error::other("a process without an id"))?;
    Ok((group, Process::Ours { child, signals }))
}

impl Process {
    /// Waits until something has ended; how, if it was this one.
    async fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Ours { child, signals } => {
                signals.recv().await;
                child.try_wait()
            }
            Self::Theirs { ended, .. } => {
                let ending = ended.await.unwrap_or(Ending::Unknown);
                Ok(Some(ending.status()))
            }
        }
    }

    /// Waits for its end without making its id free, as far as that is ours; how it ended, if that
    /// is known then.
    async fn over(&mut self, group: Pid) -> Option<ExitStatus> {
        match self {
            Self::Ours { signals, .. } => {
                // It was not waited for yet: its id is still valid.
                while !is_zombie(group) {
                    signals.recv().await;
                }
                None
            }
            Self::Theirs { ended, .. } => Some(ended.await.unwrap_or(Ending::Unknown).status()),
        }
    }

    fn signal(&self, group: Pid, signal: Signal) {
        match self {
            Self::Ours { .. } => drop(kill_process_group(group, signal)),
            Self::Theirs { processes, .. } => processes.signal_group(group, signal),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        if self.ended.is_none()
            && let Process::Ours { child, .. } = &mut self.process
            && let Err(error) = child.wait()
        {
            tracing::debug!(%error, "a command that was killed cannot be waited for");
        }
    }
}

fn is_zombie(pid: Pid) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// The bytes that are in the pipe now. The kernel is asked, and not tokio, which knows only what it
/// has heard: the end of a command can be heard before its output is.
fn left_in(pipe: &pipe::Receiver) -> Vec<u8> {
    let mut bytes = vec![0; CHUNK];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut bytes));
    bytes.truncate(read.unwrap_or(0));
    bytes
}

async fn read(pipe: &mut Option<pipe::Receiver>, bytes: &mut Vec<u8>) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read_buf(bytes).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn what_was_printed_comes_before_the_end_whichever_is_heard_first() {
        let words = ["/bin/sh", "-c", "echo out"].map(OsString::from);
        let mut running = Running::start(&words, Path::new("/"), &[], None).unwrap();
        let Process::Ours { child, .. } = &mut running.process else {
            panic!("{running:?}");
        };
        // Nothing else runs meanwhile, so tokio has not heard of the output.
        running.ended = Some(child.wait().unwrap());
        let first = running.next().await.unwrap();
        assert!(
            matches!(&first, Next::Output(bytes) if bytes == b"out\n"),
            "{first:?}"
        );
        let last = running.next().await.unwrap();
        assert!(
            matches!(last, Next::Ended(status) if status.success()),
            "{last:?}"
        );
    }
}
