//! Whether trying again is of any use: the same failure twice, and nothing changed in between, is
//! a reason to stop.
//!
//! What is known of attempts is kept with the task (`metadata.ccb.attempts`), so it survives
//! whoever made them.

use serde::{Deserialize, Serialize};
use taskboard::{Board, BoardError, Task, TaskId};

/// How much of a failure's words is compared and kept.
const WORDS: usize = 400;

/// An attempt at a task that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attempt {
    /// Which life of which agent.
    pub run: String,
    /// How it failed.
    pub failure: String,
    /// A fingerprint of the tree it left; none if that could not be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// When, RFC 3339.
    pub at: String,
}

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
        signature(&attempt.failure) == signature(&last.failure) && attempt.tree == last.tree
    };
    match attempts.iter().rev().take_while(same).count() {
        0 | 1 => Progress::GoesOn,
        times => Progress::Stuck {
            failure: last.failure.clone(),
            times,
        },
    }
}

/// What is known of attempts at a task.
pub fn attempts(task: &Task) -> Vec<Attempt> {
    let noted = task.attempts().iter();
    let noted = noted.map(|value| serde_json::from_value(value.clone()).unwrap_or_default());
    noted.collect()
}

/// Notes an attempt that failed, once, and judges.
pub fn note(board: &Board, id: TaskId, attempt: &Attempt) -> Result<Progress, BoardError> {
    let kept = Attempt {
        failure: attempt.failure.chars().take(WORDS).collect(),
        ..attempt.clone()
    };
    let value = serde_json::to_value(&kept).unwrap_or_default();
    let task = board.note_attempt(id, &value)?;
    Ok(judge(&attempts(&task)))
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
            failure: failure.into(),
            tree: (!tree.is_empty()).then(|| tree.into()),
            ..Attempt::default()
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
                    failure: all.last().unwrap().failure.clone(),
                    times,
                },
            };
            assert_eq!(judge(&all), expected, "{attempts:?}");
        }
    }
}
