//! Failed requests to a model, told apart by their remedy.

use std::time::Duration;

use serde_json::Value;
use store::secret_filter::SecretFilter;

use super::Provider;
use super::provider::url;

/// The longest words of a service that are passed on.
const MAX_WORDS: usize = 600;

/// The reason why there is no answer. Every text is for people, says what happened and what to do,
/// and holds no key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModelError {
    /// Asking again soon may help.
    Passing {
        words: String,
        /// The service says when.
        retry_after: Option<Duration>,
        /// True if it has too much load, for us or for all its users. If that lasts, all agents
        /// pause.
        busy: bool,
    },
    /// The quota is used up, or the bill is not paid: there is no answer until later.
    Quota { words: String },
    /// The request is longer than the model can take.
    TooMuch { words: String },
    /// The service does not know an option beside the conversation (`effort`).
    Option { words: String },
    /// The service refused the request; a retry would not help.
    Refused { words: String },
}

impl ModelError {
    pub(super) fn passing(words: impl Into<String>) -> Self {
        Self::Passing {
            words: words.into(),
            retry_after: None,
            busy: false,
        }
    }

    /// The same without secrets: some services repeat what they were given.
    pub(super) fn without(mut self, secrets: &SecretFilter) -> Self {
        let (Self::Passing { words, .. }
        | Self::Quota { words }
        | Self::TooMuch { words }
        | Self::Option { words }
        | Self::Refused { words }) = &mut self;
        secrets.text(words);
        self
    }

    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Passing { words, .. }
            | Self::Quota { words }
            | Self::TooMuch { words }
            | Self::Option { words }
            | Self::Refused { words } => words,
        }
    }
}

/// The fields of a service's error.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    /// Its words for the kind, all of them, in lower case.
    kind: String,
    message: String,
}

impl Complaint {
    /// From the body of an answer, or an event in a stream.
    pub(super) fn read(body: &[u8]) -> Self {
        let json: Option<Value> = serde_json::from_slice(body).ok();
        let Some(json) = json else {
            let text = String::from_utf8_lossy(&body[..body.len().min(8 * MAX_WORDS)]);
            return Self {
                kind: String::new(),
                message: one_line(&text),
            };
        };
        Self::of(&json)
    }

    pub(super) fn of(json: &Value) -> Self {
        // Some wrap the error, some do not, some send a list of one.
        let json = json.get(0).unwrap_or(json);
        let error = match &json["error"] {
            Value::Null => json,
            error => error,
        };
        let texts = |keys: &[&str]| -> Vec<String> {
            let found = keys.iter().filter_map(|key| match &error[*key] {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            });
            found.collect()
        };
        let message = match error {
            Value::String(text) => text.clone(),
            _ => texts(&["message", "detail"])
                .into_iter()
                .next()
                .unwrap_or_default(),
        };
        let message = match message.is_empty() {
            true => error.to_string(),
            false => message,
        };
        Self {
            kind: texts(&["type", "code", "status"]).join(" ").to_lowercase(),
            message: one_line(&message),
        }
    }

    fn says(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words
            .iter()
            .any(|word| self.kind.contains(word) || message.contains(word))
    }
}

/// Words in refusals that money or a new month ends.
const QUOTA: [&str; 7] = [
    "insufficient_quota",
    "billing",
    "credit balance",
    "exceeded your current quota",
    "insufficient_credits",
    "insufficient credits",
    "usage limit",
];
/// Words in refusals of what is too long.
const TOO_MUCH: [&str; 8] = [
    "prompt is too long",
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "request_too_large",
    "too many tokens",
    "input is too long",
];
/// Words in refusals of a way of thinking.
const OPTIONS: [&str; 4] = ["thinking", "reasoning", "effort", "output_config"];

/// The error for an HTTP status of this service.
pub(super) fn of_status(
    status: u16,
    complaint: &Complaint,
    retry_after: Option<Duration>,
    provider: &Provider,
) -> ModelError {
    let name = &provider.name;
    let said = match complaint.message.as_str() {
        "" => status.to_string(),
        message => format!("{status}: {message}"),
    };
    let check = "Check with: ccb doctor --probe";
    match status {
        402 => quota(name, &said, retry_after),
        400..=499 if complaint.says(&QUOTA) => quota(name, &said, retry_after),
        400 | 413 | 422 if complaint.says(&TOO_MUCH) => ModelError::TooMuch {
            words: format!("the conversation is too long for {name} ({said})"),
        },
        413 => ModelError::TooMuch {
            words: format!("the request is too long for {name} ({said})"),
        },
        400 | 422 if complaint.says(&OPTIONS) => ModelError::Option {
            words: format!("{name} rejected the request ({said})"),
        },
        401 => ModelError::Refused {
            words: match &provider.key_env {
                Some(key) => format!(
                    "{name} rejected the key in {key} ({said}). Set a valid key and resume the \
                     agent. {check}"
                ),
                None => format!(
                    "{name} needs a key ({said}). Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or \
                     `keyEnv` of the provider in ccb.json, and resume the agent. {check}"
                ),
            },
        },
        403 => ModelError::Refused {
            words: format!(
                "{name} does not allow this key to use the model {:?} ({said}). Use another model or \
                 key. {check}",
                provider.model
            ),
        },
        404 => ModelError::Refused {
            words: format!(
                "{name} has no model {:?} at {} ({said}). Name another one with --model. {check}",
                provider.model,
                place(&url(provider))
            ),
        },
        429 | 529 => ModelError::Passing {
            words: format!("{name} limits requests or is overloaded ({said})"),
            retry_after,
            busy: true,
        },
        408 | 409 | 425 | 500.. => ModelError::Passing {
            words: format!("{name} failed ({said})"),
            retry_after,
            busy: complaint.says(&["overloaded"]),
        },
        _ => ModelError::Refused {
            words: format!("{name} rejected the request ({said})"),
        },
    }
}

fn quota(name: &str, said: &str, retry_after: Option<Duration>) -> ModelError {
    let when = retry_after.map_or_else(String::new, |wait| {
        format!("; retry after {} s", wait.as_secs())
    });
    ModelError::Quota {
        words: format!("{name}: the quota is used up, or the bill is not paid ({said}){when}"),
    }
}

/// The error for a complaint in the middle of a stream.
pub(super) fn in_stream(complaint: &Complaint, provider: &Provider) -> ModelError {
    let busy = complaint.says(&["overloaded", "rate_limit", "rate limit", "429", "529"]);
    let status = match () {
        () if busy => 529,
        () if complaint.says(&QUOTA) => 402,
        () if complaint.says(&["authentication"]) => 401,
        () if complaint.says(&["permission_error"]) => 403,
        () if complaint.says(&["invalid_request", "context_length_exceeded"]) => 400,
        () => 500,
    };
    of_status(status, complaint, None, provider)
}

/// An address without what may be secret in it.
pub(super) fn place(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// Short, and on one line.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text: String = words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    match text.char_indices().nth(MAX_WORDS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
