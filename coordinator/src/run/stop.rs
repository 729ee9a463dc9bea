//! Ending a run from outside.

use std::time::Duration;

use rustix::process::Signal;
use store::clock::{Clock, SystemClock, rfc3339};
use swarm::run::{Meta, StopRequest};

use super::agents::{Agents, state_word};
use super::error::AgentError;
use super::wait::Outcome;

/// How much longer than its grace a run may take to end before its host is killed.
const LENIENCE: Duration = Duration::from_secs(5);
/// How long a guard may take to finish a run whose host was killed.
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
    /// Ends a running agent: asks, then insists, then forces. Returns how it ended; its parent
    /// is told as well.
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
        // Whose end is written down is not running, although somebody still tidies up after it.
        if !run.is_alive()? || run.exit(meta.life)?.is_some() {
            return Err(AgentError::NotRunning {
                id: meta.agent_id.clone(),
                state: state_word(&meta, false),
            });
        }
        let grace = grace.unwrap_or_else(|| self.grace());
        run.ask_to_stop(&stop_request(&meta, by, reason, grace))?;
        // Asking by protocol, SIGTERM and SIGKILL are the host's; each has its time.
        let mut ended = run.wait_dead(grace * 2 + LENIENCE)?;
        if !ended {
            // Its host hangs, or is stopped. Then the guard does it, and else we do.
            let meta = run.meta()?;
            for supervisor in [&meta.host, &meta.guard] {
                if let Some(process) = supervisor
                    && !ended
                {
                    process.signal(Signal::KILL);
                    ended = run.wait_dead(GUARD_TIME)?;
                }
            }
        }
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
