//! A team's mail in PostgreSQL, for teams on several machines.
//!
//! The same promises as in files, by other means:
//!
//! * A message gets its number under the lock of its inbox's row, in the transaction that adds
//!   it, so numbers have no gaps and a number that can be seen is followed only by higher ones.
//! * Every change is one transaction that writes its operation down
//!   ([`Database::change`]): if the link breaks, it has happened once or not at all.
//! * A broadcast is one transaction. So is a request with the message that tells of it.
//! * The right to read is a lease in the inbox's row; see `reader`.
//! * Times are those of the database.
//!
//! # Lock order
//!
//! A team's row or a request's row, then inboxes by name.

mod broadcast;
mod follow;
mod inbox;
mod passing;
mod reader;
mod requests;
mod retention;
mod watcher;
mod whole;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use database::{Answer, Carries, Component, Database, DatabaseError, Operation, Session};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::home::Home;
use store::name::Name;

use crate::activity::Activity;
use crate::backend::{Backend, Kept, canonical};
use crate::broadcast::Broadcast;
use crate::error::{MailError, Result};
use crate::mailbox::Mailbox;
use crate::message::{Draft, Posted};
use crate::options::MailOptions;
use crate::passing::Passes;
use crate::protocol::IdleNotification;

use inbox::DatabaseInbox;
use passing::DatabasePassing;
pub use retention::{PrunedMail, prune};
pub use whole::{delete_all, inboxes_being_read};

/// The tables of mail, for the migration of a schema.
pub const MIGRATIONS: Component = Component {
    name: "mail",
    migrations: &[include_str!("../../migrations/001.sql")],
};

impl Mailbox {
    /// The mail of `team` in a database, whose clock counts. Nothing is read or written in its
    /// directory in `home`.
    pub fn on(database: &Database, home: &Home, team: &Name, options: MailOptions) -> Self {
        Self::kept(Box::new(DatabaseMail::new(database, home, team, options)))
    }
}

/// The mail of one team, in a database.
#[derive(Debug)]
struct DatabaseMail {
    database: Database,
    /// The team's name in lower case: on another machine its spelling may differ.
    team: String,
    dir: PathBuf,
    options: Arc<MailOptions>,
}

impl DatabaseMail {
    fn new(database: &Database, home: &Home, team: &Name, options: MailOptions) -> Self {
        Self {
            database: database.clone(),
            team: team.as_str().to_ascii_lowercase(),
            dir: home.team(team),
            options: Arc::new(options),
        }
    }

    fn at(&self, agent: &Name) -> Result<Arc<DatabaseInbox>> {
        let canonical = canonical(agent)?;
        Ok(Arc::new(DatabaseInbox {
            database: self.database.clone(),
            team: self.team.clone(),
            dir: self.dir.join("inboxes").join(&canonical),
            name: agent.clone(),
            canonical,
            options: Arc::clone(&self.options),
        }))
    }

    /// Changes something, once.
    fn change<T: Serialize + DeserializeOwned>(
        &self,
        mut body: impl FnMut(&Session<'_>) -> Result<T>,
    ) -> Result<T> {
        self.database.require(&MIGRATIONS)?;
        let body = |session: &Session<'_>| body(session).map(Json);
        let Json(answer) = self.database.change(Operation::new(), body)?;
        Ok(answer)
    }

    fn read<T>(&self, body: impl FnMut(&Session<'_>) -> Result<T>) -> Result<T> {
        self.database.require(&MIGRATIONS)?;
        self.database.read(body)
    }
}

impl Backend for DatabaseMail {
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
        Box::new(DatabasePassing::new(&self.database, &self.team))
    }

    fn broadcast(&self, draft: &Draft, recipients: Vec<Name>) -> Result<Broadcast> {
        self.send_to_all(draft, recipients)
    }

    fn post(&self, draft: &Draft) -> Result<Posted> {
        let inbox = self.at(&draft.to)?;
        self.change(|session| inbox.post(session, draft))
    }

    fn note_busy(&self, agent: &Name) -> Result<()> {
        let inbox = self.at(agent)?;
        self.change(|session| {
            let row = inbox.lock(session)?;
            match row.activity.started() {
                Some(next) => row.note_activity(session, next),
                None => Ok(()),
            }
        })
    }

    fn note_idle(
        &self,
        agent: &Name,
        lead: &Name,
        notification: &IdleNotification,
    ) -> Result<Option<Posted>> {
        let (inbox, to) = (self.at(agent)?, self.at(lead)?);
        let key = format!("{}/{}", self.team, inbox.canonical);
        self.change(|session| {
            // Both, by name: the message locks the second one only later.
            let names = [inbox.canonical.as_str(), to.canonical.as_str()];
            inbox::lock_all(session, &self.team, &names)?;
            let row = inbox.lock(session)?;
            if !row.activity.busy {
                return Ok(None);
            }
            let draft = row
                .activity
                .idle_message(&key, agent, lead, notification.clone());
            let posted = to.post(session, &draft)?;
            let idle = Activity {
                busy: false,
                ..row.activity
            };
            row.note_activity(session, idle)?;
            Ok((!posted.already).then_some(posted))
        })
    }
}

/// The result of a change, stored as JSON.
struct Json<T>(T);

impl<T: Serialize + DeserializeOwned> Answer for Json<T> {
    fn write(&self) -> String {
        // ccb's own types can be written; if not, reading fails.
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }
}

impl From<DatabaseError> for MailError {
    fn from(error: DatabaseError) -> Self {
        Self::Backend(Box::new(error))
    }
}

impl Carries for MailError {
    fn database(&self) -> Option<&DatabaseError> {
        let Self::Backend(error) = self else {
            return None;
        };
        let error: &(dyn Error + 'static) = &**error;
        error.downcast_ref()
    }
}

/// A number as the database stores it. No number of ccb gets near the limit.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number from the database.
fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}
