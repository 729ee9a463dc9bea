//! A message as one line of a log.
//!
//! `{"v":1,"seq":N,…}`: the version and the number come first, so that a writer finds the
//! last number without parsing the line. Everything after the number is made before the lock
//! is taken.

use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::clock::{parse_rfc3339, rfc3339};
use store::name::Name;
use store::secret_filter::SecretFilter;
use uuid::Uuid;

use crate::error::{MailError, Result};
use crate::message::{Body, Draft, MAX_BODY, Message, Priority, check_length};

/// The format of ccb's files; those of a newer format are read, never written.
pub(crate) const VERSION: u64 = 1;

/// Higher numbers are damage: counting never gets there, and JSON readers round them.
pub(crate) const MAX_SEQ: u64 = 1 << 53;

/// The beginning of every line that ccb writes.
const HEAD: &[u8] = b"{\"v\":1,\"seq\":";

/// Everything of a message but its number.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) id: Uuid,
    /// From the comma after the number to the newline.
    rest: Vec<u8>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rest<'a> {
    id: Uuid,
    from: &'a str,
    to: &'a str,
    kind: &'a str,
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<Uuid>,
    sent_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broadcast: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    once: bool,
    /// Only in `broadcast.jsonl`: the names of those it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipients: Option<Vec<&'a str>>,
}

/// Makes everything of the line that does not depend on its number.
pub(crate) fn seal(
    draft: &Draft,
    now_ms: i64,
    recipients: Option<&[Name]>,
    filter: &SecretFilter,
) -> Result<Sealed> {
    draft.check()?;
    let id = draft.id.unwrap_or_else(|| new_id(now_ms));
    let mut tagged = match &draft.body {
        Body::Protocol(protocol) => {
            serde_json::to_value(protocol).map_err(|error| not_json(&error))?
        }
        Body::Text(_) | Body::Unknown { .. } => Value::Null,
    };
    if let Some(body) = tagged.get_mut("body") {
        filter.value(body);
    }
    let filtered = |text: &str| {
        let mut text = text.to_owned();
        filter.text(&mut text);
        text
    };
    let text = match &draft.body {
        Body::Text(text) => Some(filtered(text)),
        _ => None,
    };
    let summary = draft.summary.as_deref().map(filtered);
    let body = tagged.get("body");
    if let Some(body) = body {
        check_length("the message's body", MAX_BODY, &body.to_string())?;
    }
    let rest = Rest {
        id,
        from: draft.from.as_str(),
        to: recipients.map_or(draft.to.as_str(), |_| "*"),
        kind: draft.body.kind(),
        priority: draft.priority(),
        text: text.as_deref(),
        body,
        summary: summary.as_deref(),
        in_reply_to: draft.in_reply_to,
        sent_at: &rfc3339(now_ms),
        expires_at: draft.expires_at.map(rfc3339),
        broadcast: None,
        once: draft.id.is_some(),
        recipients: recipients.map(|names| names.iter().map(Name::as_str).collect()),
    };
    to_rest(id, &rest)
}

/// The copy of a broadcast for one of its recipients.
pub(crate) fn seal_copy(message: &Message, to: &str) -> Result<Sealed> {
    let body = message.body_json();
    let rest = Rest {
        id: message.id,
        from: &message.from,
        to,
        kind: message.body.kind(),
        priority: message.priority,
        text: message.text(),
        body: Some(&body).filter(|body| !body.is_null()),
        summary: message.summary.as_deref(),
        in_reply_to: message.in_reply_to,
        sent_at: &message.sent_at,
        expires_at: message.expires_at.map(rfc3339),
        broadcast: Some(message.seq),
        once: false,
        recipients: None,
    };
    to_rest(message.id, &rest)
}

fn to_rest(id: Uuid, rest: &Rest<'_>) -> Result<Sealed> {
    let mut bytes = serde_json::to_vec(rest).map_err(|error| not_json(&error))?;
    // The opening brace becomes the comma after the number.
    if let Some(first) = bytes.first_mut() {
        *first = b',';
    }
    bytes.push(b'\n');
    Ok(Sealed { id, rest: bytes })
}

impl Sealed {
    /// Appends the line with this number to `bytes`.
    pub(crate) fn write(&self, seq: u64, bytes: &mut Vec<u8>) {
        bytes.reserve(HEAD.len() + 20 + self.rest.len());
        bytes.extend_from_slice(HEAD);
        // Writing to a vector cannot fail.
        write!(bytes, "{seq}").ok();
        bytes.extend_from_slice(&self.rest);
    }
}

fn not_json(error: &serde_json::Error) -> MailError {
    MailError::invalid("message", error.to_string())
}

