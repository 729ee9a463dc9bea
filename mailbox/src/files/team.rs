//! A team's mail in files: the default.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use store::home::Home;
use store::name::Name;

use crate::error::Result;
use crate::inbox::{FileInbox, Posted, canonical};
use crate::message::Draft;
use crate::options::MailOptions;

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
    pub(crate) fn inbox(&self, agent: &Name) -> Result<Arc<FileInbox>> {
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

    pub(crate) fn post(&self, draft: &Draft) -> Result<Posted> {
        self.inbox(&draft.to)?.post(draft)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }
}
