//! A team's mail in files: the default.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use store::fault::reached;
use store::home::Home;
use store::name::Name;

use crate::activity::Activity;
use crate::backend::{Backend, Kept, canonical};
use crate::broadcast::Broadcast;
use crate::error::Result;
use crate::fault;
use crate::files::activity;
use crate::files::inbox::FileInbox;
use crate::files::passing::FilePassing;
use crate::message::{Draft, Posted};
use crate::options::MailOptions;
use crate::passing::Passes;
use crate::protocol::IdleNotification;

/// The mail of one team, in its directory.
#[derive(Debug)]
pub(crate) struct FileMail {
    pub(crate) dir: PathBuf,
    pub(crate) options: Arc<MailOptions>,
    inboxes: Mutex<HashMap<String, Arc<FileInbox>>>,
}

impl FileMail {
    /// Directories are made when something is sent.
    pub(crate) fn new(home: &Home, team: &Name, options: MailOptions) -> Self {
        Self {
            dir: home.team(team),
            options: Arc::new(options),
            inboxes: Mutex::default(),
        }
    }

    /// Kept from one call to the next, because it knows how far its log was read.
    pub(super) fn at(&self, agent: &Name) -> Result<Arc<FileInbox>> {
        let canonical = canonical(agent)?;
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inbox) = inboxes.get(&canonical) {
            return Ok(Arc::clone(inbox));
        }
        let dir = self.dir.join("inboxes").join(&canonical);
        let inbox = Arc::new(FileInbox::new(
            agent.clone(),
            dir,
            &self.dir,
            Arc::clone(&self.options),
        ));
        inboxes.insert(canonical, Arc::clone(&inbox));
        Ok(inbox)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }
}

impl Backend for FileMail {
    fn dir(&self) -> &Path {
        &self.dir
    }

    fn options(&self) -> &MailOptions {
        &self.options
    }

    fn inbox(&self, agent: &Name) -> Result<Arc<dyn Kept>> {
        Ok(self.at(agent)?)
    }

    fn follow(&self) -> Box<dyn Passes> {
        Box::new(FilePassing::new(&self.dir))
    }

    fn post(&self, draft: &Draft) -> Result<Posted> {
        self.at(&draft.to)?.append(draft)
    }

    fn broadcast(&self, draft: &Draft, recipients: Vec<Name>) -> Result<Broadcast> {
        self.send_to_all(draft, recipients)
    }

    fn note_busy(&self, agent: &Name) -> Result<()> {
        let inbox = self.at(agent)?;
        inbox.section(
            |_| match activity::load(&inbox.paths.activity, self.now_ms())?.started() {
                Some(next) => activity::save(next, &inbox),
                None => Ok(()),
            },
        )
    }

    fn note_idle(
        &self,
        agent: &Name,
        lead: &Name,
        notification: &IdleNotification,
    ) -> Result<Option<Posted>> {
        let inbox = self.at(agent)?;
        let before = inbox.section(|_| activity::load(&inbox.paths.activity, self.now_ms()))?;
        if !before.busy {
            return Ok(None);
        }
        // Sent first, recorded after: a crash between the two sends it again, with the same id.
        let key = inbox.paths.dir.display().to_string();
        let draft = before.idle_message(&key, agent, lead, notification.clone());
        let posted = self.post(&draft)?;
        reached(fault::IDLE_TOLD);
        inbox.section(|_| {
            let now = activity::load(&inbox.paths.activity, self.now_ms())?;
            if now.busy && now.times == before.times {
                activity::save(Activity { busy: false, ..now }, &inbox)?;
            }
            Ok(())
        })?;
        Ok((!posted.already).then_some(posted))
    }
}
