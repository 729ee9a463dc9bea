//! What asking and answering mean, wherever requests are kept.

use std::path::PathBuf;
use std::time::Duration;

use store::secret_filter::SecretFilter;

use crate::error::{MailError, Result};
use crate::protocol::Question;
use crate::request::Request;

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
