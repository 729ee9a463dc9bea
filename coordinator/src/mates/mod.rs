//! The process in which the mates of a team are: for each a host, and its loop, on their threads.

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

/// The stack of a host's thread; what is not touched costs nothing.
const STACK: usize = 2 * 1024 * 1024;

/// Is the process of the mates until its guard has no more for it. Standard input leads to the guard;
/// standard output breaks when the guard dies. `ports` is what agents need of the program they are in.
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
        // The guard sees to all of them when we are gone.
        mates.give_thread(mate, None).map_err(failed)?;
    }
    // Hosts see by themselves that the guard is gone, and finish.
    mates.waiting.call_all();
    presence.await_nobody();
    Ok(())
}

/// A run that has been given to this process.
struct Mate {
    /// The guard has its lock, too, and lets go of it when it is told.
    handed: HandedRun,
    _present: Present,
}

/// Lets this process have as many files open as it may. Returns how many programs have usually.
fn more_files() -> Option<u64> {
    let usual = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: usual.maximum,
        maximum: usual.maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, limit).ok()?;
    usual.current
}

/// However a host ends, nothing that its agent has started is left.
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
    /// How many files programs may have open.
    files: Option<u64>,
    /// Waits for those who sleep.
    waiting: Waiting,
}

impl Mates {
    /// Gives a run a host on a thread of its own; `asleep` is how its agent was left.
    fn give_thread(&self, mate: Mate, asleep: Option<Asleep>) -> io::Result<()> {
        let mates = self.clone();
        std::thread::Builder::new()
            .name("host".to_owned())
            .stack_size(STACK)
            .spawn(move || mates.host(mate, asleep))?;
        Ok(())
    }

    /// Is the host of one run, whatever happens to it, until it has ended or sleeps.
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

    /// Says what became of a run.
    fn over(&self, mate: Mate, what: u8) {
        let path = mate.handed.dir.clone();
        drop(mate.handed);
        self.tell(what, &path);
    }

    /// Gives an agent that sleeps a host again when it needs one.
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
        // A thread of the agent may be there longer than the run.
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
