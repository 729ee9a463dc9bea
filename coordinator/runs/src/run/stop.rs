//! Ending a run from outside.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use store::clock::{Clock, SystemClock, rfc3339};
use swarm::run::{Meta, RunDir, StopRequest};

use super::agents::{Agents, state_word};
use super::error::AgentError;
use super::wait::Outcome;

/// Time a run may take to end in addition to its grace, before ccb kills its host.
const LENIENCE: Duration = Duration::from_secs(5);
/// Maximum time for a guard to finish a run whose host was killed.
const GUARD_TIME: Duration = Duration::from_secs(5);

/// Asks the present life of a run to end.
pub(super) fn stop_request(
    meta: &Meta,
    by: &str,
    reason: Option<String>,
    grace: Duration,
) -> StopRequest {
    StopRequest {
        life: meta.life,
        by: by.to_owned(),
        at: rfc3339(SystemClock.now_ms()),
        reason,
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
    }
}

impl Agents {
    /// Ends a running agent: asks, then insists, then forces. Returns how it ended; its parent gets
    /// a notification as well.
    pub fn stop(
        &self,
        meta: &Meta,
        by: &str,
        reason: Option<String>,
        grace: Option<Duration>,
    ) -> Result<Outcome, AgentError> {
        let run = self.run(&meta.agent_id);
        self.reconcile_one(&run)?;
        let meta = run.meta()?;
        // A run whose end is written down is not running, although its host or guard still tidies
        // up.
        if !run.is_alive()? || run.exit(meta.life)?.is_some() {
            return Err(AgentError::NotRunning {
                id: meta.agent_id.clone(),
                state: state_word(&meta, false),
            });
        }
        let grace = grace.unwrap_or_else(|| self.grace());
        run.ask_to_stop(&stop_request(&meta, by, reason, grace))?;
        // Asking by protocol, SIGTERM and SIGKILL are the host's; each has its time.
        await_end(&run, grace * 2 + LENIENCE)?;
        self.reconcile_one(&run)?;
        match run.exit(meta.life)? {
            Some(exit) => Ok(Outcome {
                meta: run.meta()?,
                exit,
            }),
            None => Err(AgentError::WillNotEnd {
                id: meta.agent_id.clone(),
            }),
        }
    }
}

/// Waits until a run that was asked to end has no supervisor; if that takes too long, kills its
/// host, and then its guard.
fn await_end(run: &RunDir, limit: Duration) -> Result<(), AgentError> {
    let mut ended = run.wait_dead(limit)?;
    if !ended {
        // Its host hangs, or is stopped. Then the guard does it, and else this process does.
        let meta = run.meta()?;
        for supervisor in [&meta.host, &meta.guard] {
            // A run that has ended meanwhile may have left its processes to another run.
            if let Some(process) = supervisor
                && !ended
                && run.is_alive()?
            {
                process.signal(Signal::KILL);
                ended = run.wait_dead(GUARD_TIME)?;
            }
        }
    }
    Ok(())
}

/// Ends all agents whose runs are in `runs`, except the run `spared`: asks every one of them, then
/// waits for all. A failure to end one is only logged; its lock shows it, too.
pub fn stop_all(
    runs: &Path,
    spared: Option<&str>,
    by: &str,
    why: &str,
    grace: Duration,
) -> Result<(), AgentError> {
    let (metas, _) = swarm::run::all(runs)?;
    let mut asked = Vec::new();
    for meta in metas {
        let run = RunDir::new(runs, &meta.agent_id);
        let runs_on = run.is_alive()? && run.exit(meta.life)?.is_none();
        if runs_on && spared != Some(meta.agent_id.as_str()) {
            run.ask_to_stop(&stop_request(&meta, by, Some(why.to_owned()), grace))?;
            asked.push(run);
        }
    }
    let deadline = Instant::now() + grace * 2 + LENIENCE;
    for run in asked {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Err(error) = await_end(&run, left) {
            tracing::warn!(%error, id = run.id(), "an agent is not ended");
        }
    }
    Ok(())
}
