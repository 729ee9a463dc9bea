//! Everything a team's mail needs to know in one place, wherever it is kept.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use store::home::Home;
use store::name::Name;

use crate::backend::Backend;
use crate::broadcast::{self, Broadcast};
use crate::consumer::Consumer;
use crate::error::{MailError, Result};
use crate::files::FileMail;
use crate::inbox::Inbox;
use crate::memory::{Memory, MemoryMail};
use crate::message::{Body, Draft, Posted};
use crate::notification::{TaskNotification, derived_id, notification_id};
use crate::options::MailOptions;
use crate::passing::Passing;
use crate::protocol::{IdleNotification, Protocol, Question, TeammateTerminated};
use crate::request::{Reply, Request};
use crate::requests::{self, Requests};

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
    backend: Box<dyn Backend>,
}

impl Mailbox {
    /// The mail of `team` in `home`; directories are made when something is sent.
    pub fn new(home: &Home, team: &Name, options: MailOptions) -> Self {
        Self::kept(Box::new(FileMail::new(home, team, options)))
    }

    /// Mail that is kept in `memory` and gone with it: for tests of what uses mailboxes. Every promise
    /// is the same; other processes see nothing of it.
    pub fn in_memory(memory: &Memory, options: MailOptions) -> Self {
        Self::kept(Box::new(MemoryMail::new(memory, options)))
    }

    /// The backend is chosen by the constructor; nothing after it asks which one it is.
    pub(crate) fn kept(backend: Box<dyn Backend>) -> Self {
        Self { backend }
    }

    /// The inbox of `agent`. Names that differ only in case are one inbox.
    pub fn inbox(&self, agent: &Name) -> Result<Arc<Inbox>> {
        Ok(Arc::new(Inbox(self.backend.inbox(agent)?)))
    }

    /// Becomes the reader of `agent`'s inbox, after sending the messages about requests and answers
    /// that may be missing.
    pub fn consumer(&self, agent: &Name) -> Result<Consumer> {
        self.requests()?;
        self.inbox(agent)?.consumer()
    }

    /// The messages of the whole team as they pass, from the last ones on.
    pub fn follow(&self) -> Passing {
        Passing(self.backend.follow())
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
        self.backend.post(draft)
    }

    /// Sends a text to all `recipients` but the sender, or to none. The draft's own recipient
    /// does not matter.
    pub fn broadcast(&self, draft: &Draft, recipients: &[Name]) -> Result<Broadcast> {
        let recipients = broadcast::check(draft, recipients)?;
        self.backend.broadcast(draft, recipients)
    }

    /// Sends `to` the message that a run has ended. The message exists once, however many processes
    /// send it, however often.
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

    /// Sends `to` the message that a teammate is gone, once for each of its lives.
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

    /// Notes that `agent` has something to do.
    pub fn note_busy(&self, agent: &Name) -> Result<()> {
        self.backend.note_busy(agent)
    }

    /// Notes that `agent` has nothing to do any more, and tells `lead` if it had before.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "whoever tells it has no more use for it"
    )]
    pub fn note_idle(
        &self,
        agent: &Name,
        lead: &Name,
        notification: IdleNotification,
    ) -> Result<Option<Posted>> {
        self.backend.note_idle(agent, lead, &notification)
    }

    /// Asks `to` something; the answer comes as a message.
    pub fn ask(
        &self,
        from: &Name,
        to: &Name,
        question: Question,
        deadline: Duration,
    ) -> Result<Request> {
        let question = self.without_secrets(question)?;
        self.backend.ask(from, to, &question, deadline)
    }

    /// The question as it may be stored.
    pub fn without_secrets(&self, question: Question) -> Result<Question> {
        requests::without_secrets(question, &self.options().secret_filter)
    }

    /// Answers a request, if it still waits and is for `by`.
    pub fn answer(
        &self,
        id: &str,
        by: &Name,
        approved: bool,
        feedback: Option<String>,
    ) -> Result<Request> {
        let reply = Reply {
            approved,
            feedback,
            plan: None,
        };
        self.reply(id, by, reply)
    }

    /// The same, also with a plan that was changed before it was approved.
    pub fn reply(&self, id: &str, by: &Name, reply: Reply) -> Result<Request> {
        let reply = reply.checked(&self.options().secret_filter)?;
        self.backend.reply(id, by, &reply)
    }

    /// One request as it is now.
    pub fn request(&self, id: &str) -> Result<Request> {
        self.backend.request(id)
    }

    /// All requests, after sending messages that may be missing.
    pub fn requests(&self) -> Result<Requests> {
        self.backend.requests()
    }

    /// The requests that wait for an answer. Only reads: takes no lock and sends no message.
    pub fn waiting_requests(&self) -> Result<Vec<Request>> {
        self.backend.waiting_requests()
    }

    /// The team's directory. Mail that is not kept in files has nothing there.
    pub fn dir(&self) -> &Path {
        self.backend.dir()
    }

    fn options(&self) -> &MailOptions {
        self.backend.options()
    }
}
