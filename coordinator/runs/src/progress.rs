//! When to give up retrying: the same failure twice, and nothing changed in between, is a reason to
//! stop.
//!
//! The task stores its attempts (`metadata.ccb.attempts`), so they survive the director that made
//! them.
//!
//! A failure of the engine does not count against a task. An attempt that ended because one of
//! ccb's guards, hosts, directors or git processes was killed costs the task nothing. But some
//! agents kill their supervisors, every time. So the longer the row of attempts that were lost
//! while their agent ran, the longer the pause before the next; and ccb gives a task up if it alone
//! is lost while others are done, or if the pauses have added up to most of an hour.

use std::time::Duration;

use store::clock::parse_rfc3339;
use taskboard::Attempt;

/// Lost attempts in a row, with none lost by other tasks and as many of those done, after which the
/// task itself is the cause.
const LOST_ALONE: usize = 10;
/// Lost attempts in a row after which ccb gives up, whatever the other tasks do.
const LOST_AT_ALL: usize = 20;
/// Lost attempts in a row that ccb retries at once.
const LOST_BY_CHANCE: usize = 2;
/// The first pause, which doubles each time, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Maximum number of characters of a failure that are compared.
const WORDS: usize = 400;

/// The verdict on retrying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It may be.
    GoesOn,
    /// It is not.
    Stuck {
        /// The failure that repeats.
        failure: String,
        /// Number of times in a row.
        times: usize,
    },
}

/// Judges by the attempts so far, oldest first.
///
/// Two failures are the same if their words are, except for numbers; an unreadable worktree counts
/// as unchanged, because the end of an endless loop must not depend on it.
pub fn judge(attempts: &[Attempt]) -> Progress {
    // A killed attempt did not fail in any way that could be compared.
    let told = |attempt: &&Attempt| attempt.status != Attempt::DIED;
    let attempts: Vec<&Attempt> = attempts.iter().filter(told).collect();
    let Some(last) = attempts.last() else {
        return Progress::GoesOn;
    };
    let same = |attempt: &&&Attempt| {
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

/// Maximum number of attempts before a task waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Attempts the task is to blame for.
    pub failed: usize,
    /// True if all attempts are made, even if each fails the same way.
    pub all: bool,
}

impl Patience {
    /// No limit: ccb retries the task as often as the caller wants.
    pub(crate) const ENDLESS: Self = Self {
        failed: usize::MAX,
        all: true,
    };

    /// The maximum `failed`, and fewer if the attempts make no progress.
    pub fn of(failed: usize) -> Self {
        Self { failed, all: false }
    }

    /// The reason to give up a task with these attempts; `None` if it may be retried.
    pub fn is_over(&self, attempts: &[Attempt]) -> Option<String> {
        let last = &attempts.last()?.why;
        // The work that a person sent back was done; the person wants it otherwise.
        let failed = |it: &&Attempt| it.counts && it.work.is_none();
        let blamed: Vec<Attempt> = attempts.iter().filter(failed).cloned().collect();
        if blamed.len() >= self.failed.max(1) {
            return Some(match blamed.len() {
                0 | 1 => last.clone(),
                times => format!("failed {times} times, last: {last}"),
            });
        }
        match judge(&blamed) {
            Progress::Stuck { failure, times } if !self.all => Some(format!(
                "no progress: failed {times} times the same way, and nothing changed in between: \
                 {failure}"
            )),
            _ => None,
        }
    }
}

/// The results of other tasks' agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Others {
    /// They were lost as well.
    pub lost: usize,
    /// They did what they were asked.
    pub completed: usize,
}

/// The reason to give up a task whose agents are lost; `None` if it may be retried. `others` says
/// what happened to other tasks' agents since then.
pub(crate) fn lost_too_often(
    attempts: &[Attempt],
    others: &dyn Fn(&str) -> Others,
) -> Option<String> {
    let row = lost_in_a_row(attempts);
    let (first, last) = (row.first()?, row.last()?);
    let times = row.len();
    let words = |more: &str| {
        let why = &last.why;
        Some(format!(
            "its agent was lost {times} times in a row{more}, last: {why}"
        ))
    };
    if times >= LOST_AT_ALL {
        return words("");
    }
    if times < LOST_ALONE {
        return None;
    }
    let others = others(&first.at);
    match others.lost == 0 && others.completed >= LOST_ALONE {
        true => words(", and no other was"),
        false => None,
    }
}

