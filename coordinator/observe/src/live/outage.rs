//! A database that cannot be reached while a view is open.

use std::sync::{Mutex, PoisonError};

use store::text::clean_cut;

/// Pause before the database is asked again, in ms.
const AGAIN: i64 = 1_000;

/// The shared knowledge of all teams of a view about their database. One team without an answer
/// spares the others the wait.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Option<Since>>);

#[derive(Debug)]
struct Since {
    words: String,
    until: i64,
}

impl Outage {
    /// The reason not to ask the database now; `None` if it may be asked.
    pub(super) fn lasts(&self, now_ms: i64) -> Option<String> {
        let since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = since.as_ref()?;
        // A clock that was set back must not extend the pause.
        let lasts = (since.until - AGAIN..since.until).contains(&now_ms);
        lasts.then(|| since.words.clone())
    }

    /// Records that the database failed, for a reason of this kind.
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
