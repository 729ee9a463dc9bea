//! Questions that wait for one answer, as they are stored.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::StoreError;
use store::atomic::{self, Durability};
use store::clock::{parse_rfc3339, rfc3339};
use store::name::Name;
use store::secret_filter::SecretFilter;
use uuid::Uuid;

use crate::cursor::replace;
use crate::error::{MailError, Result};
use crate::line::{VERSION, new_id};
use crate::message::{Body, Draft, MAX_TEXT, check_length};
use crate::notification::derived_id;
use crate::protocol::{Answered, Question};

/// The end of the year 9999, the last time that the format can express.
const MAX_TIME: i64 = 253_402_300_799_000;

store::words! {
    /// The state of a request.
    pub enum RequestState {
        /// It waits for its answer.
        Pending = "pending",
        /// The answer was yes.
        Approved = "approved",
        /// The answer was no.
        Rejected = "rejected",
        /// No answer came in time.
        Expired = "expired",
    }
}

/// An answer and its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The author.
    pub by: String,
    /// The time of the answer, RFC 3339.
    pub at: String,
    /// The author's comment, besides yes or no; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The approved plan, if the approver changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A question and its state; the content of `requests/<id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    #[serde(default)]
    v: u64,
    /// The request's id.
    pub id: String,
    /// The asker.
    pub from: String,
    /// The agent or user that must answer.
    pub to: String,
    /// The question.
    #[serde(flatten)]
    pub question: Question,
    /// The state.
    pub state: RequestState,
    /// The time of the question, RFC 3339.
    pub created_at: String,
    /// The deadline of the answer, RFC 3339.
    pub expires_at: String,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// True if the message to the answerer is sent.
    #[serde(default)]
    pub(crate) asked: bool,
    /// True if the answer is sent to the asker.
    #[serde(default)]
    pub(crate) told: bool,
}

impl Request {
    /// A question that is asked at `now_ms` and waits for at most `deadline`.
    pub(crate) fn new(
        from: &Name,
        to: &Name,
        question: Question,
        now_ms: i64,
        deadline: Duration,
    ) -> Self {
        let wait = i64::try_from(deadline.as_millis()).unwrap_or(i64::MAX);
        let deadline = now_ms.saturating_add(wait).min(MAX_TIME);
        Self {
            v: VERSION,
            id: new_id(now_ms).to_string(),
            from: from.to_string(),
            to: to.to_string(),
            question,
            state: RequestState::Pending,
            created_at: rfc3339(now_ms),
            expires_at: rfc3339(deadline),
            answer: None,
            asked: false,
            told: false,
        }
    }

    /// The deadline of the answer, in milliseconds since the epoch.
    pub fn deadline(&self) -> i64 {
        parse_rfc3339(&self.expires_at).unwrap_or(0)
    }

    /// True if it waits, and waited too long.
    pub(crate) fn is_overdue(&self, now_ms: i64) -> bool {
        self.state == RequestState::Pending && self.deadline() <= now_ms
    }

    /// Notes that its time is over, if it is; says whether that is new.
    pub(crate) fn expire(&mut self, now_ms: i64) -> bool {
        let overdue = self.is_overdue(now_ms);
        if overdue {
            self.state = RequestState::Expired;
        }
        overdue
    }

    /// Fails if the request is for another agent than `by`.
    pub(crate) fn check_asked(&self, by: &Name) -> Result<()> {
        if self.to.eq_ignore_ascii_case(by.as_str()) {
            return Ok(());
        }
        Err(MailError::NotYours {
            id: self.id.clone(),
            to: self.to.clone(),
            by: by.to_string(),
        })
    }

    /// Fails if it has its answer, or waited too long.
    pub(crate) fn check_waits(&self) -> Result<()> {
        match (self.state, &self.answer) {
            (RequestState::Pending, _) => Ok(()),
            (RequestState::Approved | RequestState::Rejected, Some(answer)) => {
                Err(MailError::AlreadyAnswered {
                    id: self.id.clone(),
                    state: self.state.as_str(),
                    by: answer.by.clone(),
                    at: answer.at.clone(),
                })
            }
            _ => Err(MailError::RequestExpired {
                id: self.id.clone(),
                at: self.expires_at.clone(),
            }),
        }
    }

    /// Gives it its answer; both checks come before.
    pub(crate) fn set_answer(&mut self, by: &Name, reply: Reply, now_ms: i64) {
        self.state = if reply.approved {
            RequestState::Approved
        } else {
            RequestState::Rejected
        };
        self.answer = Some(Answer {
            by: by.to_string(),
            at: rfc3339(now_ms),
            feedback: reply.feedback,
            plan: reply.plan,
        });
    }

    /// The message that follows from its state and is not recorded as sent; `None` if there is
    /// none.
    pub(crate) fn untold(&self) -> Result<Option<Draft>> {
        match (self.waits(), self.asked, self.told) {
            (true, false, _) => self.question_message().map(Some),
            (false, _, false) => self.answer_message().map(Some),
            _ => Ok(None),
        }
    }

    /// Notes that the question (`waited`) or else the answer was sent.
    pub(crate) fn note_told(&mut self, waited: bool) {
        if waited {
            self.asked = true;
        } else {
            self.told = true;
        }
    }

    /// True if it has no answer yet.
    pub(crate) fn waits(&self) -> bool {
        self.state == RequestState::Pending
    }

    fn question_id(&self) -> Uuid {
        derived_id(&format!("request:{}", self.id))
    }

    /// The message that puts the question.
    pub(crate) fn question_message(&self) -> Result<Draft> {
        let body = Body::Protocol(self.question.message(&self.id));
        Ok(Draft {
            id: Some(self.question_id()),
            expires_at: Some(self.deadline()),
            ..Draft::new(name(&self.from)?, name(&self.to)?, body)
        })
    }

    fn answer_message(&self) -> Result<Draft> {
        let answer = self.answer.as_ref();
        let plan = answer.and_then(|answer| answer.plan.clone());
        let answered = Answered {
            request_id: self.id.clone(),
            approved: self.state == RequestState::Approved,
            feedback: answer.and_then(|answer| answer.feedback.clone()),
            expired: self.state == RequestState::Expired,
            plan_was_edited: plan.is_some(),
            plan,
        };
        let body = Body::Protocol(self.question.answer(answered));
        Ok(Draft {
            id: Some(derived_id(&format!("answer:{}", self.id))),
            in_reply_to: Some(self.question_id()),
            ..Draft::new(name(&self.to)?, name(&self.from)?, body)
        })
    }

    /// The request as the commands print it.
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

fn name(text: &str) -> Result<Name> {
    Ok(Name::new("agent", text)?)
}

/// An answer to a request.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// True for yes.
    pub approved: bool,
    /// A comment on the answer; `None` without one.
    pub feedback: Option<String>,
    /// The approved plan; `None` if it is the submitted one.
    pub plan: Option<String>,
}

impl Reply {
    /// The reply as it may be stored; refused if it is too long.
    pub(crate) fn checked(self, filter: &SecretFilter) -> Result<Self> {
        let filtered = |what, text: Option<String>| -> Result<Option<String>> {
            check_length(what, MAX_TEXT, text.as_deref().unwrap_or(""))?;
            Ok(text.map(|mut text| {
                filter.text(&mut text);
                text
            }))
        };
        Ok(Self {
            feedback: filtered("the feedback", self.feedback)?,
            plan: filtered("the plan", self.plan)?,
            ..self
        })
    }
}
