//! One-time codes, and the browsers that came in with one.
//!
//! An address is not a secret for long: it is on a screen, in the arguments of the browser, in its
//! history. So it has a code that lets in one browser, once, within a minute. The browser gets its
//! own cookie; if another program comes with the same code, the cookie ends, because one of the two
//! has taken the address from the other.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::secret::{same, secret};

/// Time in which a code is valid.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(60);
/// Maximum number of remembered codes, used or not.
const CODES: usize = 32;
/// Maximum number of signed-in browsers; one more signs the oldest out.
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

/// The program that came in with a code.
#[derive(Debug)]
struct Use {
    by: String,
    cookie: String,
}

/// The result of coming with a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// This cookie lets the browser in from now on.
    In(String),
    /// The code let in this same browser before.
    Again,
    /// The code has expired, or ccb never made it.
    Old,
    /// The code was used by this program, which is signed out now.
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

    /// True if this is one of the remembered codes.
    pub(super) fn has_made(&self, code: &str) -> bool {
        self.inner()
            .codes
            .iter()
            .any(|known| same(&known.text, code))
    }

    /// Lets in the program `by`, which comes with `code` and these cookies.
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

    /// A cookie for a browser that proved its right without a code.
    pub(super) fn new_cookie(&self) -> String {
        let cookie = secret();
        push(&mut self.inner().cookies, cookie.clone(), BROWSERS);
        cookie
    }

    /// True if this is the cookie of a signed-in browser.
    pub(super) fn knows(&self, cookie: &str) -> bool {
        self.inner().cookies.iter().any(|known| same(known, cookie))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds one; drops the oldest if there are more than `most`.
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
        // The same browser comes again.
        let again = entrance.enter(&code, "firefox", &["other", &first], now);
        assert_eq!(again, Entry::Again);
        assert!(entrance.knows(&first));
        let second = entrance.enter(&code, "curl", &["other"], now);
        assert_eq!(second, Entry::Taken("firefox".into()));
        assert!(!entrance.knows(&first));
        // A new code works, and an old address signs no browser out.
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
