//! The guard: the process that is left when the host dies.
//!
//! It does next to nothing, so that nothing happens to it: it starts the host, waits, and if the
//! host did not finish its work, ends everything the host left behind and records how the run
//! ended. One thread, no async runtime.
//!
//! Guard and host supervise one run after another, as long as they get runs: starting two programs
//! costs more than most of what they do. Nothing of a run is left when the next one comes.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use store::fault::reached;
use store::lock::FileLock;

use super::exit::{By, Exit, ExitStatus};
use super::handed_run::HandedRun;
use super::meta::Meta;
use super::run_dir::{RunDir, RunError};
use crate::fault;
use crate::process::{Mark, end_descendants, pair};

/// Maximum time for killed processes to die.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The host's message that the end of the run is recorded.
pub(super) const RESULT_WRITTEN: u8 = b'r';
/// The host's message that everything is done for the run, and that it waits for the next one.
pub(super) const FINISHED: u8 = b'f';

/// The end of a guard's watch over a run.
#[derive(Debug)]
pub enum GuardEnd {
    /// The host did everything.
    HostFinished,
    /// The host died; everything it started is ended, and the run is to be finished like this.
    HostDied(Box<Exit>),
}

/// Watches over runs, one after another.
#[derive(Debug)]
pub struct Guard<F> {
    /// The way to start a host, but for its standard streams.
    program: F,
    host: Option<Host>,
}

#[derive(Debug)]
struct Host {
    child: Child,
    /// It gets its runs from here.
    orders: OwnedFd,
    /// The host's messages about them. It ends with the host, and breaks for the host when we end.
    said: ChildStdout,
}

impl<F: FnMut() -> Command> Guard<F> {
    /// Makes this process a guard. A host is started with the first run.
    pub fn begin(program: F) -> io::Result<Self> {
        // No terminal: no Ctrl-C and no closed window ends it.
        rustix::process::setsid().ok();
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Self {
            program,
            host: None,
        })
    }

    /// Has the run supervised to its end. `taken` is called as soon as the caller that gave it need
    /// not wait any longer, whatever became of the run.
    pub fn watch(
        &mut self,
        run: &RunDir,
        handed: &HandedRun,
        taken: impl FnOnce(),
    ) -> Result<GuardEnd, RunError> {
        let result = run.hold_result()?;
        bear_mark(run);
        reached(fault::RUN_GUARDED);
        let handed_on = self.hand_on(handed);
        taken();
        if let Err(error) = handed_on {
            self.end_host();
            return Ok(died(
                run,
                &run.meta()?,
                format!("its host could not be started: {error}"),
            ));
        }
        if self.hears_the_end(result) {
            return Ok(GuardEnd::HostFinished);
        }
        let why = match self.end_host() {
            Some(Ok(status)) => format!("its host died ({status})"),
            Some(Err(error)) => format!("its host is gone: {error}"),
            None => "its host is gone".into(),
        };
        Ok(died(run, &run.meta()?, why))
    }

    fn hand_on(&mut self, handed: &HandedRun) -> io::Result<()> {
        if let Some(host) = &self.host
            && handed.send(&host.orders).is_ok()
        {
            return Ok(());
        }
        // It died while it had nothing to do.
        self.end_host();
        let (ours, theirs) = pair()?;
        let mut host = (self.program)()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::piped())
            .spawn()?;
        let said = host.stdout.take();
        let host = self.host.insert(Host {
            said: said.ok_or_else(|| io::Error::other("a host that cannot be heard"))?,
            child: host,
            orders: ours,
        });
        handed.send(&host.orders)
    }

    /// Listens until the host has finished its run; false if it ends before that.
    fn hears_the_end(&mut self, result: FileLock) -> bool {
        let Some(host) = &mut self.host else {
            return false;
        };
        let mut result = Some(result);
        let mut byte = [0];
        loop {
            match host.said.read(&mut byte) {
                Ok(0) => return false,
                // Until here those who wait for the result sleep.
                Ok(_) if byte == [RESULT_WRITTEN] => drop(result.take()),
                Ok(_) if byte == [FINISHED] => return true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Waits for the host, which gets nothing more, and ends whatever it has left. Says how it
    /// ended, if there was one.
    fn end_host(&mut self) -> Option<io::Result<std::process::ExitStatus>> {
        let Host {
            mut child,
            orders,
            said,
        } = self.host.take()?;
        // The host sees that nothing more comes, and that we hear nothing.
        drop((orders, said));
        let ended = child.wait();
        let left = end_descendants(KILL_TIMEOUT);
        if !left.is_empty() {
            tracing::error!(?left, "processes of the run do not die");
        }
        Some(ended)
    }

    /// There are no more runs.
    pub fn end(mut self) {
        self.end_host();
    }
}

/// Makes every process that this one starts from now on findable as the run's, even without a
/// supervisor.
pub fn bear_mark(run: &RunDir) {
    if let Err(error) = Mark::of_run(run.id()).bear() {
        tracing::debug!(%error, "the run's processes bear no mark");
    }
}

/// Records the end of a run whose host died.
fn died(run: &RunDir, meta: &Meta, why: String) -> GuardEnd {
    GuardEnd::HostDied(Box::new(exit_of_dead(run, meta, By::Guard, why)))
}

/// The end of a run whose supervisor died: stopped if a stop was requested, else lost.
pub fn exit_of_dead(run: &RunDir, meta: &Meta, by: By, why: String) -> Exit {
    let stop = run.stop_request(meta.life).ok().flatten();
    let (status, error) = match stop {
        Some(stop) => (ExitStatus::Killed, stop_words(&stop.by, stop.reason)),
        None => (ExitStatus::Lost, why),
    };
    super::partial::exit(run, meta, status, error, by)
}

/// The reason for the end of a run that was stopped.
pub(super) fn stop_words(by: &str, reason: Option<String>) -> String {
    match reason {
        Some(reason) => format!("stopped by {by}: {reason}"),
        None => format!("stopped by {by}"),
    }
}
