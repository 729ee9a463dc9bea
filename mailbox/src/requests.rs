//! The rules of asking and answering, for every place of requests.

use std::path::PathBuf;
use std::time::Duration;

use store::secret_filter::SecretFilter;

use crate::error::{MailError, Result};
use crate::protocol::Question;
use crate::request::Request;

/// Maximum time to wait for an answer, unless the request says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(600);

/// Maximum number of answered requests that are kept.
pub(crate) const KEPT: usize = 256;

/// All requests of a team.
#[derive(Debug, Default)]
pub struct Requests {
    /// The requests, oldest first.
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

/// The error that there is no request `id`, with the waiting request that the caller may have
/// meant.
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
