//! One-time codes, and the browsers that came in with one.
//!
//! An address is not a secret for long: it is on a screen, in the arguments of the browser, in its
//! history. So it has a code that lets in one browser, once, within a minute. The browser gets a cookie
//! of its own; if somebody else comes with the same code, the cookie it gave ends, because one of the
//! two has taken the address from the other.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::secret::{same, secret};

/// Time in which a code can be used.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(60);
/// Codes that are remembered, used or not.
const CODES: usize = 32;
/// Browsers that are signed in at a time; one more signs the oldest out.
const BROWSERS: usize = 256;

/// Lets browsers in.
#[derive(Debug, Default)]
pub(super) struct Entrance(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    codes: VecDeque<Code>,
    cookies: VecDeque<String>,
}

#[derive(Debug)]
struct Code {
    text: String,
    made: Instant,
    used: Option<Use>,
}

/// Who came in with a code.
#[derive(Debug)]
struct Use {
    by: String,
    cookie: String,
}

/// What becomes of somebody who comes with a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// This cookie lets the browser in from now on.
    In(String),
    /// The code let this very browser in before, which comes again.
    Again,
    /// The code is older than it may be, or ccb has never made it.
    Old,
    /// The code let in this program, which is signed out now.
    Taken(String),
}

impl Entrance {
    /// A new code.
    pub(super) fn new_code(&self, now: Instant) -> String {
        let text = secret();
        let code = Code {
            text: text.clone(),
            made: now,
            used: None,
        };
        push(&mut self.inner().codes, code, CODES);
        text
    }

    /// True if this is one of the codes that are remembered.
    pub(super) fn has_made(&self, code: &str) -> bool {
        self.inner()
            .codes
            .iter()
            .any(|known| same(&known.text, code))
    }

    /// Lets in whoever comes with `code`: `by`, in words, with these cookies.
    pub(super) fn enter(&self, code: &str, by: &str, cookies: &[&str], now: Instant) -> Entry {
        let mut inner = self.inner();
        let Inner {
            codes,
            cookies: all,
        } = &mut *inner;
        let Some(code) = codes.iter_mut().find(|known| same(&known.text, code)) else {
            return Entry::Old;
        };
        let is_good = now.saturating_duration_since(code.made) < GOOD_FOR;
        match &code.used {
            Some(used) if cookies.iter().any(|cookie| same(cookie, &used.cookie)) => Entry::Again,
            Some(used) if is_good => {
                all.retain(|cookie| *cookie != used.cookie);
                Entry::Taken(used.by.clone())
            }
            None if is_good => {
                let cookie = self::secret();
                let by = by.to_owned();
                code.used = Some(Use {
                    by,
                    cookie: cookie.clone(),
                });
                push(all, cookie.clone(), BROWSERS);
                Entry::In(cookie)
            }
            _ => Entry::Old,
        }
    }

    /// A cookie for a browser that proved otherwise who it is.
    pub(super) fn new_cookie(&self) -> String {
        let cookie = secret();
        push(&mut self.inner().cookies, cookie.clone(), BROWSERS);
        cookie
    }

    /// True if a browser that is signed in has this cookie.
    pub(super) fn knows(&self, cookie: &str) -> bool {
        self.inner().cookies.iter().any(|known| same(known, cookie))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds one; the oldest goes if there are more than `most`.
fn push<T>(all: &mut VecDeque<T>, one: T, most: usize) {
    all.push_back(one);
    if all.len() > most {
        all.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cookie of a browser that came in.
    fn enter(entrance: &Entrance, code: &str, now: Instant) -> String {
        match entrance.enter(code, "firefox", &[], now) {
            Entry::In(cookie) => cookie,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_code_lets_one_browser_in_within_a_minute() {
        let (entrance, now) = (Entrance::default(), Instant::now());
        let (one, other) = (entrance.new_code(now), entrance.new_code(now));
        assert_ne!(one, other);
        assert!(entrance.has_made(&one) && !entrance.has_made(""));
        let last = now + GOOD_FOR - Duration::from_millis(1);
        let cookie = enter(&entrance, &one, last);
        assert!(entrance.knows(&cookie) && !entrance.knows(&one));
        assert_eq!(
            entrance.enter(&other, "late", &[], now + GOOD_FOR),
            Entry::Old
        );
        assert_eq!(entrance.enter("", "nobody", &[], now), Entry::Old);
        assert_eq!(entrance.enter("made up", "nobody", &[], now), Entry::Old);
        assert!(entrance.knows(&cookie), "none of that signs anybody out");
    }

    #[test]
    fn two_that_come_with_one_code_are_both_out() {
        let (entrance, now) = (Entrance::default(), Instant::now());
        let code = entrance.new_code(now);
        let first = enter(&entrance, &code, now);
        // The same browser goes back.
        let again = entrance.enter(&code, "firefox", &["other", &first], now);
        assert_eq!(again, Entry::Again);
        assert!(entrance.knows(&first));
        let second = entrance.enter(&code, "curl", &["other"], now);
        assert_eq!(second, Entry::Taken("firefox".into()));
        assert!(!entrance.knows(&first));
        // A new code is a new start, and an old address takes nothing from anybody.
        let code = entrance.new_code(now);
        let cookie = enter(&entrance, &code, now);
        let late = entrance.enter(&code, "curl", &[], now + GOOD_FOR);
        assert_eq!(late, Entry::Old);
        assert!(entrance.knows(&cookie));
    }

    #[test]
    fn there_are_only_so_many_codes_and_browsers() {
        let (entrance, now) = (Entrance::default(), Instant::now());
        let first = entrance.new_code(now);
        let kept = entrance.new_cookie();
        for _ in 0..BROWSERS {
            assert!(entrance.knows(&kept));
            entrance.new_code(now);
            entrance.new_cookie();
            if entrance.inner().cookies.len() == BROWSERS {
                break;
            }
        }
        assert_eq!(entrance.enter(&first, "late", &[], now), Entry::Old);
        assert_eq!(entrance.inner().codes.len(), CODES);
        entrance.new_cookie();
        assert!(!entrance.knows(&kept));
    }
}
