//! The times at which a failed request is made again.

use std::time::Duration;

use uuid::Uuid;

use super::ModelError;

/// Maximum retries of a request that was refused because of load. After that all agents pause,
/// which helps more than each of them retrying.
const BUSY: u32 = 4;
/// Maximum retries of a request whose connection broke.
const BROKEN: u32 = 8;
/// The first wait; each is twice the one before.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait that the service did not ask for.
const LONGEST: Duration = Duration::from_secs(30);
/// A service that asks for a longer wait than this gets a pause of all agents.
const PATIENCE: Duration = Duration::from_secs(60);

/// The wait before the try after `tries`; `None` to give up.
pub(super) fn wait(error: &ModelError, tries: u32) -> Option<Duration> {
    let ModelError::Passing {
        retry_after, busy, ..
    } = error
    else {
        return None;
    };
    let most = if *busy { BUSY } else { BROKEN };
    if tries > most || retry_after.is_some_and(|wait| wait > PATIENCE) {
        return None;
    }
    let doubled = FIRST.saturating_mul(1 << tries.saturating_sub(1).min(16));
    let wait = jittered(doubled.min(LONGEST));
    // Never earlier than asked, and not all at the same moment.
    Some(retry_after.map_or(wait, |asked| asked + wait.min(FIRST)))
}

/// The error when no try is left.
pub(super) fn given_up(error: ModelError, tries: u32) -> ModelError {
    match error {
        ModelError::Passing {
            words,
            retry_after,
            busy: true,
        } => {
            let when = retry_after.map_or_else(String::new, |wait| {
                format!("; retry after {} s", wait.as_secs())
            });
            ModelError::Quota {
                words: format!("{words}, {}{when}", times(tries)),
            }
        }
        ModelError::Passing { words, .. } => ModelError::Refused {
            words: format!("{words}, {} in a row", times(tries)),
        },
        other => other,
    }
}

fn times(tries: u32) -> String {
    match tries {
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}

/// Between half of it and all of it.
fn jittered(wait: Duration) -> Duration {
    let (random, _) = Uuid::new_v4().as_u64_pair();
    let share = u32::try_from(random % 1000).unwrap_or(0);
    wait / 2 + wait / 2 * share / 1000
}

/// The value of a header `retry-after`, or of Anthropic's and OpenAI's finer ones.
pub(super) fn asked(retry_after: Option<&str>, millis: Option<&str>) -> Option<Duration> {
    let number = |text: Option<&str>| text?.trim().parse::<f64>().ok();
    let millis = number(millis).map(|millis| millis / 1000.0);
    let seconds = millis.or_else(|| number(retry_after))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(busy: bool, retry_after: Option<u64>) -> ModelError {
        ModelError::Passing {
            words: "w".into(),
            retry_after: retry_after.map(Duration::from_secs),
            busy,
        }
    }

    #[test]
    fn waits_grow_and_end() {
        let broken = passing(false, None);
        let waits: Vec<_> = (1..).map_while(|tries| wait(&broken, tries)).collect();
        assert_eq!(waits.len(), BROKEN as usize);
        for (n, wait) in waits.iter().enumerate() {
            let whole = FIRST.saturating_mul(1 << n).min(LONGEST);
            assert!(whole / 2 <= *wait && *wait <= whole, "{n}: {wait:?}");
        }
        let busy = passing(true, None);
        assert_eq!((1..).map_while(|n| wait(&busy, n)).count(), BUSY as usize);
        assert_eq!(wait(&ModelError::Refused { words: "w".into() }, 1), None);
    }

    #[test]
    fn who_asks_for_time_gets_it() {
        let asked = Duration::from_secs(7);
        let wait_for = wait(&passing(true, Some(7)), 1).unwrap();
        assert!(wait_for >= asked && wait_for <= asked + FIRST);
        assert_eq!(wait(&passing(true, Some(3600)), 1), None);
        let ModelError::Quota { words } = given_up(passing(true, Some(3600)), 1) else {
            panic!("not a quota");
        };
        let read = swarm::runtime::retry_after(&words);
        assert_eq!(read, Some(Duration::from_secs(3600)), "{words}");
    }

    #[test]
    fn headers_are_read() {
        let of = |a, b| asked(a, b).map(|wait| wait.as_millis());
        assert_eq!(of(Some("3"), None), Some(3000));
        assert_eq!(of(Some("3"), Some("250")), Some(250));
        assert_eq!(of(Some("Wed, 21 Oct 2026 07:28:00 GMT"), None), None);
        assert_eq!(of(Some("-1"), None), None);
        assert_eq!(of(None, None), None);
    }
}
