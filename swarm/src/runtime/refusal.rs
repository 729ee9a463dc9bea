//! Telling apart why a model's provider refuses, where the program passes on only words.

use std::time::Duration;

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

/// The wait that the provider asks for, if it says so in words such as "retry in 12.5s", "try again
/// in 2 minutes" or "Retry-After: 30".
pub fn retry_after(words: &str) -> Option<Duration> {
    const BEFORE: [&str; 5] = [
        "retry-after",
        "retry after",
        "retry_after",
        "retry in",
        "again in",
    ];
    let words = words.to_lowercase();
    let said = BEFORE.iter().filter_map(|before| {
        let (_, rest) = words.split_once(before)?;
        let rest = rest.trim_start_matches([':', '=', '"', ' ']);
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = rest.split_at(digits.unwrap_or(rest.len()));
        let number: f64 = number.trim_end_matches('.').parse().ok()?;
        let unit = unit.trim_start();
        let seconds = match unit {
            _ if unit.starts_with("ms") || unit.starts_with("milli") => number / 1000.0,
            _ if unit.starts_with('m') => number * 60.0,
            _ if unit.starts_with('h') => number * 3600.0,
            _ => number,
        };
        Duration::try_from_secs_f64(seconds).ok()
    });
    said.max()
}

/// True if `text` contains `word`; numbers only as a whole.
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
    fn how_long_to_wait_is_read_from_words() {
        for (words, seconds) in [
            ("429: Please retry in 35.4s.", Some(35.4)),
            ("Rate limit reached. Please try again in 120ms", Some(0.12)),
            ("try again in 2 minutes", Some(120.0)),
            ("Try again in 5 hours", Some(18_000.0)),
            ("HTTP 429, Retry-After: 30", Some(30.0)),
            (r#"{"retry_after":7}"#, Some(7.0)),
            ("retry after 3 seconds", Some(3.0)),
            ("retry later", None),
            ("try again in a while", None),
            ("retry in 99999999999999999999999999s", None),
            ("", None),
        ] {
            let wait = retry_after(words).map(|wait| wait.as_secs_f64());
            assert_eq!(wait, seconds, "{words}");
        }
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
