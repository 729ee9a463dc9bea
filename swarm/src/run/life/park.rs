//! The rest of a host's state while its agent sleeps and has no host.

use super::Life;
use super::mail_queue::MailQueue;
use crate::run::meta::RunState;
use crate::run::meter::Meter;
use crate::runtime::{Agent, Known, TurnEnd};

/// A host's state of its agent that is stored nowhere.
#[derive(Debug)]
pub(crate) struct Rest {
    /// The agent's own part.
    pub(crate) known: Known,
    mail_queue: Option<MailQueue>,
    meter: Meter,
    last_turn: Option<TurnEnd>,
    put_away: Option<u64>,
}

/// The first action of a host whose agent slept without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The run is to end, without its agent.
    ToEnd,
    /// The agent has to continue.
    ToWork,
    /// It was woken for nothing.
    ForNothing,
}

impl Life<'_> {
    /// The agent's state, if it sleeps and every event that it waits for rings: then it needs no
    /// host until the next ring.
    pub(crate) fn may_park(&mut self, agent: &Agent) -> Option<Known> {
        let idle = self.meta.teammate && self.meta.state == RunState::Idle && !self.busy;
        let quiet = self.stopping.why().is_none()
            && self.over.is_none()
            && self.hold.is_none()
            && self.failure.is_none()
            && self.questions.is_empty()
            && self.modes.is_empty()
            && self.in_prompt.is_empty()
            && !self.hooking.is_busy()
            && !self.mail_queue.as_ref().is_none_or(MailQueue::pending)
            && agent.events.is_empty()
            && agent.orders.capacity() == agent.orders.max_capacity();
        // Without them it could not be found again.
        let known = self.meta.session.is_some() && self.last_turn.is_some();
        let pulse = agent.pulse.as_ref().filter(|_| idle && quiet && known)?;
        if !self.services.may_park() || !self.running_children().is_empty() {
            return None;
        }
        pulse.take_over()
    }

    /// The state for the next host.
    pub(crate) fn into_rest(self, known: Known) -> Rest {
        Rest {
            known,
            mail_queue: self.mail_queue,
            meter: self.meter,
            last_turn: self.last_turn,
            put_away: self.put_away,
        }
    }

    /// Continues with the state of the previous host.
    pub(super) fn takes_up(&mut self, rest: Rest) {
        self.mail_queue = rest.mail_queue;
        self.meter = rest.meter;
        self.last_turn = rest.last_turn;
        self.put_away = rest.put_away;
        self.busy = false;
    }

    /// The action for an agent that slept without a host.
    pub(crate) fn woken(&mut self) -> Woken {
        self.look_for_stop_before_start();
        self.end_if_late();
        if self.end_before_start() {
            return Woken::ToEnd;
        }
        let fetched = self.mail_queue.as_mut().map(|queue| queue.fetch(&self.run));
        let for_host = match fetched {
            Some(Ok(for_host)) => for_host,
            Some(Err(error)) => {
                tracing::warn!(%error, "the mail cannot be read");
                Vec::new()
            }
            None => Vec::new(),
        };
        for order in for_host.into_iter().filter_map(|message| message.mode) {
            self.start_in_mode(order);
        }
        let waits = self.mail_queue.as_ref().is_some_and(MailQueue::waiting);
        match waits || self.leaves() {
            true => Woken::ToWork,
            false => Woken::ForNothing,
        }
    }
}
