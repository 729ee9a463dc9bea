//! The port to the place of mail: files, tables of a database, or memory.
//!
//! The meaning of a message, a request or a cursor is the same for all of them and exists once. A
//! backend gives messages their numbers, keeps them until they are acknowledged, and lets one
//! process at a time read an inbox.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use store::StoreError;
use store::name::Name;

use crate::broadcast::Broadcast;
use crate::consumer::Consumer;
use crate::error::Result;
use crate::listing::Listing;
use crate::message::{Draft, Message, Posted};
use crate::options::MailOptions;
use crate::passing::Passes;
use crate::protocol::{IdleNotification, Question};
use crate::request::{Reply, Request};
use crate::requests::Requests;

/// The mail of one team, wherever it is kept.
pub(crate) trait Backend: Asking + Debug + Send + Sync {
    /// The team's directory. A backend that is not in files keeps nothing there.
    fn dir(&self) -> &Path;

    fn options(&self) -> &MailOptions;

    /// The inbox of `agent`. Names that differ only in case are one inbox.
    fn inbox(&self, agent: &Name) -> Result<Arc<dyn Kept>>;

    /// The messages of the whole team as they pass.
    fn follow(&self) -> Box<dyn Passes>;

    /// Gives a message its number in the inbox that it is addressed to.
    fn post(&self, draft: &Draft) -> Result<Posted>;

    /// Sends a text to all of them; `recipients` went through [`crate::broadcast::check`].
    fn broadcast(&self, draft: &Draft, recipients: Vec<Name>) -> Result<Broadcast>;

    /// Notes that `agent` has something to do.
    fn note_busy(&self, agent: &Name) -> Result<()>;

    /// Notes that `agent` has nothing to do any more, and tells `lead` if it had before.
    fn note_idle(
        &self,
        agent: &Name,
        lead: &Name,
        notification: &IdleNotification,
    ) -> Result<Option<Posted>>;
}

/// The requests of one team.
pub(crate) trait Asking {
    /// `question` went through [`crate::requests::without_secrets`].
    fn ask(
        &self,
        from: &Name,
        to: &Name,
        question: &Question,
        deadline: Duration,
    ) -> Result<Request>;

    /// `reply` went through [`Reply::checked`].
    fn reply(&self, id: &str, by: &Name, reply: &Reply) -> Result<Request>;

    fn request(&self, id: &str) -> Result<Request>;

    /// All requests, after sending messages that may be missing.
    fn requests(&self) -> Result<Requests>;

    /// The requests that wait for an answer; takes no lock and tells no agent.
    fn waiting_requests(&self) -> Result<Vec<Request>>;
}

/// One agent's inbox, wherever it is kept.
pub(crate) trait Kept: Debug + Send + Sync {
    fn name(&self) -> &Name;

    fn dir(&self) -> &Path;

    /// True if anything was ever sent here, or an agent read it; also if the backend cannot be asked.
    fn exists(&self) -> bool;

    fn has_reader(&self) -> Result<bool>;

    /// Becomes the inbox's reader; refused while another process is.
    fn consumer(self: Arc<Self>) -> Result<Consumer>;

    fn list(&self, all: bool) -> Result<Listing>;

    fn follow(self: Arc<Self>, since: Option<u64>) -> Result<Box<dyn Feed>>;
}

/// A stream of messages as they arrive.
pub(crate) trait Feed: Debug + Send {
    /// The messages that arrived since the last call.
    fn poll(&mut self) -> Result<Vec<Message>>;

    /// Waits until something may have arrived, at most `limit`.
    fn wait(&mut self, limit: Duration);

    /// The number of the last message returned.
    fn last(&self) -> u64;
}

/// The name of an agent's inbox: the agent's name in lower case.
pub(crate) fn canonical(agent: &Name) -> Result<String> {
    let canonical = agent.as_str().to_ascii_lowercase();
    // Another tool keeps `<agent>.json` beside ccb's directories.
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
