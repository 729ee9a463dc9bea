//! Requests as rows. Each changes together with the message that tells of it.

use std::path::PathBuf;
use std::time::Duration;

use database::{Row, Session, Type};
use store::name::Name;
use uuid::Uuid;

use super::DatabaseMail;
use crate::backend::Asking;
use crate::error::{MailError, Result};
use crate::protocol::Question;
use crate::request::{Reply, Request};
use crate::requests::{KEPT, Requests, no_such_request};

impl Asking for DatabaseMail {
    /// `question` went through [`crate::requests::without_secrets`].
    fn ask(
        &self,
        from: &Name,
        to: &Name,
        question: &Question,
        deadline: Duration,
    ) -> Result<Request> {
        self.change(|session| {
            let now = now_ms(session)?;
            let mut request = Request::new(from, to, question.clone(), now, deadline);
            self.tell(session, &mut request)?;
            self.save(session, &request)?;
            self.forget_old(session)?;
            Ok(request)
        })
    }

    /// `reply` went through [`Reply::checked`].
    fn reply(&self, id: &str, by: &Name, reply: &Reply) -> Result<Request> {
        let Ok(uuid) = Uuid::parse_str(id) else {
            return Err(self.no_such(id)?);
        };
        let change = self.change(|session| {
            let Some(mut request) = self.lock(session, uuid)? else {
                return Ok(None);
            };
            request.check_asked(by)?;
            let now = now_ms(session)?;
            let waits = !request.expire(now) && request.check_waits().is_ok();
            if waits {
                request.set_answer(by, reply.clone(), now);
            }
            self.tell_if_room(session, &mut request)?;
            self.save(session, &request)?;
            Ok(Some((request, waits)))
        });
        match change? {
            None => Err(self.no_such(id)?),
            Some((request, true)) => Ok(request),
            // Stores that the request expired, and answers the asker, although this is an error.
            Some((request, false)) => request.check_waits().map(|()| request),
        }
    }

    fn request(&self, id: &str) -> Result<Request> {
        let mut all = self.requests()?;
        if let Ok(uuid) = Uuid::parse_str(id) {
            let id = uuid.to_string();
            if let Some(at) = all.requests.iter().position(|request| request.id == id) {
                return Ok(all.requests.swap_remove(at));
            }
            if let Some((path, detail)) = all
                .unreadable
                .into_iter()
                .find(|(path, _)| *path == place(uuid))
            {
                return Err(MailError::Corrupt { path, detail });
            }
        }
        Err(no_such_request(id, &all.requests))
    }

    fn requests(&self) -> Result<Requests> {
        let (mut found, now) = self.look("true")?;
        for request in &mut found.requests {
            if !request.is_overdue(now) && request.untold()?.is_none() {
                continue;
            }
            let Ok(id) = Uuid::parse_str(&request.id) else {
                continue;
            };
            let current = self.change(|session| {
                let Some(mut current) = self.lock(session, id)? else {
                    return Ok(None);
                };
                current.expire(now_ms(session)?);
                self.tell_if_room(session, &mut current)?;
                self.save(session, &current)?;
                Ok(Some(current))
            });
            if let Some(current) = current? {
                *request = current;
            }
        }
        Ok(found)
    }

    fn waiting_requests(&self) -> Result<Vec<Request>> {
        let (found, _) = self.look("waits AND deadline > @.mail_now()")?;
        Ok(found.requests)
    }
}

impl DatabaseMail {
    /// The requests of the team for which `condition` holds, oldest first, and the time.
    fn look(&self, condition: &str) -> Result<(Requests, i64)> {
        let select = format!(
            "SELECT id, request FROM @.mail_requests WHERE team = $1 AND {condition} \
             ORDER BY created, id"
        );
        self.read(|session| {
            let rows = session.query(&select, &[(&self.team, Type::TEXT)])?;
            let mut found = Requests::default();
            for row in &rows {
                let id: Uuid = session.column(row, "id")?;
                match parse(session, row, id) {
                    Ok(request) => found.requests.push(request),
                    Err(MailError::Corrupt { path, detail }) => {
                        found.unreadable.push((path, detail));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok((found, now_ms(session)?))
        })
    }

    fn no_such(&self, id: &str) -> Result<MailError> {
        Ok(no_such_request(id, &self.look("waits")?.0.requests))
    }

    /// The request as it is, until the transaction ends.
    fn lock(&self, session: &Session<'_>, id: Uuid) -> Result<Option<Request>> {
        let row = session.query_opt(
            "SELECT request FROM @.mail_requests WHERE id = $1 AND team = $2 FOR UPDATE",
            &[(&id, Type::UUID), (&self.team, Type::TEXT)],
        )?;
        row.map(|row| parse(session, &row, id)).transpose()
    }

    /// Sends the message that follows from its state and is not recorded as sent.
    fn tell(&self, session: &Session<'_>, request: &mut Request) -> Result<()> {
        if let Some(draft) = request.untold()? {
            self.at(&draft.to)?.post(session, &draft)?;
            request.note_told(request.waits());
        }
        Ok(())
    }

    /// Sends the answer if the asker's inbox has room. If it has none, the message comes later: an
    /// answer stands in any case.
    fn tell_if_room(&self, session: &Session<'_>, request: &mut Request) -> Result<()> {
        match self.tell(session, request) {
            Err(error @ MailError::Full { .. }) => {
                tracing::warn!(id = request.id, %error, "told later");
                Ok(())
            }
            other => other,
        }
    }

    fn save(&self, session: &Session<'_>, request: &Request) -> Result<()> {
        let id = Uuid::parse_str(&request.id)
            .map_err(|error| MailError::invalid("request", error.to_string()))?;
        let text = serde_json::to_string(request)
            .map_err(|error| MailError::invalid("request", error.to_string()))?;
        session.execute(
            "INSERT INTO @.mail_requests (id, team, created, deadline, waits, untold, request) \
             VALUES ($1, $2, @.mail_now(), $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET \
             waits = excluded.waits, untold = excluded.untold, request = excluded.request",
            &[
                (&id, Type::UUID),
                (&self.team, Type::TEXT),
                (&request.deadline(), Type::INT8),
                (&request.waits(), Type::BOOL),
                (&request.untold()?.is_some(), Type::BOOL),
                (&text, Type::TEXT),
            ],
        )?;
        Ok(())
    }

    /// Removes the oldest requests that are done with.
    fn forget_old(&self, session: &Session<'_>) -> Result<()> {
        let kept = i64::try_from(KEPT).unwrap_or(i64::MAX);
        session.execute(
            "DELETE FROM @.mail_requests WHERE id IN (SELECT id FROM @.mail_requests \
             WHERE team = $1 AND NOT waits AND NOT untold \
             ORDER BY created DESC, id DESC OFFSET $2 FOR UPDATE SKIP LOCKED)",
            &[(&self.team, Type::TEXT), (&kept, Type::INT8)],
        )?;
        Ok(())
    }
}

/// The name of a request in messages about it; requests in files have a path.
fn place(id: Uuid) -> PathBuf {
    PathBuf::from(format!("request {id} in the database"))
}

fn parse(session: &Session<'_>, row: &Row, id: Uuid) -> Result<Request> {
    let text: &str = session.column(row, "request")?;
    serde_json::from_str(text).map_err(|error| MailError::Corrupt {
        path: place(id),
        detail: error.to_string(),
    })
}

fn now_ms(session: &Session<'_>) -> Result<i64> {
    let row = session.query_one("SELECT @.mail_now() AS now", &[])?;
    Ok(session.column(&row, "now")?)
}
