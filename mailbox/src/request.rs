//! Questions that wait for one answer, as they are stored.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::StoreError;
use store::atomic::{self, Durability};
use store::clock::{parse_rfc3339, rfc3339};

use crate::cursor::replace;
use crate::error::{MailError, Result};
use crate::line::VERSION;
use crate::protocol::Question;

store::words! {
    /// What became of a request.
    pub enum RequestState {
        /// It waits for its answer.
        Pending = "pending",
        /// Yes.
        Approved = "approved",
        /// No.
        Rejected = "rejected",
        /// Nobody answered in time.
        Expired = "expired",
    }
}

/// Who answered, and what was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Who.
    pub by: String,
    /// When, RFC 3339.
    pub at: String,
    /// What was said besides yes or no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The plan that was approved, if whoever answered had changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A question and what became of it; the content of `requests/<id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    #[serde(default)]
    v: u64,
    /// Its id.
    pub id: String,
    /// Who asks.
    pub from: String,
    /// Who is to answer.
    pub to: String,
    /// What is asked.
    #[serde(flatten)]
    pub question: Question,
    /// What became of it.
    pub state: RequestState,
    /// When it was asked, RFC 3339.
    pub created_at: String,
    /// Until when it can be answered, RFC 3339.
    pub expires_at: String,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The one who is to answer has the message.
    #[serde(default)]
    pub(crate) asked: bool,
    /// The one who asked has the answer.
    #[serde(default)]
    pub(crate) told: bool,
}

impl Request {
    pub(crate) fn new(
        id: String,
        (from, to): (&str, &str),
        question: Question,
        now_ms: i64,
        deadline: i64,
    ) -> Self {
        Self {
            v: VERSION,
            id,
            from: from.to_owned(),
            to: to.to_owned(),
            question,
            state: RequestState::Pending,
            created_at: rfc3339(now_ms),
            expires_at: rfc3339(deadline),
            answer: None,
            asked: false,
            told: false,
        }
    }

    /// Until when it can be answered, in milliseconds since the epoch.
    pub fn deadline(&self) -> i64 {
        parse_rfc3339(&self.expires_at).unwrap_or(0)
    }

    /// Whether it waits, and waited too long.
    pub(crate) fn is_overdue(&self, now_ms: i64) -> bool {
        self.state == RequestState::Pending && self.deadline() <= now_ms
    }

    /// As the commands print it.
    pub fn to_json(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_else(|_| json!({"id": self.id}));
        if let Some(map) = value.as_object_mut() {
            for ours in ["v", "asked", "told"] {
                map.remove(ours);
            }
        }
        value
    }

    /// Reads the file at `path`; `None` if there is none.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>> {
        let Some(bytes) = atomic::read(path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| MailError::Corrupt {
                path: path.to_owned(),
                detail: error.to_string(),
            })
    }

    /// The file's content.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| MailError::invalid("request", error.to_string()))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Replaces the file at `path`.
    pub(crate) fn save(&self, tmp: &Path, path: &Path, durability: Durability) -> Result<()> {
        StoreError::check_version(path, self.v, VERSION)?;
        replace(tmp, path, &self.to_bytes()?, durability)
    }
}