/// The end of the pause (epoch ms) of a task whose agents are lost; `None` without a pause.
pub fn rests_until(attempts: &[Attempt]) -> Option<i64> {
    let row = lost_in_a_row(attempts);
    let since = parse_rfc3339(&row.last()?.at)?;
    let doubled = u32::try_from(row.len().checked_sub(LOST_BY_CHANCE + 1)?).ok()?;
    let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(doubled));
    let pause = i64::try_from(pause.min(LONGEST_PAUSE).as_millis()).ok()?;
    Some(since + pause)
}

/// The last attempts, as far as all of them were lost.
fn lost_in_a_row(attempts: &[Attempt]) -> &[Attempt] {
    let row = attempts.iter().rev().take_while(|it| !it.counts).count();
    &attempts[attempts.len() - row..]
}

/// True if the stored reason says that an attempt failed because its check did.
pub fn is_check_failure(why: &str) -> bool {
    why.starts_with("the check `")
}

/// True if two failures are the same but for times and numbers.
pub fn is_same_failure(one: &str, other: &str) -> bool {
    signature(one) == signature(other)
}

/// The part that two equal failures have in common: the words, not the times and numbers.
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
            work: None,
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
            // An unreadable worktree is no excuse.
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
    fn patience_ends_with_too_many_failures_or_no_progress() {
        let patience = Patience::of(3);
        let lost = Attempt {
            counts: false,
            ..attempt("killed", "a")
        };
        let died = Attempt {
            status: Attempt::DIED.into(),
            ..attempt("killed", "a")
        };
        let sent_back = Attempt {
            work: Some(taskboard::RejectedWork::default()),
            ..attempt("do more", "a")
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
            // A failure of the engine does not count against the task.
            (vec![lost.clone(); 15], None),
            // Sent back by a person, and then it failed for the first time.
            (vec![sent_back.clone(), one("x"), one("y")], None),
            (
                vec![sent_back.clone(), one("x"), one("x")],
                Some("no progress: failed 2 times"),
            ),
            (vec![one("x"), lost.clone(), one("y")], None),
            // Killed twice is not the same failure twice; but it is an attempt.
            (vec![died.clone(), died.clone()], None),
            (
                vec![died.clone(), died.clone(), died.clone()],
                Some("failed 3 times"),
            ),
        ] {
            let said = patience.is_over(&attempts);
            match over {
                None => assert_eq!(said, None, "{attempts:?}"),
                Some(words) => assert!(said.clone().unwrap().starts_with(words), "{said:?}"),
            }
            assert_eq!(Patience::ENDLESS.is_over(&attempts), None);
        }
    }

    fn lost(times: usize) -> Vec<Attempt> {
        let one = |second: usize| Attempt {
            counts: false,
            status: "lost".into(),
            at: format!("2026-01-01T00:00:{second:02}.000Z"),
            ..attempt("its guard died", "a")
        };
        (0..times).map(one).collect()
    }

    #[test]
    fn a_task_that_alone_is_lost_while_others_are_done_is_given_up_and_no_other() {
        let many = Others {
            lost: 0,
            completed: 10,
        };
        let over = |attempts: &[Attempt], others: Others| {
            let since = |since: &str| {
                assert_eq!(since, "2026-01-01T00:00:00.000Z", "since the first of them");
                others
            };
            lost_too_often(attempts, &since).is_some()
        };
        assert!(over(&lost(10), many));
        assert!(!over(&lost(9), many));
        // Some cause kills all agents, or no other task could tell.
        for others in [
            Others { lost: 1, ..many },
            Others {
                completed: 9,
                ..many
            },
        ] {
            assert!(!over(&lost(19), others), "{others:?}");
            assert!(over(&lost(20), others), "{others:?}");
        }
        // An attempt that failed by the task's own fault ends the row.
        let mut mixed = vec![attempt("x", "a")];
        mixed.extend(lost(10));
        assert!(over(&mixed, many));
        mixed.push(attempt("y", "a"));
        assert!(!over(&mixed, many));
        assert!(!over(&[], many));
    }

    #[test]
    fn the_longer_the_row_of_lost_ones_the_longer_the_pause() {
        let pause = |times: usize| {
            let attempts = lost(times);
            let last = parse_rfc3339(&attempts.last()?.at)?;
            Some(rests_until(&attempts)? - last)
        };
        assert_eq!([pause(0), pause(1), pause(2)], [None; 3]);
        assert_eq!(pause(3), Some(500));
        assert_eq!(pause(6), Some(4000));
        assert_eq!(pause(13), Some(300_000));
        assert_eq!(pause(19), Some(300_000));
        let all: i64 = (1..20).filter_map(pause).sum();
        assert!(
            all > 40 * 60 * 1000,
            "given up after most of an hour: {all} ms"
        );
    }
}
