//! The guard: the one who is left when the host dies.
//!
//! It does next to nothing, so that nothing happens to it: it starts the host, waits, and if the
//! host did not finish its work, ends everything the host left behind and finishes the run.
//! One thread, no async runtime.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use store::IoContext;
use store::fault::reached;

use super::exit::{By, Exit, ExitStatus};
use super::meta::Meta;
use super::run_dir::{RunDir, RunError};
use crate::fault;
use crate::process::{Mark, end_descendants};

/// How long those that are killed may take to die.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// What the host says when it is written down how the run ended.
pub(super) const RESULT_WRITTEN: u8 = b'r';

/// How a guard's watch ended.
#[derive(Debug)]
pub enum GuardEnd {
    /// The host did everything.
    HostFinished,
    /// The host died; everything it started is ended, and the run is to be finished like this.
    HostDied(Box<Exit>),
}

/// Watches over a run. Standard input is the run's `alive.lock`, which the host gets as well;
/// standard output, if it is a pipe, is told once that the host is up.
pub fn guard(run: &RunDir, mut host: Command) -> Result<GuardEnd, RunError> {
    // No terminal: nobody's Ctrl-C and no window that closes ends it.
    rustix::process::setsid().ok();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .context("supervise", run.path())?;
    let result = run.hold_result()?;
    // Whatever the run starts can be found by it when nobody is left who knows.
    if let Err(error) = Mark::of_run(run.id()).bear() {
        tracing::debug!(%error, "the run's processes bear no mark");
    }
    reached(fault::RUN_GUARDED);
    // A copy that no program inherits by accident: whoever has it keeps the run alive.
    let alive: OwnedFd = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .context("lock", run.path())?;
    host.stdin(Stdio::from(alive)).stdout(Stdio::piped());
    let started = host.spawn();
    // What it was handed is its own now.
    drop(host);
    // Whoever started us need not wait any longer, whatever became of it.
    tell_starter();
    let mut host = match started {
        Ok(host) => host,
        Err(error) => {
            let why = format!("its host could not be started: {error}");
            return exit_without_host(run, why).map(|exit| GuardEnd::HostDied(Box::new(exit)));
        }
    };
    listen(&mut host, result);
    let ended = host.wait();
    // If the host did its work there are none.
    let left = end_descendants(KILL_TIMEOUT);
    if !left.is_empty() {
        tracing::error!(?left, "processes of the run do not die");
    }
    match ended {
        Ok(status) if status.success() => Ok(GuardEnd::HostFinished),
        Ok(status) => {
            let why = format!("its host died ({status})");
            exit_without_host(run, why).map(|exit| GuardEnd::HostDied(Box::new(exit)))
        }
        Err(error) => {
            let why = format!("its host is gone: {error}");
            exit_without_host(run, why).map(|exit| GuardEnd::HostDied(Box::new(exit)))
        }
    }
}

/// Says that the host is up, and lets go of the pipe.
fn tell_starter() {
    let mut stdout = io::stdout();
    stdout.write_all(b"\n").and_then(|()| stdout.flush()).ok();
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        rustix::stdio::dup2_stdout(&null).ok();
    }
}

/// Waits until the host closes its end, which it does by ending.
fn listen(host: &mut Child, result: store::lock::FileLock) {
    let Some(mut said) = host.stdout.take() else {
        return;
    };
    let mut result = Some(result);
    let mut byte = [0];
    loop {
        match said.read(&mut byte) {
            Ok(0) => return,
            // Until here those who wait for the result sleep.
            Ok(_) if byte == [RESULT_WRITTEN] => drop(result.take()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// How a run ended whose host cannot say.
fn exit_without_host(run: &RunDir, why: String) -> Result<Exit, RunError> {
    Ok(exit_of_dead(run, &run.meta()?, By::Guard, why))
}

/// How a run ended that nobody was there to see: stopped if somebody wanted that, else lost.
pub fn exit_of_dead(run: &RunDir, meta: &Meta, by: By, why: String) -> Exit {
    let stop = run.stop_request(meta.life).ok().flatten();
    let (status, error) = match stop {
        Some(stop) => (ExitStatus::Killed, stop_words(&stop.by, stop.reason)),
        None => (ExitStatus::Lost, why),
    };
    super::partial::exit(run, meta, status, error, by)
}

/// Why a run that was stopped ended.
pub(super) fn stop_words(by: &str, reason: Option<String>) -> String {
    match reason {
        Some(reason) => format!("stopped by {by}: {reason}"),
        None => format!("stopped by {by}"),
    }
}
