//! Everything a team's mail needs to know in one place.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use store::StoreError;
use store::home::Home;
use store::name::Name;

use crate::error::{MailError, Result};
use crate::inbox::{Inbox, Posted};
use crate::message::{Body, Draft};
use crate::notification::{TaskNotification, derived_id, notification_id};
use crate::options::MailOptions;
use crate::protocol::{Protocol, TeammateTerminated};

/// The mail of one team.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use mailbox::{Draft, MailOptions, Mailbox};
/// use store::{home::Home, name::Name};
///
/// let dir = tempfile::tempdir()?;
/// let home = Home::new(dir.path().to_owned())?;
/// let mail = Mailbox::new(&home, &Name::new("team", "fixers")?, MailOptions::default());
/// let (ann, bob) = (Name::new("agent", "ann")?, Name::new("agent", "bob")?);
/// mail.send(&Draft::text(ann, bob.clone(), "Done."))?;
/// let mut reader = mail.inbox(&bob)?.consumer()?;
/// assert_eq!(reader.take(10)?.messages[0].text(), Some("Done."));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mailbox {
    pub(crate) dir: PathBuf,
    pub(crate) options: Arc<MailOptions>,
    inboxes: Mutex<HashMap<String, Arc<Inbox>>>,
}

impl Mailbox {
    /// The mail of `team` in `home`; directories are made when something is sent.
    pub fn new(home: &Home, team: &Name, options: MailOptions) -> Self {
        Self {
            dir: home.team(team),
            options: Arc::new(options),
            inboxes: Mutex::default(),
        }
    }

    /// The inbox of `agent`. Names that differ only in case are one inbox.
    pub fn inbox(&self, agent: &Name) -> Result<Arc<Inbox>> {
        let canonical = canonical(agent)?;
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inbox) = inboxes.get(&canonical) {
            return Ok(Arc::clone(inbox));
        }
        let dir = self.inboxes_dir().join(&canonical);
        let inbox = Arc::new(Inbox::new(
            agent.clone(),
            dir,
            &self.dir,
            Arc::clone(&self.options),
        ));
        inboxes.insert(canonical, Arc::clone(&inbox));
        Ok(inbox)
    }

    /// Sends a message to the one it is addressed to.
    ///
    /// Requests and their answers are sent with [`Self::ask`] and [`Self::answer`], which keep
    /// their state.
    pub fn send(&self, draft: &Draft) -> Result<Posted> {
        if let Body::Protocol(protocol) = &draft.body
            && protocol.is_request_or_answer()
        {
            return Err(MailError::invalid(
                format!("a {}", protocol.kind()),
                "requests are asked and answered, not sent",
            ));
        }
        self.inbox(&draft.to)?.post(draft)
    }

    /// Tells `to` that a run has ended. However often and by whomever it is told, it is there
    /// once.
    pub fn notify(
        &self,
        from: Name,
        to: Name,
        run: &str,
        notification: &TaskNotification,
    ) -> Result<Posted> {
        let mut notification = notification.clone();
        notification.shorten();
        let summary: String = notification.summary().chars().take(200).collect();
        let body = Body::Protocol(Protocol::TaskNotification(notification));
        let draft = Draft {
            id: Some(notification_id(run)),
            summary: Some(summary),
            ..Draft::new(from, to, body)
        };
        self.send(&draft)
    }

    /// Tells `to` that a teammate is gone, once for each of its lives.
    pub fn terminated(
        &self,
        from: Name,
        to: Name,
        run: &str,
        gone: TeammateTerminated,
    ) -> Result<Posted> {
        let draft = Draft {
            id: Some(derived_id(&format!("terminated:{run}"))),
            summary: Some(format!("{} is gone", gone.teammate)),
            ..Draft::new(from, to, Body::Protocol(Protocol::TeammateTerminated(gone)))
        };
        self.send(&draft)
    }

    pub(crate) fn inboxes_dir(&self) -> PathBuf {
        self.dir.join("inboxes")
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    /// The team's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// The name of an agent's inbox directory.
fn canonical(agent: &Name) -> Result<String> {
    let canonical = agent.as_str().to_ascii_lowercase();
    // Another tool keeps `<agent>.json` beside our directories.
    if canonical.ends_with(".json") {
        return Err(StoreError::BadName {
            what: "agent",
            given: agent.to_string(),
            why: "an agent with an inbox cannot have a name that ends in '.json'",
        }
        .into());
    }
    Ok(canonical)
}
