use std::path::PathBuf;

use store::{Category, Explain, Facts, StoreError};

/// The errors of a mailbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum MailError {
    /// A file, lock, name or setting.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The backend that the mail is kept in; which errors there are is its own business.
    #[error("{0}")]
    Backend(Box<dyn Explain + Send + Sync>),
    /// Input that breaks a rule.
    #[error("{what}: {why}")]
    Invalid { what: String, why: String },
    /// Too much text for a message.
    #[error("{what} has {length} bytes; at most {limit} are allowed")]
    TooLong {
        what: &'static str,
        length: usize,
        limit: usize,
    },
    /// An unknown kind of message.
    #[error("{given:?} is not a kind of message")]
    UnknownKind {
        given: String,
        /// The most similar known kind; `None` without a similar one.
        nearest: Option<&'static str>,
    },
    /// Requests, answers and notifications are for one recipient.
    #[error("a {kind} cannot be broadcast")]
    NotForAll { kind: String },
    /// No message with this number.
    #[error("there is no message {seq} in the inbox of {inbox}; the last one is {last}")]
    NoSuchMessage { inbox: String, seq: u64, last: u64 },
    /// Too much is waiting to be read.
    #[error("the inbox of {inbox} is full: {unread} messages wait to be acknowledged")]
    Full { inbox: String, unread: u64 },
    /// Another process reads this inbox.
    #[error("the inbox of {inbox} is being read by {holder}")]
    BeingRead { inbox: String, holder: String },
    /// No request with this id.
    #[error("there is no request {id}")]
    NoSuchRequest {
        id: String,
        /// The most similar id that waits for an answer; `None` without one.
        nearest: Option<String>,
    },
    /// The request has its answer.
    #[error("request {id} was {state} by {by} at {at}")]
    AlreadyAnswered {
        id: String,
        /// `approved` or `rejected`.
        state: &'static str,
        by: String,
        at: String,
    },
    /// The deadline is over; no answer counts any more.
    #[error("request {id} expired at {at}, before it was answered")]
    RequestExpired { id: String, at: String },
    /// The request is for another agent.
    #[error("request {id} is for {to}, not for {by}")]
    NotYours { id: String, to: String, by: String },
    /// A file of ccb that cannot be read as the expected content.
    #[error("{} is unreadable ({detail})", path.display())]
    Corrupt {
        /// The file, which is left as it is.
        path: PathBuf,
        detail: String,
    },
    /// It is done, but a power cut may undo it.
    #[error("it is sent, but may not survive a power cut: {source}")]
    NotDurable { source: StoreError },
}

/// A result with the mailbox's error.
pub type Result<T, E = MailError> = std::result::Result<T, E>;

impl MailError {
    /// Input that breaks a rule.
    pub fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid {
            what: what.into(),
            why: why.into(),
        }
    }
}

impl Explain for MailError {
    fn facts(&self) -> Facts {
        use Category::{Failed, Invalid, NotFound, Refused};
        match self {
            Self::Store(error) => error.facts(),
            Self::Backend(error) => error.facts(),
            Self::Invalid { .. } => Facts::new(Invalid, "invalid"),
            Self::TooLong { .. } => Facts::new(Invalid, "too_long")
                .hint("write it to a file and send the file's path instead"),
            Self::UnknownKind { nearest, .. } => Facts::new(Invalid, "unknown_kind")
                .maybe_hint(nearest.map(|nearest| format!("did you mean {nearest:?}?"))),
            Self::NotForAll { .. } => {
                Facts::new(Invalid, "not_for_all").hint("send it to one member by name")
            }
            Self::NoSuchMessage { .. } => Facts::new(NotFound, "message_not_found")
                .hint("`ccb mail inbox` shows the messages there are"),
            Self::NoSuchRequest { nearest, .. } => {
                Facts::new(NotFound, "request_not_found").hint(match nearest {
                    Some(id) => format!("did you mean {id}?"),
                    None => "`ccb mail requests` shows the requests there are".into(),
                })
            }
            Self::Full { inbox, .. } => Facts::new(Refused, "inbox_full").hint(format!(
                "nothing is lost; {inbox} has to read and acknowledge its mail first"
            )),
            Self::BeingRead { .. } => Facts::new(Refused, "being_read")
                .hint("one reader at a time; `ccb mail inbox` and `ccb mail watch` only look"),
            Self::AlreadyAnswered { .. } => Facts::new(Refused, "already_answered")
                .hint("a request has one answer, the first; send a message if it was wrong"),
            Self::RequestExpired { .. } => {
                Facts::new(Refused, "request_expired").hint("ask for a new request")
            }
            Self::NotYours { to, .. } => Facts::new(Refused, "not_yours")
                .hint(format!("answer as the one it is for, with `--as {to}`")),
            Self::Corrupt { .. } => {
                Facts::new(Refused, "corrupt").hint("look at the file; delete it to do without it")
            }
            Self::NotDurable { .. } => Facts::new(Failed, "not_durable")
                .hint("do not repeat it; look at the disk, and at `ccb mail inbox`"),
        }
    }
}
