//! Whether trying again is of any use: the same failure twice, and nothing changed in between, is
//! a reason to stop.
//!
//! What is known of attempts is kept with the task (`metadata.ccb.attempts`), so it survives
//! whoever made them.

use taskboard::Attempt;

/// How much of a failure's words is compared.
const WORDS: usize = 400;

/// Whether trying again is of any use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It may be.
    GoesOn,
    /// It is not.
    Stuck {
        /// How it fails every time.
        failure: String,
        /// How often in a row.
        times: usize,
    },
}

/// Judges by the attempts so far, oldest first.
///
/// Two failures are the same if their words are, but for numbers; a tree that cannot be looked at
/// is taken for unchanged, because what stops an endless loop must not depend on it.
pub fn judge(attempts: &[Attempt]) -> Progress {
    let Some(last) = attempts.last() else {
        return Progress::GoesOn;
    };
    let same = |attempt: &&Attempt| {
        signature(&attempt.why) == signature(&last.why) && attempt.tree == last.tree
    };
    match attempts.iter().rev().take_while(same).count() {
        0 | 1 => Progress::GoesOn,
        times => Progress::Stuck {
            failure: last.why.clone(),
            times,
        },
    }
}

/// How much is tried before a task waits for somebody to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Attempts the task is to blame for.
    pub failed: usize,
    /// Attempts whose agent was lost.
    pub lost: usize,
}

impl Patience {
    /// It is tried as often as somebody wants it.
    pub const ENDLESS: Self = Self {
        failed: usize::MAX,
        lost: usize::MAX,
    };

    /// Why a task with these attempts is not to be tried again, if so.
    pub fn is_over(&self, attempts: &[Attempt]) -> Option<String> {
        let last = &attempts.last()?.why;
        let blamed: Vec<Attempt> = attempts.iter().filter(|it| it.counts).cloned().collect();
        let lost = attempts.len() - blamed.len();
        if blamed.len() >= self.failed.max(1) {
            return Some(format!("failed {} times, last: {last}", blamed.len()));
        }
        if lost >= self.lost.max(1) {
            return Some(format!("its agent was lost {lost} times, last: {last}"));
        }
        match judge(&blamed) {
            Progress::Stuck { failure, times } if self.failed < usize::MAX => Some(format!(
                "no progress: failed {times} times the same way, and nothing changed in between: \
                 {failure}"
            )),
            _ => None,
        }
    }
}

/// What two failures have in common that are the same: the words, not the times and numbers.
fn signature(failure: &str) -> String {
    let mut words = String::new();
    for c in failure.trim().chars().take(WORDS) {
        let c = match c {
            '0'..='9' => '0',
            c if c.is_whitespace() => ' ',
            c => c.to_ascii_lowercase(),
        };
        // "12" and "345" are both a number.
        if !(matches!(c, '0' | ' ') && words.ends_with(c)) {
            words.push(c);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(failure: &str, tree: &str) -> Attempt {
        Attempt {
            run: String::new(),
            status: "failed".into(),
            why: failure.into(),
            counts: true,
            tree: (!tree.is_empty()).then(|| tree.into()),
            at: String::new(),
        }
    }

    #[test]
    fn the_same_failure_twice_without_a_change_is_no_progress() {
        for (attempts, stuck) in [
            (vec![], None),
            (vec![("no", "a")], None),
            (vec![("no", "a"), ("no", "a")], Some(2)),
            (vec![("no", "a"), ("no", "a"), ("no", "a")], Some(3)),
            // Something changed, or it failed otherwise.
            (vec![("no", "a"), ("no", "b")], None),
            (vec![("no", "a"), ("other", "a")], None),
            // Not in a row.
            (vec![("no", "a"), ("other", "a"), ("no", "a")], None),
            (vec![("other", "a"), ("no", "a"), ("no", "a")], Some(2)),
            // What cannot be looked at is no excuse.
            (vec![("no", ""), ("no", "")], Some(2)),
            (vec![("no", ""), ("no", "a")], None),
            // Numbers, blanks and case do not make a difference.
            (
                vec![
                    ("Took 12 s at line 3", "a"),
                    ("took 3456 s  at line 77\n", "a"),
                ],
                Some(2),
            ),
            (vec![("line 3", "a"), ("line three", "a")], None),
        ] {
            let all: Vec<Attempt> = attempts.iter().map(|(f, t)| attempt(f, t)).collect();
            let expected = match stuck {
                None => Progress::GoesOn,
                Some(times) => Progress::Stuck {
                    failure: all.last().unwrap().why.clone(),
                    times,
                },
            };
            assert_eq!(judge(&all), expected, "{attempts:?}");
        }
    }

    #[test]
    fn patience_ends_with_too_many_failures_or_lost_agents_or_no_progress() {
        let patience = Patience { failed: 3, lost: 2 };
        let lost = Attempt {
            counts: false,
            ..attempt("killed", "a")
        };
        let one = |text: &str| attempt(text, "a");
        for (attempts, over) in [
            (vec![], None),
            (vec![one("x")], None),
            (vec![one("x"), one("y")], None),
            (
                vec![one("x"), one("y"), one("z")],
                Some("failed 3 times, last: z"),
            ),
            (
                vec![one("x"), one("x")],
                Some("no progress: failed 2 times"),
            ),
            (vec![lost.clone()], None),
            (
                vec![lost.clone(), lost.clone()],
                Some("its agent was lost 2 times"),
            ),
            (vec![one("x"), lost.clone(), one("y")], None),
        ] {
            let said = patience.is_over(&attempts);
            match over {
                None => assert_eq!(said, None, "{attempts:?}"),
                Some(words) => assert!(said.clone().unwrap().starts_with(words), "{said:?}"),
            }
            assert_eq!(Patience::ENDLESS.is_over(&attempts), None);
        }
    }
}
