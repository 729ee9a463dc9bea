//! Asking, answering, and making sure that everybody is told.
//!
//! A request is a file; its state changes under one lock, so it gets one answer. The messages
//! that tell of it follow from the file: each has an id derived from the request's, so
//! whoever finds that one may be missing can send it, and it is there once.

use std::path::PathBuf;
use std::time::Duration;

use store::atomic::{self, Durability};
use store::clock::rfc3339;
use store::fault::reached;
use store::home::create_durable_dir;
use store::lock::FileLock;
use store::name::Name;
use uuid::Uuid;

use crate::consumer::{Consumer, sweep};
use crate::error::{MailError, Result};
use crate::fault;
use crate::line::{self, new_id};
use crate::mailbox::Mailbox;
use crate::message::{Body, Draft, MAX_TEXT, check_length};
use crate::notification::derived_id;
use crate::protocol::{Answered, Question};
use crate::request::{Answer, Request, RequestState};

/// How long a request waits for its answer unless it says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(600);

/// How many requests that have their answer are kept.
const KEPT: usize = 256;

/// What is answered to a request.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// Yes or no.
    pub approved: bool,
    /// What is said besides.
    pub feedback: Option<String>,
    /// The plan as it is approved, if that is not the one that was handed in.
    pub plan: Option<String>,
}

/// All requests of a team.
#[derive(Debug, Default)]
pub struct Requests {
    /// Oldest first.
    pub requests: Vec<Request>,
    /// Files that cannot be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
}

impl Mailbox {
    /// Asks `to` something; the answer comes as a message.
    pub fn ask(
        &self,
        from: &Name,
        to: &Name,
        question: Question,
        deadline: Duration,
    ) -> Result<Request> {
        let now = self.now_ms();
        let wait = i64::try_from(deadline.as_millis()).unwrap_or(i64::MAX);
        let until = now.saturating_add(wait).min(MAX_TIME);
        let id = new_id(now).to_string();
        let names = (from.as_str(), to.as_str());
        let question = self.without_secrets(question)?;
        let mut request = Request::new(id, names, question, now, until);
        // Refused now if the message would be.
        line::seal(
            &question_message(&request)?,
            now,
            None,
            &self.options.secret_filter,
        )?;
        {
            let _lock = self.lock_requests()?;
            self.sweep_requests()?;
            self.save_request(&request, self.options.durability)
                .or_else(|error| self.take_back(&request, error))?;
        }
        reached(fault::REQUEST_STORED);
        match self.tell(&mut request) {
            Ok(()) => Ok(request),
            Err(error @ MailError::NotDurable { .. }) => Err(error),
            Err(error) => {
                let _lock = self.lock_requests()?;
                self.take_back(&request, error)
            }
        }
    }

    /// The question as it may be stored.
    pub fn without_secrets(&self, question: Question) -> Result<Question> {
        if self.options.secret_filter.is_none() {
            return Ok(question);
        }
        let not_json = |error: serde_json::Error| MailError::invalid("request", error.to_string());
        let mut value = serde_json::to_value(question).map_err(not_json)?;
        self.options.secret_filter.value(&mut value);
        serde_json::from_value(value).map_err(not_json)
    }

    /// Removes a request nobody was told of: nothing was asked.
    fn take_back<T>(&self, request: &Request, error: MailError) -> Result<T> {
        atomic::remove(&self.request_path(&request.id))?;
        Err(error)
    }

