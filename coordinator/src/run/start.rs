//! Starting a guard for a run that is written down and taken.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use store::atomic;
use store::fault::reached;
use swarm::environment::for_supervisors;
use swarm::run::{By, Held, Meta, RunDir, Waiter, exit_of_dead};
use swarm::starter;

use super::agents::Agents;
use super::error::AgentError;
use super::finish;
use crate::env::OWN_PROGRAM;
use crate::fault;

/// The first argument of a guard; the second is its run's directory.
pub const GUARD: &str = "__guard";
/// The same of a host.
pub const HOST: &str = "__host";

/// A run that is under way.
#[derive(Debug)]
pub struct Launched {
    /// Its files.
    pub run: RunDir,
    /// As it was when it was started.
    pub meta: Meta,
    /// Somebody waits for its result.
    pub(super) waiter: Option<Waiter>,
}

impl Agents {
    /// Starts the guard of a run. If that fails the run is finished as failed.
    pub(super) fn start(&self, run: &RunDir, held: Held, meta: &Meta) -> Result<(), AgentError> {
        reached(fault::SPAWN_READY);
        let started = start_guard(run, held, &self.starter.environment());
        reached(fault::SPAWN_STARTED);
        let why = match started {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        // Whatever came up is gone, or it would have said that it is there.
        run.wait_dead(Duration::from_secs(10))?;
        let held = run.take()?;
        let exit = exit_of_dead(run, meta, By::Starter, why.clone());
        finish::finish(self, run, &exit, None, &mut || ())?;
        drop(held);
        Err(AgentError::NotStarted {
            id: meta.agent_id.clone(),
            why,
        })
    }
}

/// Starts the guard and waits until it says that the host is up, or dies. `environment` is handed
/// over where nobody else can see it; the guard's own shows next to nothing.
fn start_guard(
    run: &RunDir,
    held: Held,
    environment: &[(OsString, OsString)],
) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let alive = held.hand_over().map_err(|error| words(&error))?;
    // Made here, so that what keeps it from being made is known here.
    atomic::open_private(&run.log_path()).map_err(|error| words(&error))?;
    let handed = starter::hand_over(environment).map_err(|error| words(&error))?;
    let mut guard = Command::new(OWN_PROGRAM)
        .arg(GUARD)
        .arg(run.path())
        // Nothing it does depends on it, and nobody's directory is kept busy by it.
        .current_dir(Path::new("/"))
        .stdin(Stdio::from(alive))
        .stdout(Stdio::piped())
        .stderr(Stdio::from(handed))
        .env_clear()
        .envs(for_supervisors(environment.iter().cloned()))
        .spawn()
        .map_err(|error| format!("its guard could not be started: {error}"))?;
    let mut said = [0];
    let told = guard
        .stdout
        .take()
        .is_some_and(|mut stdout| stdout.read_exact(&mut said).is_ok());
    if told {
        // It is waited for by whoever is left when we are gone, or by the next call.
        reap_later(guard);
        return Ok(());
    }
    let how = guard.wait().map_err(|error| error.to_string())?;
    Err(format!("its guard died ({how})"))
}

/// A process that starts many runs must not collect the remains of those that have ended.
fn reap_later(guard: std::process::Child) {
    use std::sync::{Mutex, PoisonError};
    static GUARDS: Mutex<Vec<std::process::Child>> = Mutex::new(Vec::new());
    let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
    guards.push(guard);
    guards.retain_mut(|guard| matches!(guard.try_wait(), Ok(None)));
}
