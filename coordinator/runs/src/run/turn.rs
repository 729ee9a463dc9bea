//! What only one process on one machine does at a time, where several share a board.

use std::collections::BTreeSet;
use std::time::Duration;

use store::Failure;
use store::name::Name;

use super::agents::Agents;
use super::error::AgentError;
use crate::backends::Turn;
use crate::worker::KnownWorker;

/// Interval at which a process that waits for its turn asks again.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Time after which a turn ends whose holder was not heard of.
const TERM: Duration = Duration::from_secs(30);

impl Agents {
    /// Takes the turn `name` on this list, unless another process has it. Where no other machine can
    /// take it, the caller always gets it.
    pub fn turn(&self, name: &str) -> Result<Option<Turn>, AgentError> {
        self.take_turn(name, TERM)
    }

    fn take_turn(&self, name: &str, term: Duration) -> Result<Option<Turn>, AgentError> {
        let name = format!("{} {name}", self.board().name().as_str().to_lowercase());
        Ok(self.backends.lock(&name, term)?)
    }

    /// Waits for the turn `name`, as long as `go_on` says so. A process that has it and is silent for
    /// a lease loses it, like a task.
    pub fn wait_for_turn(
        &self,
        name: &str,
        go_on: impl Fn() -> bool,
    ) -> Result<Option<Turn>, AgentError> {
        let term = self.shared().map_or(TERM, |place| place.lease().min(TERM));
        loop {
            if let Some(turn) = self.take_turn(name, term)? {
                return Ok(Some(turn));
            }
            if !go_on() {
                return Ok(None);
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Joins the workers of this list as `name` from now on; refused if another machine, or another
    /// home, has a worker of that name. A worker that was killed takes its own place again. `labels`
    /// say what its machine has.
    pub fn be_worker(&self, name: &Name, labels: &BTreeSet<String>) -> Result<Turn, Failure> {
        let list = self.board().name();
        self.backends.join_as_worker(list, name, labels)
    }

    /// Every worker of this list that is there now.
    pub fn workers(&self) -> Result<Vec<KnownWorker>, AgentError> {
        Ok(self.backends.workers(self.board().name())?)
    }
}