    /// Answers a request, if it still waits and `by` is the one who was asked.
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
        let approved = reply.approved;
        let filtered = |what, text: Option<String>| -> Result<Option<String>> {
            check_length(what, MAX_TEXT, text.as_deref().unwrap_or(""))?;
            Ok(text.map(|mut text| {
                self.options.secret_filter.text(&mut text);
                text
            }))
        };
        let feedback = filtered("the feedback", reply.feedback)?;
        let plan = filtered("the plan", reply.plan)?;
        let (mut request, problem) = {
            let _lock = self.lock_requests()?;
            let mut request = self.find_request(id)?;
            if !request.to.eq_ignore_ascii_case(by.as_str()) {
                return Err(MailError::NotYours {
                    id: request.id,
                    to: request.to,
                    by: by.to_string(),
                });
            }
            self.check_waits(&mut request)?;
            request.state = if approved {
                RequestState::Approved
            } else {
                RequestState::Rejected
            };
            request.answer = Some(Answer {
                by: by.to_string(),
                at: rfc3339(self.now_ms()),
                feedback,
                plan,
            });
            let stored = self.save_request(&request, self.options.durability);
            match stored {
                Ok(()) => (request, None),
                // It stands, so the asker is told, and the one who answers as well.
                Err(error @ MailError::NotDurable { .. }) => (request, Some(error)),
                Err(error) => return Err(error),
            }
        };
        reached(fault::ANSWER_STORED);
        // The answer stands, whatever happens now: if the asker is not told, the next one who
        // looks at the requests does it.
        if let Err(error) = self.tell(&mut request) {
            tracing::warn!(id, %error, "the answer is stored, the asker is told later");
        }
        problem.map_or(Ok(request), Err)
    }

    /// Fails if the request has its answer, or waited too long.
    fn check_waits(&self, request: &mut Request) -> Result<()> {
        if request.is_overdue(self.now_ms()) {
            request.state = RequestState::Expired;
            self.save_request(request, self.options.durability)?;
        }
        match (request.state, &request.answer) {
            (RequestState::Pending, _) => Ok(()),
            (RequestState::Approved | RequestState::Rejected, Some(answer)) => {
                Err(MailError::AlreadyAnswered {
                    id: request.id.clone(),
                    state: request.state.as_str(),
                    by: answer.by.clone(),
                    at: answer.at.clone(),
                })
            }
            _ => Err(MailError::RequestExpired {
                id: request.id.clone(),
                at: request.expires_at.clone(),
            }),
        }
    }

    /// One request as it is now.
    pub fn request(&self, id: &str) -> Result<Request> {
        self.requests()?;
        self.find_request(id)
    }

    /// All requests, after telling those who may not have been told.
    pub fn requests(&self) -> Result<Requests> {
        let mut found = self.read_requests()?;
        let now = self.now_ms();
        for request in &mut found.requests {
            let result = if request.is_overdue(now) {
                self.expire(request)
            } else {
                Ok(())
            };
            // One that cannot be told must not hide the others.
            if let Err(error) = result.and_then(|()| self.tell(request)) {
                tracing::warn!(id = request.id, %error, "cannot be told yet");
            }
        }
        Ok(found)
    }

    /// The requests that wait for an answer, as their files say. Takes no lock and tells nobody.
    pub fn waiting_requests(&self) -> Result<Vec<Request>> {
        let now = self.now_ms();
        let mut found = self.read_requests()?.requests;
        found.retain(|it| it.state == RequestState::Pending && !it.is_overdue(now));
        Ok(found)
    }

    /// Becomes the reader of `agent`'s inbox, after making sure that every request and answer
    /// has been told.
    pub fn consumer(&self, agent: &Name) -> Result<Consumer> {
        self.requests()?;
        self.inbox(agent)?.consumer()
    }

    fn expire(&self, request: &mut Request) -> Result<()> {
        let _lock = self.lock_requests()?;
        *request = self.find_request(&request.id)?;
        if request.is_overdue(self.now_ms()) {
            request.state = RequestState::Expired;
            self.save_request(request, self.options.durability)?;
        }
        Ok(())
    }

    /// Sends the messages that follow from the request's state and are not noted as sent.
    fn tell(&self, request: &mut Request) -> Result<()> {
        let waits = request.state == RequestState::Pending;
        let (draft, done) = match (waits, request.asked, request.told) {
            (true, false, _) => (question_message(request)?, true),
            (false, _, false) => (answer_message(request)?, false),
            _ => return Ok(()),
        };
        let sent = self.inbox(&draft.to)?.post(&draft).map(|_| ());
        if !matches!(sent, Ok(()) | Err(MailError::NotDurable { .. })) {
            return sent;
        }
        // If this fails, it is sent again and found to be there.
        match self.note_told(&request.id, done) {
            Ok(current) => *request = current,
            Err(error) => tracing::warn!(id = request.id, %error, "told, but not noted"),
        }
        sent
    }

    fn note_told(&self, id: &str, question: bool) -> Result<Request> {
        let _lock = self.lock_requests()?;
        // It may have been answered meanwhile.
        let mut current = self.find_request(id)?;
        if question {
            current.asked = true;
        } else {
            current.told = true;
        }
        // Not synced after the rename: at worst it is told twice, with the same id.
        self.save_request(&current, self.options.durability.min(Durability::Ordered))?;
        Ok(current)
    }

    fn find_request(&self, id: &str) -> Result<Request> {
        // Only an id is a file name.
        let found = match Uuid::parse_str(id) {
            Ok(id) => Request::load(&self.request_path(&id.to_string()))?,
            Err(_) => None,
        };
        match found {
            Some(request) => Ok(request),
            None => {
                let known = self.read_requests()?.requests;
                let waiting = known
                    .iter()
                    .filter(|request| request.state == RequestState::Pending)
                    .map(|request| request.id.as_str());
                Err(MailError::NoSuchRequest {
                    id: id.to_owned(),
                    nearest: store::nearest(id, waiting).map(str::to_owned),
                })
            }
        }
    }

    fn read_requests(&self) -> Result<Requests> {
        let mut found = Requests::default();
        for path in store::tree::list(&self.requests_dir())? {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match Request::load(&path) {
                Ok(request) => found.requests.extend(request),
                Err(error) => found.unreadable.push((path, error.to_string())),
            }
        }
        found
            .requests
            .sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
        Ok(found)
    }

    /// Removes what dead processes left, and the oldest requests that are done with.
    fn sweep_requests(&self) -> Result<()> {
        sweep(&self.requests_tmp())?;
        let done: Vec<Request> = self
            .read_requests()?
            .requests
            .into_iter()
            .filter(|request| request.state != RequestState::Pending && request.told)
            .collect();
        for request in &done[..done.len().saturating_sub(KEPT)] {
            atomic::remove(&self.request_path(&request.id))?;
        }
        Ok(())
    }

    fn save_request(&self, request: &Request, durability: Durability) -> Result<()> {
        let path = self.request_path(&request.id);
        request.save(&self.requests_tmp(), &path, durability)
    }

    fn lock_requests(&self) -> Result<FileLock> {
        create_durable_dir(&self.requests_tmp(), self.options.durability)?;
        Ok(FileLock::exclusive(
            &self.requests_dir().join("lock"),
            "the team's list of requests",
            self.options.lock_timeout,
        )?)
    }

    fn requests_dir(&self) -> PathBuf {
        self.dir.join("requests")
    }

    fn requests_tmp(&self) -> PathBuf {
        self.requests_dir().join("tmp")
    }

    fn request_path(&self, id: &str) -> PathBuf {
        self.requests_dir().join(format!("{id}.json"))
    }
}

