//! Telling apart why a model's provider refuses, where the program passes on only words.

use super::{TurnEnd, TurnStatus};

/// Words in refusals of a login, in lower case.
const LOGIN: [&str; 8] = [
    "401",
    "403",
    "unauthorized",
    "authentication",
    "api key",
    "api_key",
    "not logged in",
    "credentials",
];
/// Words in refusals that end by themselves.
const FOR_NOW: [&str; 9] = [
    "429",
    "529",
    "quota",
    "rate limit",
    "rate_limit",
    "ratelimit",
    "usage limit",
    "resource_exhausted",
    "overloaded",
];

/// The end of a turn that failed with `code` and `error`. `login` says how to log in.
pub(super) fn failed_turn(code: Option<i64>, error: &str, text: String, login: &str) -> TurnEnd {
    let words = error.to_lowercase();
    let says = |list: &[&str]| list.iter().any(|word| contains(&words, word));
    let (status, error) = if matches!(code, Some(429 | 529)) || says(&FOR_NOW) {
        (TurnStatus::Quota, error.to_owned())
    } else if matches!(code, Some(401 | 403 | -32000)) || says(&LOGIN) {
        let error = format!("it is not logged in, or its key is refused ({error}); {login}");
        (TurnStatus::Failed, error)
    } else {
        (TurnStatus::Failed, error.to_owned())
    };
    TurnEnd {
        status,
        text,
        error: Some(error),
    }
}

/// Whether `text` contains `word`; numbers only as a whole.
fn contains(text: &str, word: &str) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let number = word.bytes().all(|byte| byte.is_ascii_digit());
    text.match_indices(word).any(|(at, _)| {
        let bytes = text.as_bytes();
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !(number && (is_digit(before) || is_digit(bytes.get(at + word.len()))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: Option<i64>, error: &str) -> (TurnStatus, bool) {
        let end = failed_turn(code, error, String::new(), "run x");
        let error = end.error.unwrap_or_default();
        (end.status, error.ends_with("run x"))
    }

    #[test]
    fn refusals_are_told_apart() {
        let login = (TurnStatus::Failed, true);
        let quota = (TurnStatus::Quota, false);
        let other = (TurnStatus::Failed, false);
        assert_eq!(status(Some(401), "no"), login);
        assert_eq!(status(Some(-32000), "no"), login);
        assert_eq!(status(Some(-32603), "Internal error: error 401"), login);
        assert_eq!(status(None, "Invalid API key provided"), login);
        assert_eq!(status(Some(429), "no"), quota);
        assert_eq!(status(None, "You exceeded your current quota"), quota);
        assert_eq!(
            status(None, "unexpected status 429 Too Many Requests"),
            quota
        );
        assert_eq!(status(Some(400), "bad request"), other);
        assert_eq!(status(None, "14290 bytes in 4013 lines"), other);
    }
}
