//! Messages to all agents, in one transaction.

use std::sync::Arc;

use database::{Session, Type};
use store::name::Name;
use uuid::Uuid;

use super::inbox::{DatabaseInbox, lock_all};
use super::{DatabaseMail, number};
use crate::broadcast::Broadcast;
use crate::error::{MailError, Result};
use crate::line;
use crate::message::Draft;

impl DatabaseMail {
    /// `recipients` went through [`crate::broadcast::check`].
    pub(super) fn send_to_all(&self, draft: &Draft, recipients: Vec<Name>) -> Result<Broadcast> {
        let inboxes: Result<Vec<Arc<DatabaseInbox>>> =
            recipients.iter().map(|name| self.at(name)).collect();
        let inboxes = inboxes?;
        let (id, number) = self.change(|session| {
            let number = self.next_broadcast(session)?;
            self.copy_to(session, number, draft, &inboxes)
                .map(|id| (id, number))
        })?;
        Ok(Broadcast {
            id,
            number,
            recipients,
        })
    }

    /// Numbers are taken under the team's row, which is taken back with everything else.
    fn next_broadcast(&self, session: &Session<'_>) -> Result<u64> {
        let row = session.query_one(
            "INSERT INTO @.mail_teams AS it (team, last_broadcast) VALUES ($1, 1) \
             ON CONFLICT (team) DO UPDATE SET last_broadcast = it.last_broadcast + 1 \
             RETURNING last_broadcast",
            &[(&self.team, Type::TEXT)],
        )?;
        Ok(number(session.column(&row, "last_broadcast")?))
    }

    fn copy_to(
        &self,
        session: &Session<'_>,
        number: u64,
        draft: &Draft,
        inboxes: &[Arc<DatabaseInbox>],
    ) -> Result<Uuid> {
        let names: Vec<&str> = inboxes
            .iter()
            .map(|inbox| inbox.canonical.as_str())
            .collect();
        lock_all(session, &self.team, &names)?;
        let mut original = None;
        for inbox in inboxes {
            let row = inbox.lock(session)?;
            inbox.check_room(&row)?;
            let message = match &mut original {
                Some(message) => message,
                none => none.insert({
                    // The same as in a log of broadcasts, of which every inbox gets a copy.
                    let filter = &self.options.secret_filter;
                    let mut bytes = Vec::new();
                    line::seal(draft, row.now_ms, Some(&[]), filter)?.write(number, &mut bytes);
                    line::parse(&bytes)
                        .map_err(|why| MailError::invalid("broadcast", why))?
                        .message
                }),
            };
            let copy = line::seal_copy(message, inbox.name.as_str())?;
            inbox.append(session, &row, &copy, None)?;
        }
        original
            .map(|message| message.id)
            .ok_or_else(|| MailError::invalid("broadcast", "there is nobody to send it to"))
    }
}
