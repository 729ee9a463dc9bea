//! Telling the lead when an agent becomes idle: once per edge, also across restarts.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::atomic::{self, Durability};
use store::fault::reached;
use store::name::Name;

use crate::cursor::{check_version, replace};
use crate::error::{MailError, Result};
use crate::fault;
use crate::files::FileMail;
use crate::inbox::{FileInbox, Posted};
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
    /// An agent nobody has heard of is at work: it was just started.
    pub(crate) const START: Self = Self {
        v: VERSION,
        busy: true,
        times: 1,
    };

    /// What to note when it has something to do; nothing if that is noted.
    pub(crate) fn started(self) -> Option<Self> {
        (!self.busy).then_some(Self {
            busy: true,
            times: self.times.saturating_add(1),
            ..self
        })
    }

    /// Tells that it has nothing to do any more, with an id that belongs to this time. `key`
    /// tells its inbox from those of other agents and teams.
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

    /// Reads it. One that does not parse was lost in a power cut: the agent counts as busy, for
    /// the `now_ms`-th time, which is none that anybody was told of.
    fn load(path: &Path, now_ms: i64) -> Result<Self> {
        let Some(bytes) = atomic::read(path)? else {
            return Ok(Self::START);
        };
        if let Ok(value) = serde_json::from_slice::<Value>(&bytes) {
            check_version(&value, path)?;
            if let Ok(activity) = serde_json::from_value(value) {
                return Ok(activity);
            }
        }
        tracing::warn!(path = %path.display(), "unreadable, starting over");
        Ok(Self {
            times: u64::try_from(now_ms).unwrap_or(1),
            ..Self::START
        })
    }

    fn save(self, inbox: &FileInbox) -> Result<()> {
        let mut text = serde_json::to_string(&self)
            .map_err(|error| MailError::invalid("activity", error.to_string()))?;
        text.push('\n');
        let (tmp, path) = (&inbox.paths.tmp, &inbox.paths.activity);
        replace(tmp, path, text.as_bytes(), Durability::Relaxed)
    }
}

impl FileMail {
    pub(crate) fn note_busy(&self, agent: &Name) -> Result<()> {
        let inbox = self.inbox(agent)?;
        inbox.section(
            |_| match Activity::load(&inbox.paths.activity, self.now_ms())?.started() {
                Some(next) => next.save(&inbox),
                None => Ok(()),
            },
        )
    }

    pub(crate) fn note_idle(
        &self,
        agent: &Name,
        lead: &Name,
        notification: &IdleNotification,
    ) -> Result<Option<Posted>> {
        let inbox = self.inbox(agent)?;
        let before = inbox.section(|_| Activity::load(&inbox.paths.activity, self.now_ms()))?;
        if !before.busy {
            return Ok(None);
        }
        // Told first, noted after: a crash between the two tells it again, with the same id.
        let key = inbox.dir().display().to_string();
        let draft = before.idle_message(&key, agent, lead, notification.clone());
        let posted = self.post(&draft)?;
        reached(fault::IDLE_TOLD);
        inbox.section(|_| {
            let now = Activity::load(&inbox.paths.activity, self.now_ms())?;
            if now.busy && now.times == before.times {
                Activity { busy: false, ..now }.save(&inbox)?;
            }
            Ok(())
        })?;
        Ok((!posted.already).then_some(posted))
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
