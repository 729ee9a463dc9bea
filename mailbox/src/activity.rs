//! Telling the lead when an agent becomes idle: once per edge, also across restarts.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::atomic::{self, Durability};
use store::fault::reached;
use store::name::Name;

use crate::cursor::{check_version, replace};
use crate::error::{MailError, Result};
use crate::fault;
use crate::inbox::{Inbox, Posted};
use crate::line::VERSION;
use crate::mailbox::Mailbox;
use crate::message::{Body, Draft};
use crate::notification::derived_id;
use crate::protocol::{IdleNotification, Protocol};

/// The content of `activity.json`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Activity {
    v: u64,
    busy: bool,
    /// Counts the times it became busy.
    times: u64,
}

impl Activity {
    /// An agent nobody has heard of is at work: it was just started.
    const START: Self = Self {
        v: VERSION,
        busy: true,
        times: 1,
    };

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

    fn save(self, inbox: &Inbox) -> Result<()> {
        let mut text = serde_json::to_string(&self)
            .map_err(|error| MailError::invalid("activity", error.to_string()))?;
        text.push('\n');
        let (tmp, path) = (&inbox.paths.tmp, &inbox.paths.activity);
        replace(tmp, path, text.as_bytes(), Durability::Relaxed)
    }
}

impl Mailbox {
    /// Notes that `agent` has something to do.
    pub fn note_busy(&self, agent: &Name) -> Result<()> {
        let inbox = self.inbox(agent)?;
        inbox.section(|_| {
            let activity = Activity::load(&inbox.paths.activity, self.now_ms())?;
            if activity.busy {
                return Ok(());
            }
            let next = Activity {
                busy: true,
                times: activity.times + 1,
                ..activity
            };
            next.save(&inbox)
        })
    }

    /// Notes that `agent` has nothing to do any more, and tells `lead` if it had before.
    pub fn note_idle(
        &self,
        agent: &Name,
        lead: &Name,
        notification: IdleNotification,
    ) -> Result<Option<Posted>> {
        let inbox = self.inbox(agent)?;
        let before = inbox.section(|_| Activity::load(&inbox.paths.activity, self.now_ms()))?;
        if !before.busy {
            return Ok(None);
        }
        // Told first, noted after: a crash between the two tells it again, with the same id.
        let edge = format!("idle:{}:{}", inbox_key(&inbox), before.times);
        let body = Body::Protocol(Protocol::IdleNotification(notification));
        let draft = Draft {
            id: Some(derived_id(&edge)),
            ..Draft::new(agent.clone(), lead.clone(), body)
        };
        let posted = self.send(&draft)?;
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

/// What tells this inbox from those of other agents and teams.
fn inbox_key(inbox: &Arc<Inbox>) -> String {
    inbox.dir().display().to_string()
}
