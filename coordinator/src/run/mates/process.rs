//! The process in which the mates of a team are: for each a host, and its loop, on their threads.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use swarm::native::{Ports, Together};
use swarm::process::{KEEPER, Keeper, MARKER, receive, send};
use swarm::run::{Premises, RunDir};
use swarm::starter;

use super::super::entry::{Shared, open, supervise};
use super::super::error::AgentError;
use super::{FINISHED, GIVEN_UP, RESULT_WRITTEN, RETIRES, about, named};
use crate::env::OWN_PROGRAM;

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
    let mates = Mates {
        guard,
        together: Together::new(ports, retire).map_err(failed)?,
        files: more_files(),
    };
    let mut hosts: Vec<JoinHandle<()>> = Vec::new();
    while let Some(order) = receive(&*mates.guard).map_err(failed)? {
        hosts.retain(|host| !host.is_finished());
        let path = named(order.bytes.get(1..).unwrap_or_default());
        let Ok([alive, environment]) = <[OwnedFd; 2]>::try_from(order.descriptors) else {
            tracing::error!("a run without its lock");
            continue;
        };
        let mates = mates.clone();
        let host = std::thread::Builder::new()
            .name("host".to_owned())
            .stack_size(STACK)
            .spawn(move || mates.host(&path, alive, environment));
        match host {
            Ok(host) => hosts.push(host),
            // The guard sees to all of them when we are gone.
            Err(error) => return Err(failed(error)),
        }
    }
    // Hosts see by themselves that the guard is gone, and finish.
    for host in hosts {
        host.join().ok();
    }
    Ok(())
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
}

impl Mates {
    /// Is the host of one run, whatever happens to it.
    fn host(&self, path: &Path, alive: OwnedFd, environment: OwnedFd) {
        let hosted = catch_unwind(AssertUnwindSafe(|| self.supervise(path, environment)));
        // The guard has the lock, too, and lets go of it when it is told.
        drop(alive);
        let what = match hosted {
            Ok(Ok(())) => FINISHED,
            Ok(Err(error)) => {
                tracing::error!(%error, run = %path.display(), "the run is not finished");
                GIVEN_UP
            }
            Err(_) => {
                tracing::error!(run = %path.display(), "a bug ended the run's host");
                GIVEN_UP
            }
        };
        self.tell(what, path);
    }

    fn supervise(&self, path: &Path, environment: OwnedFd) -> Result<(), AgentError> {
        let (run, home) = open(path)?;
        let given = starter::received(File::from(environment)).unwrap_or_default();
        let keeper = Arc::new(self.keeper(&run));
        // A thread of the agent may be there longer than the run.
        let _closes = CloseOnDrop(Arc::clone(&keeper));
        let mut result_written = || self.tell(RESULT_WRITTEN, path);
        let shared = Shared {
            together: &self.together,
            premises: Premises {
                keeper: Some(keeper),
                result_written: &mut result_written,
            },
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
