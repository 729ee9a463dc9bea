//! Runs a program to its end, with a time limit.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

mod running;

pub use running::end_running_programs;

/// The end of a program and its captured output.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// True if it was killed because its time was up.
    pub(crate) timed_out: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// The standard input of a program.
#[derive(Debug)]
pub(crate) enum Input {
    /// Nothing.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing; the lock stays taken until the program ends, even if this process dies.
    Lock(std::fs::File),
}

/// Removes the environment variables by which a caller, such as a hook, points git elsewhere.
pub(crate) fn forget_git(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
}

/// A shell command in a worktree, as checks and set-ups run.
pub(crate) fn shell(command: &str, tree: &Path, main: &Path) -> Command {
    let mut shell = Command::new("sh");
    forget_git(&mut shell);
    shell
        .args(["-c", command])
        .current_dir(tree)
        .env("CCB_WORKTREE", tree)
        .env("CCB_MAIN_TREE", main);
    shell
}

/// A program whose output is captured; it can be run more than once.
#[derive(Debug)]
pub(crate) struct Captured {
    command: Command,
    bytes: Option<Vec<u8>>,
    most: usize,
}

impl Captured {
    /// `command` with this on its standard input.
    pub(crate) fn new(mut command: Command, input: Input) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let bytes = match input {
            Input::Nothing => {
                command.stdin(Stdio::null());
                None
            }
            Input::Lock(file) => {
                command.stdin(file);
                None
            }
            Input::Bytes(bytes) => {
                command.stdin(Stdio::piped());
                Some(bytes)
            }
        };
        Self {
            command,
            bytes,
            most: usize::MAX,
        }
    }

    /// Ends the program when its output is longer than this; captures one byte more.
    pub(crate) fn most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(&mut self, timeout: Duration) -> io::Result<Finished> {
        let never = AtomicBool::new(false);
        let input = self.bytes.as_deref();
        start(&mut self.command, input, timeout, &never, self.most)
    }
}

/// Runs `command` with the standard streams its caller gave it.
///
/// It gets a process group of its own, which is killed as a whole when its time is up.
pub(crate) fn run(command: Command, timeout: Duration) -> io::Result<Finished> {
    run_until(command, timeout, &AtomicBool::new(false))
}

/// The same; setting `stop` asks the group to end, and kills it if it does not.
pub(crate) fn run_until(
    mut command: Command,
    timeout: Duration,
    stop: &AtomicBool,
) -> io::Result<Finished> {
    start(&mut command, None, timeout, stop, usize::MAX)
}

fn start(
    command: &mut Command,
    input: Option<&[u8]>,
    timeout: Duration,
    stop: &AtomicBool,
    most: usize,
) -> io::Result<Finished> {
    command.process_group(0);
    let (mut child, _running) = running::spawn(command)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let (done, ended) = mpsc::channel::<()>();
        let watch = scope.spawn(move || {
            let late = !ends_in_time(&ended, timeout, stop, pid);
            if late {
                signal(pid, Signal::KILL);
            }
            late
        });
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A program may end without reading everything.
            scope.spawn(move || stdin.write_all(input).ok());
        }
        let errors = scope.spawn(move || read_all(stderr, usize::MAX));
        let stdout = read_all(stdout, most);
        if stdout.len() > most {
            signal(pid, Signal::KILL);
        }
        let stderr = errors.join().unwrap_or_default();
        // Waits without reaping: the process id stays taken, so that the watcher cannot hit another
        // one.
        wait_without_reaping(pid);
        drop(done);
        let timed_out = watch.join().unwrap_or(false);
        Ok(Finished {
            status: child.wait()?,
            timed_out,
            stdout,
            stderr,
        })
    })
}

/// Poll interval for a stop request, and for the end of the program after it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const STOP_GRACE: Duration = Duration::from_secs(3);

/// Waits for the end; `false` if time was up or it did not stop when asked.
fn ends_in_time(
    ended: &mpsc::Receiver<()>,
    timeout: Duration,
    stop: &AtomicBool,
    pid: Option<Pid>,
) -> bool {
    let mut deadline = Instant::now() + timeout;
    let mut asked = false;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if ended.recv_timeout(left.min(POLL_INTERVAL)) == Err(RecvTimeoutError::Disconnected) {
            return true;
        }
        if left.is_zero() {
            return false;
        }
        if stop.load(Ordering::Relaxed) && !asked {
            asked = true;
            deadline = deadline.min(Instant::now() + STOP_GRACE);
            signal(pid, Signal::TERM);
        }
    }
}

fn signal(pid: Option<Pid>, signal: Signal) {
    if let Some(pid) = pid
        && let Err(error) = kill_process_group(pid, signal)
    {
        tracing::debug!(%error, "the program is gone already");
    }
}

fn wait_without_reaping(pid: Option<Pid>) {
    let Some(pid) = pid else { return };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
}

/// The whole output, or its first `most` bytes and one more.
fn read_all(stream: Option<impl Read>, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    if let Some(stream) = stream
        && let Err(error) = stream.take(most).read_to_end(&mut bytes)
    {
        tracing::warn!(%error, "the output of a program was cut off");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn input_and_both_outputs_pass_whole() {
        let input = vec![b'x'; 1 << 20];
        let mut tee = Captured::new(sh("tee /dev/stderr"), Input::Bytes(input.clone()));
        // Also the second time.
        for _ in 0..2 {
            let finished = tee.run(Duration::from_secs(60)).unwrap();
            assert!(finished.status.success() && !finished.timed_out);
            assert_eq!(finished.stdout, input);
            assert_eq!(finished.stderr, input);
        }
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        // The child holds the pipe open; only killing the whole group ends the reading.
        let finished = Captured::new(sh("sleep 1000 & sleep 1000"), Input::Nothing)
            .run(Duration::from_millis(50))
            .unwrap();
        assert!(finished.timed_out);
        assert!(!finished.status.success());
    }
}
