//! Messages to all agents.

use store::name::Name;
use uuid::Uuid;

use crate::error::{MailError, Result};
use crate::message::{Body, Draft};

/// A broadcast that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broadcast {
    /// The id that every copy has.
    pub id: Uuid,
    /// The number among the team's broadcasts.
    pub number: u64,
    /// The agents it is for.
    pub recipients: Vec<Name>,
}

/// The recipients of a broadcast: each once, without the sender. Refused if it is not one.
pub(crate) fn check(draft: &Draft, recipients: &[Name]) -> Result<Vec<Name>> {
    if !matches!(draft.body, Body::Text(_)) {
        return Err(MailError::NotForAll {
            kind: draft.body.kind().to_owned(),
        });
    }
    if draft.id.is_some() {
        return Err(MailError::invalid(
            "broadcast",
            "it cannot have an id given",
        ));
    }
    let recipients = others(recipients, &draft.from);
    if recipients.is_empty() {
        return Err(MailError::invalid(
            "broadcast",
            "there is nobody but the sender to send it to",
        ));
    }
    Ok(recipients)
}

/// Each of `recipients` once, without the sender.
fn others(recipients: &[Name], sender: &Name) -> Vec<Name> {
    let key = |name: &Name| name.as_str().to_ascii_lowercase();
    let mut seen = vec![key(sender)];
    let mut others = Vec::new();
    for name in recipients {
        if !seen.contains(&key(name)) {
            seen.push(key(name));
            others.push(name.clone());
        }
    }
    others
}