/// An id that sorts by the time it was made.
///
/// Its random part comes from a seed of this process and a counter: asking the system for
/// random bytes each time would cost as much as the rest of sending.
pub(crate) fn new_id(now_ms: i64) -> Uuid {
    static SEED: LazyLock<(u64, u64)> = LazyLock::new(|| Uuid::new_v4().as_u64_pair());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (low, high) = *SEED;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut random = [0; 10];
    random[..8].copy_from_slice(&mix(low.wrapping_add(count)).to_le_bytes());
    random[8..].copy_from_slice(&mix(high.wrapping_add(count)).to_le_bytes()[..2]);
    let ms = u64::try_from(now_ms).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid()
}

/// Scatters neighbouring numbers (the last step of SplitMix64); different ones stay different.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Version and number of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Head {
    #[serde(default)]
    pub(crate) v: u64,
    pub(crate) seq: u64,
}

/// Reads version and number; `None` if ccb did not write the line.
pub(crate) fn head(line: &[u8]) -> Option<Head> {
    if let Some(rest) = line.strip_prefix(HEAD)
        && rest.last() == Some(&b'}')
        && let Some(comma) = rest.iter().take(21).position(|b| *b == b',')
        && let Some(seq) = std::str::from_utf8(&rest[..comma])
            .ok()
            .and_then(|digits| digits.parse().ok())
    {
        return (seq <= MAX_SEQ).then_some(Head { v: VERSION, seq });
    }
    let head: Option<Head> = serde_json::from_slice(line).ok();
    head.filter(|head| head.seq <= MAX_SEQ)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    v: u64,
    seq: u64,
    id: Uuid,
    from: String,
    to: String,
    kind: String,
    #[serde(default)]
    priority: Priority,
    text: Option<String>,
    body: Option<Value>,
    summary: Option<String>,
    in_reply_to: Option<Uuid>,
    sent_at: String,
    expires_at: Option<String>,
    broadcast: Option<u64>,
    #[serde(default)]
    once: bool,
    #[serde(default)]
    recipients: Vec<String>,
}

/// A line that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) v: u64,
    pub(crate) message: Message,
    /// Of a broadcast: whom it is for.
    pub(crate) recipients: Vec<String>,
}

/// Reads a whole line; the error says why it is not a message.
pub(crate) fn parse(line: &[u8]) -> Result<Parsed, String> {
    let raw: Raw = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if !(1..=MAX_SEQ).contains(&raw.seq) {
        return Err(format!("{} is not a number a message can have", raw.seq));
    }
    let unknown = raw.body.clone().unwrap_or_default();
    let body = match Body::parse(&raw.kind, raw.text, raw.body) {
        Ok(body) => body,
        Err(MailError::UnknownKind { given, .. }) => Body::Unknown {
            kind: given,
            body: unknown,
        },
        Err(error) => return Err(error.to_string()),
    };
    let expires_at = match &raw.expires_at {
        Some(text) => Some(parse_rfc3339(text).ok_or("expiresAt is not a time")?),
        None => None,
    };
    let message = Message {
        id: raw.id,
        seq: raw.seq,
        from: raw.from,
        to: raw.to,
        body,
        priority: raw.priority,
        summary: raw.summary,
        in_reply_to: raw.in_reply_to,
        sent_at: raw.sent_at,
        expires_at,
        broadcast: raw.broadcast,
        once: raw.once,
        redelivered: false,
    };
    Ok(Parsed {
        v: raw.v,
        message,
        recipients: raw.recipients,
    })
}

/// The message in one line of an inbox's log or of `broadcast.jsonl`, for a caller that only reads
/// the files; `None` if the line is no message.
pub fn read_line(line: &[u8]) -> Option<Message> {
    parse(line).ok().map(|parsed| parsed.message)
}

/// The good lines of a log, and what is wrong with the others.
///
/// A line is good if it is a message whose number is higher than that of the last good one.
pub(crate) struct Scan<'b> {
    bytes: &'b [u8],
    last: u64,
}

/// One line of a log.
#[derive(Debug)]
pub(crate) enum Scanned<'b> {
    Good(&'b [u8], Box<Parsed>),
    Bad(&'b [u8], String),
}

impl<'b> Scan<'b> {
    /// Reads complete lines; those up to number `after` were read before.
    pub(crate) fn new(bytes: &'b [u8], after: u64) -> Self {
        Self { bytes, last: after }
    }
}

impl<'b> Iterator for Scan<'b> {
    type Item = Scanned<'b>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let newline = memchr::memchr(b'\n', self.bytes)?;
            let (line, rest) = self.bytes.split_at(newline);
            self.bytes = &rest[1..];
            if line.is_empty() {
                continue;
            }
            return Some(match parse(line) {
                Ok(parsed) if parsed.message.seq > self.last => {
                    self.last = parsed.message.seq;
                    Scanned::Good(line, Box::new(parsed))
                }
                Ok(parsed) => {
                    let why = format!("number {} comes after {}", parsed.message.seq, self.last);
                    Scanned::Bad(line, why)
                }
                Err(why) => Scanned::Bad(line, why),
            });
        }
    }
}
