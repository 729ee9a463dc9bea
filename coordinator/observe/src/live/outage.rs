//! A database that cannot be reached, while somebody looks on.

use std::sync::{Mutex, PoisonError};

use store::text::clean_cut;

/// It is asked again after so many ms.
const AGAIN: i64 = 1_000;

/// What all teams of a view know about their database. One of them that gets no answer spares the
/// others the waiting.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Option<Since>>);

#[derive(Debug)]
struct Since {
    words: String,
    until: i64,
}

impl Outage {
    /// Why nobody is to be asked now, if that is so.
    pub(super) fn lasts(&self, now_ms: i64) -> Option<String> {
        let since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = since.as_ref()?;
        // A clock that was set back must not make it last.
        let lasts = (since.until - AGAIN..since.until).contains(&now_ms);
        lasts.then(|| since.words.clone())
    }

    /// It did not do what it was asked, for a reason of this kind.
    pub(super) fn begin(&self, kind: &str, why: &str, now_ms: i64) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let why = clean_cut(why, super::TROUBLE);
        *since = Some(Since {
            // On a narrow screen the reason itself would begin with an address and end there.
            words: match kind {
                "database_unreachable" | "database_timeout" => {
                    format!("the database cannot be reached; trying again ({why})")
                }
                _ => why,
            },
            until: now_ms + AGAIN,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_a_while_and_no_longer() {
        let outage = Outage::default();
        assert_eq!(outage.lasts(5), None);
        outage.begin("database_read_only", "gone", 10_000);
        assert_eq!(outage.lasts(10_000).as_deref(), Some("gone"));
        assert_eq!(outage.lasts(10_999).as_deref(), Some("gone"));
        assert_eq!(outage.lasts(11_000), None);
        assert_eq!(outage.lasts(0), None, "the clock was set back");
        outage.begin("database_unreachable", "refused", 0);
        let words = outage.lasts(0).unwrap();
        assert!(
            words.starts_with("the database cannot be reached"),
            "{words}"
        );
    }
}
