//! Asking, answering, and the guarantee that both sides get their messages.
//!
//! A request is a file; its state changes under one lock, so it gets one answer. The messages about
//! it follow from the file: each has an id derived from the request's, so a process that finds that
//! one may be missing can send it, and it exists once.

use std::path::PathBuf;
use std::time::Duration;

use store::atomic::{self, Durability};
use store::fault::reached;
use store::home::create_durable_dir;
use store::lock::FileLock;
use store::name::Name;
use uuid::Uuid;

use crate::backend::Asking;
use crate::error::{MailError, Result};
use crate::fault;
use crate::files::FileMail;
use crate::files::inbox::sweep;
use crate::line;
use crate::protocol::Question;
use crate::request::{Reply, Request, RequestState};
use crate::requests::{KEPT, Requests, no_such_request};

impl Asking for FileMail {
    /// `question` went through [`without_secrets`](crate::requests::without_secrets).
    fn ask(
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

    /// `reply` went through [`Reply::checked`].
    fn reply(&self, id: &str, by: &Name, reply: &Reply) -> Result<Request> {
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
                // The answer stands, so the asker and the answerer get their messages.
                Err(error @ MailError::NotDurable { .. }) => (request, Some(error)),
                Err(error) => return Err(error),
            }
        };
        reached(fault::ANSWER_STORED);
        // The answer stands, whatever happens now: if the message to the asker fails, the next
        // process that reads the requests sends it.
        if let Err(error) = self.tell(&mut request) {
            tracing::warn!(id, %error, "the answer is stored, the asker is told later");
        }
        problem.map_or(Ok(request), Err)
    }

    fn request(&self, id: &str) -> Result<Request> {
        self.requests()?;
        self.find_request(id)
    }

    fn requests(&self) -> Result<Requests> {
        let mut found = self.read_requests()?;
        let now = self.now_ms();
        for request in &mut found.requests {
            let result = if request.is_overdue(now) {
                self.expire(request)
            } else {
                Ok(())
            };
            // A request whose message fails must not hide the others.
            if let Err(error) = result.and_then(|()| self.tell(request)) {
                tracing::warn!(id = request.id, %error, "cannot be told yet");
            }
        }
        Ok(found)
    }

    fn waiting_requests(&self) -> Result<Vec<Request>> {
        let now = self.now_ms();
        let mut found = self.read_requests()?.requests;
        found.retain(|it| it.state == RequestState::Pending && !it.is_overdue(now));
        Ok(found)
    }
}

impl FileMail {
    /// Removes a request that no message has named: nothing was asked.
    fn take_back<T>(&self, request: &Request, error: MailError) -> Result<T> {
        atomic::remove(&self.request_path(&request.id))?;
        Err(error)
    }

    fn expire(&self, request: &mut Request) -> Result<()> {
        let _lock = self.lock_requests()?;
        *request = self.find_request(&request.id)?;
        if request.expire(self.now_ms()) {
            self.save_request(request, self.options.durability)?;
        }
        Ok(())
    }

    /// Sends the messages that follow from the request's state and are not recorded as sent.
    fn tell(&self, request: &mut Request) -> Result<()> {
        let Some(draft) = request.untold()? else {
            return Ok(());
        };
        let waited = request.waits();
        let sent = self.at(&draft.to)?.append(&draft).map(|_| ());
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
        // Another process may have stored an answer meanwhile.
        let mut current = self.find_request(id)?;
        current.note_told(waited);
        // Not synced after the rename: at worst the message is sent twice, with the same id.
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
