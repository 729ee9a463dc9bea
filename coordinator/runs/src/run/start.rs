//! Starting a guard for a run that is written down and taken.

use std::time::Duration;

use store::fault::reached;
use swarm::run::{By, Held, Meta, RunDir, Waiter, exit_of_dead};

use super::agents::Agents;
use super::error::AgentError;
use super::finish;
use super::guards::start_guard;
use super::mates;
use crate::fault;

/// A run that is under way.
#[derive(Debug)]
pub struct Launched {
    /// The files of the run.
    pub run: RunDir,
    /// The run's record at the start.
    pub meta: Meta,
    /// The caller's place to wait for the result, if it waits.
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
        // The processes that came up are gone, or they would have reported.
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
    /// Starts the run in the process of the team's teammates if the run may share it, else with a
    /// guard of its own.
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
        start_guard(self.guards.as_deref(), run, alive, &environment)
    }
}
