//! The messages: as sent, and as received.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::clock::rfc3339;
use store::name::Name;
use uuid::Uuid;

use crate::error::{MailError, Result};
use crate::protocol::{KINDS, Protocol};

/// The longest text of a message, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// The longest summary, in bytes.
pub const MAX_SUMMARY: usize = 1024;
/// The longest body of a protocol message, in bytes of JSON.
pub const MAX_BODY: usize = 512 * 1024;

store::words! {
    /// The urgency of a message.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Priority {
        /// Interrupts the current step.
        Now = "now",
        /// At the next opportunity.
        #[default]
        Next = "next",
        /// For a quiet moment; the urgency of notifications.
        Later = "later",
    }
}

impl FromStr for Priority {
    type Err = MailError;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| {
            let what = format!("priority {text:?}");
            MailError::invalid(what, "it must be now, next or later")
        })
    }
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Words; kind `message`.
    Text(String),
    /// Something with a fixed form.
    Protocol(Protocol),
    /// A kind a later version of ccb has. It can be read, not sent.
    Unknown {
        /// The name of the kind.
        kind: String,
        /// The fields of the message.
        body: Value,
    },
}

impl Body {
    /// The name of its kind.
    pub fn kind(&self) -> &str {
        match self {
            Self::Text(_) => "message",
            Self::Protocol(protocol) => protocol.kind(),
            Self::Unknown { kind, .. } => kind,
        }
    }

    /// The body of a message of this kind as a program or a file gives it.
    pub fn parse(kind: &str, text: Option<String>, body: Option<Value>) -> Result<Self> {
        let invalid = |why: &str| MailError::invalid(format!("message of kind {kind:?}"), why);
        if kind == "message" {
            return text
                .map(Self::Text)
                .ok_or_else(|| invalid("it has no text"));
        }
        if !KINDS.contains(&kind) {
            return Err(MailError::UnknownKind {
                given: kind.to_owned(),
                nearest: store::nearest(kind, KINDS.iter().copied())
                    .and_then(|near| KINDS.iter().copied().find(|known| *known == near)),
            });
        }
        let body = body.ok_or_else(|| invalid("it has no body"))?;
        let mut tagged = Map::new();
        tagged.insert("kind".into(), kind.into());
        tagged.insert("body".into(), body);
        serde_json::from_value(Value::Object(tagged))
            .map(Self::Protocol)
            .map_err(|error| invalid(&error.to_string()))
    }
}

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The sender. Set by the process that runs the sender, never taken from the message's own
    /// words.
    pub from: Name,
    /// The recipient.
    pub to: Name,
    /// The content.
    pub body: Body,
    /// `None` takes what is usual for its kind.
    pub priority: Option<Priority>,
    /// The content in one line; `None` without one.
    pub summary: Option<String>,
    /// The message it answers; `None` if it answers none.
    pub in_reply_to: Option<Uuid>,
    /// The time when it expires, in milliseconds since the epoch; `None` for never.
    pub expires_at: Option<i64>,
    /// The id of the event that the message reports: a second message with it is dropped. `None`
    /// gives each message an id of its own.
    pub id: Option<Uuid>,
}

impl Draft {
    /// A message with this body and nothing special about it.
    pub fn new(from: Name, to: Name, body: Body) -> Self {
        Self {
            from,
            to,
            body,
            priority: None,
            summary: None,
            in_reply_to: None,
            expires_at: None,
            id: None,
        }
    }

    /// A message in words.
    pub fn text(from: Name, to: Name, text: impl Into<String>) -> Self {
        Self::new(from, to, Body::Text(text.into()))
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority.unwrap_or(match &self.body {
            Body::Protocol(protocol) if protocol.is_notification() => Priority::Later,
            _ => Priority::Next,
        })
    }

    /// Refuses what is too long, or cannot be sent.
    pub(crate) fn check(&self) -> Result<()> {
        check_length(
            "the text",
            MAX_TEXT,
            match &self.body {
                Body::Text(text) => text,
                _ => "",
            },
        )?;
        check_length(
            "the summary",
            MAX_SUMMARY,
            self.summary.as_deref().unwrap_or_default(),
        )?;
        if let Body::Unknown { kind, .. } = &self.body {
            // Kinds of a later version are read, not sent.
            return Body::parse(kind, None, None).map(|_| ());
        }
        Ok(())
    }
}

pub(crate) fn check_length(what: &'static str, limit: usize, text: &str) -> Result<()> {
    if text.len() > limit {
        return Err(MailError::TooLong {
            what,
            length: text.len(),
            limit,
        });
    }
    Ok(())
}

/// A message that is in an inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Unique, and the same each time it is handed over.
    pub id: Uuid,
    /// The number in this inbox.
    pub seq: u64,
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// The content.
    pub body: Body,
    /// The urgency.
    pub priority: Priority,
    /// The content in one line; `None` without one.
    pub summary: Option<String>,
    /// The message it answers; `None` if it answers none.
    pub in_reply_to: Option<Uuid>,
    /// The time of sending, RFC 3339.
    pub sent_at: String,
    /// The time when it expires, in milliseconds since the epoch; `None` for never.
    pub expires_at: Option<i64>,
    /// The number of the broadcast it is a copy of; `None` for other messages.
    pub broadcast: Option<u64>,
    /// True if the sender gave the id; a repeat is dropped.
    pub(crate) once: bool,
    /// True if an earlier reader may have got it without acknowledging it.
    pub redelivered: bool,
}

impl Message {
    /// True if the message is too old to be read.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now_ms)
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The message as the commands print it: the log's line, and `redelivered`.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| {
            map.insert(key.to_owned(), value);
        };
        put("id", self.id.to_string().into());
        put("seq", self.seq.into());
        put("from", self.from.as_str().into());
        put("to", self.to.as_str().into());
        put("kind", self.body.kind().into());
        put("priority", self.priority.as_str().into());
        match &self.body {
            Body::Text(text) => put("text", text.as_str().into()),
            Body::Protocol(_) | Body::Unknown { .. } => put("body", self.body_json()),
        }
        if let Some(summary) = &self.summary {
            put("summary", summary.as_str().into());
        }
        if let Some(id) = self.in_reply_to {
            put("inReplyTo", id.to_string().into());
        }
        put("sentAt", self.sent_at.as_str().into());
        if let Some(at) = self.expires_at {
            put("expiresAt", rfc3339(at).into());
        }
        if let Some(number) = self.broadcast {
            put("broadcast", number.into());
        }
        if self.redelivered {
            put("redelivered", true.into());
        }
        Value::Object(map)
    }

    /// The body of a protocol message; null for text.
    pub(crate) fn body_json(&self) -> Value {
        match &self.body {
            Body::Text(_) => Value::Null,
            Body::Protocol(protocol) => serde_json::to_value(protocol)
                .ok()
                .and_then(|mut tagged| tagged.get_mut("body").map(Value::take))
                .unwrap_or_default(),
            Body::Unknown { body, .. } => body.clone(),
        }
    }
}

/// The result of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The message's id.
    pub id: Uuid,
    /// The message's number in the inbox.
    pub seq: u64,
    /// True if the message existed already: one with the same id was sent before.
    pub already: bool,
}
