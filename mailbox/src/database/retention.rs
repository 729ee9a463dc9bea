//! Forgetting mail that was dealt with long ago. An inbox forgets by its size, too, while it is read.

use std::time::Duration;

use database::{Database, DatabaseError, Type};

/// The amount of mail that was removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrunedMail {
    /// Number of acknowledged messages.
    pub messages: u64,
    /// Number of requests that were answered or ran out, and whose sender knows.
    pub requests: u64,
}

/// A message that is not acknowledged stays, however old it is.
const OLD: &str = "@.mail_inboxes i WHERE i.id = m.inbox AND m.seq <= i.acked \
    AND m.at < @.mail_now() - $1";
const OLD_REQUESTS: &str = "NOT waits AND NOT untold AND created < @.mail_now() - $1";

/// Forgets acknowledged messages and settled requests older than `age`. With `dry_run` it only
/// counts them.
pub fn prune(
    database: &Database,
    age: Duration,
    dry_run: bool,
) -> Result<PrunedMail, DatabaseError> {
    let age = i64::try_from(age.as_millis())
        .unwrap_or(i64::MAX)
        .min(1 << 44);
    let params = [(&age as _, Type::INT8)];
    if dry_run {
        return database.read(|session| {
            let row = session.query_one(
                &format!(
                    "SELECT (SELECT count(*) FROM @.mail_messages m WHERE EXISTS (SELECT 1 FROM {OLD})) \
                     AS messages, \
                     (SELECT count(*) FROM @.mail_requests WHERE {OLD_REQUESTS}) AS requests"
                ),
                &params,
            )?;
            let count = |name| session.column::<i64>(&row, name).map(i64::unsigned_abs);
            Ok(PrunedMail {
                messages: count("messages")?,
                requests: count("requests")?,
            })
        });
    }
    // Each statement for itself: the rows deleted before a broken link were to be deleted anyway.
    database.change_at_once(
        |session| {
            let delete = format!("DELETE FROM @.mail_messages m USING {OLD}");
            let messages = session.execute(&delete, &params)?;
            let delete = format!("DELETE FROM @.mail_requests WHERE {OLD_REQUESTS}");
            let requests = session.execute(&delete, &params)?;
            Ok(PrunedMail { messages, requests })
        },
        |_| Ok(None),
    )
}
