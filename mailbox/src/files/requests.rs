//! Asking, answering, and making sure that everybody is told.
//!
//! A request is a file; its state changes under one lock, so it gets one answer. The messages
//! that tell of it follow from the file: each has an id derived from the request's, so
//! whoever finds that one may be missing can send it, and it is there once.

use std::path::PathBuf;
use std::time::Duration;

use store::atomic::{self, Durability};
use store::fault::reached;
use store::home::create_durable_dir;
use store::lock::FileLock;
use store::name::Name;
use store::secret_filter::SecretFilter;
use uuid::Uuid;

use crate::consumer::sweep;
use crate::error::{MailError, Result};
use crate::fault;
use crate::files::FileMail;
use crate::line;
use crate::protocol::Question;
use crate::request::{Reply, Request, RequestState};

/// How long a request waits for its answer unless it says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(600);

/// How many requests that have their answer are kept.
pub(crate) const KEPT: usize = 256;

/// All requests of a team.
#[derive(Debug, Default)]
pub struct Requests {
    /// Oldest first.
    pub requests: Vec<Request>,
    /// Files that cannot be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// The question as it may be stored.
pub(crate) fn without_secrets(question: Question, filter: &SecretFilter) -> Result<Question> {
    if filter.is_none() {
        return Ok(question);
    }
    let not_json = |error: serde_json::Error| MailError::invalid("request", error.to_string());
    let mut value = serde_json::to_value(question).map_err(not_json)?;
    filter.value(&mut value);
    serde_json::from_value(value).map_err(not_json)
}

/// Says that there is no request `id`, with the one of those that wait that may be meant.
pub(crate) fn no_such_request<'r>(
    id: &str,
    known: impl IntoIterator<Item = &'r Request>,
) -> MailError {
    let waiting = known
        .into_iter()
        .filter(|request| request.waits())
        .map(|request| request.id.as_str());
    MailError::NoSuchRequest {
        id: id.to_owned(),
        nearest: store::nearest(id, waiting).map(str::to_owned),
    }
}

impl FileMail {
    /// `question` went through [`without_secrets`].
    pub(crate) fn ask(
        &self,
        from: &Name,
        to: &Name,
        question: &Question,
        deadline: Duration,
    ) -> Result<Request> {
        let now = self.now_ms();
        let mut request = Request::new(from, to, question.clone(), now, deadline);
        // Refused now if the message would be.
        let message = request.question_message()?;
        line::seal(&message, now, None, &self.options.secret_filter)?;
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

    /// Removes a request nobody was told of: nothing was asked.
    fn take_back<T>(&self, request: &Request, error: MailError) -> Result<T> {
        atomic::remove(&self.request_path(&request.id))?;
        Err(error)
    }

    /// `reply` went through [`Reply::checked`].
    pub(crate) fn reply(&self, id: &str, by: &Name, reply: &Reply) -> Result<Request> {
        let (mut request, problem) = {
            let _lock = self.lock_requests()?;
            let mut request = self.find_request(id)?;
            request.check_asked(by)?;
            if request.expire(self.now_ms()) {
                self.save_request(&request, self.options.durability)?;
            }
            request.check_waits()?;
            request.set_answer(by, reply.clone(), self.now_ms());
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

    pub(crate) fn request(&self, id: &str) -> Result<Request> {
        self.requests()?;
        self.find_request(id)
    }

    pub(crate) fn requests(&self) -> Result<Requests> {
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

    pub(crate) fn waiting_requests(&self) -> Result<Vec<Request>> {
        let now = self.now_ms();
        let mut found = self.read_requests()?.requests;
        found.retain(|it| it.state == RequestState::Pending && !it.is_overdue(now));
        Ok(found)
    }

    fn expire(&self, request: &mut Request) -> Result<()> {
        let _lock = self.lock_requests()?;
        *request = self.find_request(&request.id)?;
        if request.expire(self.now_ms()) {
            self.save_request(request, self.options.durability)?;
        }
        Ok(())
    }

    /// Sends the messages that follow from the request's state and are not noted as sent.
    fn tell(&self, request: &mut Request) -> Result<()> {
        let Some(draft) = request.untold()? else {
            return Ok(());
        };
        let waited = request.waits();
        let sent = self.post(&draft).map(|_| ());
        if !matches!(sent, Ok(()) | Err(MailError::NotDurable { .. })) {
            return sent;
        }
        // If this fails, it is sent again and found to be there.
        match self.note_told(&request.id, waited) {
            Ok(current) => *request = current,
            Err(error) => tracing::warn!(id = request.id, %error, "told, but not noted"),
        }
        sent
    }

    fn note_told(&self, id: &str, waited: bool) -> Result<Request> {
        let _lock = self.lock_requests()?;
        // It may have been answered meanwhile.
        let mut current = self.find_request(id)?;
        current.note_told(waited);
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
            None => Err(no_such_request(id, &self.read_requests()?.requests)),
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
