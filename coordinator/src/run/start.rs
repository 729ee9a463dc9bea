//! Starting a guard for a run that is written down and taken.

use std::ffi::OsString;
use std::fs::File;
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
use super::mates;
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
        let started = self.start_supervised(run, held, meta);
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

impl Agents {
    /// In the process of the team's mates if the run may share it, else with a guard of its own.
    fn start_supervised(&self, run: &RunDir, held: Held, meta: &Meta) -> Result<(), String> {
        let alive = held.hand_over().map_err(|error| error.to_string())?;
        let environment = self.starter.environment();
        if mates::may_share(meta) {
            match self.start_together(run, &alive, &environment) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "an agent gets processes of its own");
                }
            }
        }
        start_guard(run, alive, &environment)
    }
}

/// Starts the guard and waits until it says that the host is up, or dies. `environment` is handed
/// over where nobody else can see it; the guard's own shows next to nothing.
fn start_guard(
    run: &RunDir,
    alive: File,
    environment: &[(OsString, OsString)],
) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
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
pub(super) fn reap_later(guard: std::process::Child) {
    use std::sync::{Mutex, PoisonError};
    static GUARDS: Mutex<Vec<std::process::Child>> = Mutex::new(Vec::new());
    let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
    guards.push(guard);
    guards.retain_mut(|guard| matches!(guard.try_wait(), Ok(None)));
}
