//! Telling the lead when an agent becomes idle: once per edge, also across restarts.

use serde::{Deserialize, Serialize};
use store::name::Name;

use crate::line::VERSION;
use crate::message::{Body, Draft};
use crate::notification::derived_id;
use crate::protocol::{IdleNotification, Protocol};

/// The content of `activity.json`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Activity {
    pub(crate) v: u64,
    pub(crate) busy: bool,
    /// Counts the times it became busy.
    pub(crate) times: u64,
}

impl Activity {
    /// The state of an unknown agent: busy, because it has just started.
    pub(crate) const START: Self = Self {
        v: VERSION,
        busy: true,
        times: 1,
    };

    /// The state to store when the agent becomes busy; `None` if it is stored already.
    pub(crate) fn started(self) -> Option<Self> {
        (!self.busy).then_some(Self {
            busy: true,
            times: self.times.saturating_add(1),
            ..self
        })
    }

    /// The message that the agent became idle, with an id that belongs to this time. `key`
    /// distinguishes its inbox from those of other agents and teams.
    pub(crate) fn idle_message(
        self,
        key: &str,
        agent: &Name,
        lead: &Name,
        notification: IdleNotification,
    ) -> Draft {
        let body = Body::Protocol(Protocol::IdleNotification(notification));
        Draft {
            id: Some(derived_id(&format!("idle:{key}:{}", self.times))),
            ..Draft::new(agent.clone(), lead.clone(), body)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_was_busy_as_often_as_can_be_counted_becomes_busy_again() {
        let idle: Activity =
            serde_json::from_str(r#"{"v":1,"busy":false,"times":18446744073709551615}"#).unwrap();
        let next = idle.started().unwrap();
        assert!(next.busy && next.times == u64::MAX);
    }
}