/// The end of the year 9999, beyond which times cannot be written down.
const MAX_TIME: i64 = 253_402_300_799_000;

fn question_id(request: &Request) -> Uuid {
    derived_id(&format!("request:{}", request.id))
}

fn question_message(request: &Request) -> Result<Draft> {
    let body = Body::Protocol(request.question.message(&request.id));
    Ok(Draft {
        id: Some(question_id(request)),
        expires_at: Some(request.deadline()),
        ..Draft::new(name(&request.from)?, name(&request.to)?, body)
    })
}

fn answer_message(request: &Request) -> Result<Draft> {
    let plan = request
        .answer
        .as_ref()
        .and_then(|answer| answer.plan.clone());
    let answered = Answered {
        request_id: request.id.clone(),
        approved: request.state == RequestState::Approved,
        feedback: request
            .answer
            .as_ref()
            .and_then(|answer| answer.feedback.clone()),
        expired: request.state == RequestState::Expired,
        plan_was_edited: plan.is_some(),
        plan,
    };
    let body = Body::Protocol(request.question.answer(answered));
    Ok(Draft {
        id: Some(derived_id(&format!("answer:{}", request.id))),
        in_reply_to: Some(question_id(request)),
        ..Draft::new(name(&request.to)?, name(&request.from)?, body)
    })
}

fn name(text: &str) -> Result<Name> {
    Ok(Name::new("agent", text)?)
}
