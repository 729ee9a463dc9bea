//! Looking at what arrives, without reading it.

use std::sync::Arc;
use std::time::Duration;

use database::{Listener, Type};

use super::inbox::{DatabaseInbox, Found, read_message};
use super::{number, stored};
use crate::backend::Feed;
use crate::error::Result;
use crate::listing::check_since;
use crate::message::Message;

/// The messages of an inbox as they arrive.
#[derive(Debug)]
pub(super) struct DatabaseFollow {
    inbox: Arc<DatabaseInbox>,
    listener: Listener,
    last: u64,
}

impl DatabaseFollow {
    pub(super) fn new(inbox: Arc<DatabaseInbox>, since: Option<u64>) -> Result<Self> {
        let last = inbox.read(|session| {
            let select = "SELECT last_seq FROM @.mail_inboxes WHERE team = $1 AND name = $2";
            let row = session.query_opt(select, &inbox.key())?;
            let last = row.map(|row| session.column(&row, "last_seq").map(number));
            Ok(last.transpose()?.unwrap_or(0))
        })?;
        Ok(Self {
            last: check_since(since, last, &inbox.name)?,
            listener: inbox.database.listen(&inbox.channel()),
            inbox,
        })
    }
}

impl Feed for DatabaseFollow {
    fn poll(&mut self) -> Result<Vec<Message>> {
        let [team, name] = self.inbox.key();
        let last = stored(self.last);
        let params = [team, name, (&last, Type::INT8)];
        let (messages, _) = self.inbox.read(|session| {
            let rows = session.query(
                "SELECT line FROM @.mail_messages JOIN @.mail_inboxes AS it ON it.id = inbox \
                 WHERE team = $1 AND name = $2 AND seq > $3 ORDER BY seq",
                &params,
            )?;
            let mut found = Found::default();
            for row in &rows {
                read_message(session.column(row, "line")?, &mut found);
            }
            Ok(found)
        })?;
        let messages: Vec<Message> = messages.into_iter().map(|(message, _)| message).collect();
        if let Some(message) = messages.last() {
            self.last = message.seq;
        }
        Ok(messages)
    }

    fn wait(&mut self, limit: Duration) {
        self.listener.wait(limit);
    }

    fn last(&self) -> u64 {
        self.last
    }
}
