//! The agents a running agent has started. It stays open until they have ended, so that it hears of
//! each; if it is stopped, they are stopped with it.

use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::time::Instant;

use super::Life;
use crate::run::meta::RunState;
use crate::run::services::Child;
use crate::runtime::{Order, TurnStatus};

/// Interval at which an agent that waits for its agents checks if they have ended. They ring when
/// they report their end; this is for those that do not.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Maximum delay of agents that were asked to end, beyond their grace.
const LENIENCE: Duration = Duration::from_secs(2);

/// The agents that this one has started.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// The time to look again, if it waits for them.
    next_look: Option<Instant>,
    /// The agents that were asked to end.
    stopped: Vec<Child>,
}

impl Life<'_> {
    /// True if agents it has started still run and it waits for them. One that failed does not
    /// wait: it could not use their results.
    pub(crate) fn waits_for_children(&mut self) -> bool {
        let well = |status| status == TurnStatus::Completed;
        let done = self
            .last_turn
            .as_ref()
            .is_some_and(|turn| well(turn.status));
        let waits = done && self.stopping.why().is_none() && !self.running_children().is_empty();
        self.children.next_look = waits.then(|| Instant::now() + LOOK_EVERY);
        waits
    }

    pub(super) fn running_children(&mut self) -> Vec<Child> {
        self.services.children().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot tell which agents it has started");
            Vec::new()
        })
    }

    /// The time to look at its agents again.
    pub(crate) fn children_due(&self) -> Option<Instant> {
        self.children.next_look.filter(|_| !self.busy)
    }

    /// An agent that waited for its agents when its process died looks at them at once: they may have
    /// ended since then.
    pub(crate) fn look_at_children_soon(&mut self) {
        self.children.next_look = (!self.meta.teammate).then(Instant::now);
    }

    /// Continues an agent that waits for its agents, if they have ended or a message has come.
    pub(crate) async fn look_at_children(&mut self, orders: &Sender<Order>) {
        if self.children_due().is_some_and(|due| due <= Instant::now()) {
            if self.meta.state == RunState::Idle && !self.running_children().is_empty() {
                self.children.next_look = Some(Instant::now() + LOOK_EVERY);
                return;
            }
            self.children.next_look = None;
            self.settle_down(false, orders).await;
        }
    }

    /// Asks the agents it has started to end, because it ends.
    pub(crate) fn stop_children(&mut self, grace: Duration) {
        self.children.next_look = None;
        let children = self.running_children();
        if children.is_empty() {
            return;
        }
        let address = self.meta.address().to_owned();
        let why = format!("{address}, which had started it, was stopped");
        for child in &children {
            if let Err(error) = self.services.stop_child(child, &why, grace) {
                tracing::warn!(%error, id = child.id, "it is not asked to end");
            }
        }
        self.children.stopped.extend(children);
        let words = self.stopped_children().unwrap_or_default();
        self.record.note(words);
    }

    /// Waits until the agents that were asked to end have ended; one that takes too long is killed
    /// with everything else it has started.
    pub(crate) async fn children_have_ended(&mut self, grace: Duration) {
        if self.stopping.why().is_none() {
            self.stop_children(grace);
        }
        let deadline = Instant::now() + grace + LENIENCE;
        while !self.children.stopped.is_empty()
            && !self.running_children().is_empty()
            && Instant::now() < deadline
        {
            tokio::time::sleep(LOOK_EVERY / 5).await;
        }
    }

    /// The agents that were stopped with it.
    pub(crate) fn stopped_children(&self) -> Option<String> {
        let stopped = &self.children.stopped;
        let name = |child: &Child| format!("{} ({})", child.id, child.description);
        let names: Vec<String> = stopped.iter().map(name).collect();
        (!names.is_empty()).then(|| format!("stopped with it: {}", names.join(", ")))
    }
}
