//! The process that teammates share: each has a host and a loop on threads of its own.

mod present;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use native::{Ports, Together};
use runs::env::OWN_PROGRAM;
use runs::mates::{FINISHED, GIVEN_UP, RESULT_WRITTEN, RETIRES, about};
use runs::{AgentError, Asleep, Shared, open, supervise};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use swarm::process::{KEEPER, Keeper, MARKER, send};
use swarm::run::{HandedRun, Premises, RunDir, Waiting};

use self::present::{Presence, Present};

/// Stack size in bytes of a host's thread; untouched pages cost nothing.
const STACK: usize = 2 * 1024 * 1024;

/// Runs the process of the teammates until its guard has no more for it. Standard input comes from
/// the guard; standard output breaks when the guard dies. `ports` are the services of the program
/// that agents need.
pub fn mates_main(dir: &Path, ports: Ports) -> Result<(), AgentError> {
    let failed = |error: io::Error| AgentError::Invalid(format!("{}: {error}", dir.display()));
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| failed(error.into()))?;
    let guard = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let guard = Arc::new(guard);
    let told = Arc::clone(&guard);
    let retire = move || drop(send(&*told, &[RETIRES], &[]));
    let together = Together::new(ports, retire).map_err(failed)?;
    let mates = Mates {
        guard,
        waiting: Waiting::on(together.scheduler()),
        together,
        files: more_files(),
    };
    let presence = Presence::default();
    while let Some(handed) = HandedRun::receive(&*mates.guard).map_err(failed)? {
        let mate = Mate {
            handed,
            _present: presence.enter(),
        };
        // The guard handles all of them when this process has exited.
        mates.give_thread(mate, None).map_err(failed)?;
    }
    // Hosts notice themselves that the guard has exited, and finish.
    mates.waiting.call_all();
    presence.await_nobody();
    Ok(())
}

/// A run that was given to this process.
struct Mate {
    /// The guard also holds its lock, and releases it after a message.
    handed: HandedRun,
    _present: Present,
}

/// Raises this process's limit of open files to the maximum. Returns the usual limit of programs.
fn more_files() -> Option<u64> {
    let usual = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: usual.maximum,
        maximum: usual.maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, limit).ok()?;
    usual.current
}

/// Closes all processes that its agent has started, however a host ends.
struct CloseOnDrop(Arc<Keeper>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[derive(Clone)]
struct Mates {
    guard: Arc<OwnedFd>,
    together: Together,
    /// Maximum number of open files of programs.
    files: Option<u64>,
    /// Waits for sleeping agents.
    waiting: Waiting,
}

impl Mates {
    /// Gives a run a host on a thread of its own; `asleep` is the state its agent was left in.
    fn give_thread(&self, mate: Mate, asleep: Option<Asleep>) -> io::Result<()> {
        let mates = self.clone();
        std::thread::Builder::new()
            .name("host".to_owned())
            .stack_size(STACK)
            .spawn(move || mates.host(mate, asleep))?;
        Ok(())
    }

    /// Runs the host of one run until it has ended or sleeps, including after a panic.
    fn host(self, mate: Mate, asleep: Option<Asleep>) {
        let path = &mate.handed.dir;
        let hosted = catch_unwind(AssertUnwindSafe(|| self.supervise(&mate, asleep)));
        let what = match hosted {
            Ok(Ok(Some(asleep))) => {
                self.together.is_asleep();
                return self.wait(mate, asleep);
            }
            Ok(Ok(None)) => FINISHED,
            Ok(Err(error)) => {
                tracing::error!(%error, run = %path.display(), "the run is not finished");
                GIVEN_UP
            }
            Err(_) => {
                tracing::error!(run = %path.display(), "a bug ended the run's host");
                GIVEN_UP
            }
        };
        self.over(mate, what);
    }

    /// Reports the end of a run.
    fn over(&self, mate: Mate, what: u8) {
        let path = mate.handed.dir.clone();
        drop(mate.handed);
        self.tell(what, &path);
    }

    /// Gives a sleeping agent a host again when it needs one.
    fn wait(self, mate: Mate, asleep: Asleep) {
        let Asleep { parked, held } = asleep;
        self.waiting.clone().add(parked, move |parked| {
            let path = mate.handed.dir.clone();
            if let Err(error) = self.give_thread(mate, Some(Asleep { parked, held })) {
                tracing::error!(%error, "an agent that slept gets no host");
                self.tell(GIVEN_UP, &path);
            }
        });
    }

    fn supervise(&self, mate: &Mate, asleep: Option<Asleep>) -> Result<Option<Asleep>, AgentError> {
        let path = &mate.handed.dir;
        let (run, home) = open(path)?;
        let given = mate.handed.environment().unwrap_or_default();
        let keeper = Arc::new(self.keeper(&run));
        // A thread of the agent may live longer than the run.
        let _closes = CloseOnDrop(Arc::clone(&keeper));
        let mut result_written = || self.tell(RESULT_WRITTEN, path);
        let (parked, held) = asleep.map(|it| (it.parked, it.held)).unzip();
        let shared = Shared {
            shared_loop: &self.together,
            premises: Premises {
                keeper: Some(keeper),
                result_written: &mut result_written,
                parked,
            },
            held,
        };
        supervise(&run, &home, &given, Some(shared))
    }

    fn keeper(&self, run: &RunDir) -> Keeper {
        let (id, dir): (String, PathBuf) = (run.id().to_owned(), run.path().to_owned());
        Keeper::new(self.files, move |orders| {
            Command::new(OWN_PROGRAM)
                .arg(KEEPER)
                .arg(&dir)
                .current_dir("/")
                .stdin(Stdio::from(orders))
                .stdout(Stdio::null())
                .env_clear()
                .env(MARKER, &id)
                .spawn()
        })
    }

    fn tell(&self, what: u8, path: &Path) {
        if let Err(error) = send(&*self.guard, &about(what, path), &[]) {
            tracing::warn!(%error, "the guard does not hear of a run");
        }
    }
}
