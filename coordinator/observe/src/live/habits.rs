//! Repeated actions of an agent: detected in its tool calls and its worktree, without a model.

use std::collections::VecDeque;

use serde_json::Value;
use store::text::clean_cut;

use super::progress::{Mark, MarkKind};
use super::transcript::input_line;

/// Number of equal calls in a row that cause a mark.
const SAME: usize = 4;
/// Number of rounds of two alternating calls that cause a mark.
const ROUNDS: usize = 3;
/// Maximum number of remembered calls.
const REMEMBERED: usize = 64;
/// Number of calls without a change of the worktree that cause a mark.
const CALLS: u64 = 30;
/// Minimum time without a change of the worktree in ms: a test suite takes its time.
const LONG: i64 = 5 * 60 * 1000;
/// Maximum characters of a call's input in a view.
const SHOWN: usize = 60;

/// A call, with the fields that distinguish it from others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    print: u64,
    /// The call in words for people.
    words: String,
}

/// The recent behaviour of one agent.
#[derive(Debug, Default)]
pub(super) struct Habits {
    calls: VecDeque<Call>,
    /// Number of all calls so far.
    count: u64,
    /// The worktree's present state when it was first seen, and the progress at that time.
    tree: Option<Seen>,
    /// The last look at the worktree.
    last: Option<Seen>,
}

#[derive(Debug, Clone)]
struct Seen {
    print: String,
    calls: u64,
    tokens: u64,
    at_ms: i64,
}

impl Habits {
    /// Records a tool call.
    pub(super) fn called(&mut self, name: &str, input: &Value) {
        self.count += 1;
        let text = input.to_string();
        let mut bytes = name.as_bytes().to_vec();
        bytes.push(0);
        bytes.extend_from_slice(text.as_bytes());
        let print = store::fingerprint(&bytes);
        let words = match self.calls.back() {
            // The words are rarely shown.
            Some(last) if last.print == print => last.words.clone(),
            _ => clean_cut(&format!("{name} {}", input_line(input)), SHOWN),
        };
        self.calls.push_back(Call { print, words });
        if self.calls.len() > REMEMBERED {
            self.calls.pop_front();
        }
    }

    /// Forgets everything, because a new life of the agent began.
    pub(super) fn begin_again(&mut self) {
        *self = Self::default();
    }

    /// True if its worktree should be inspected now.
    pub(super) fn wants_a_look(&self, now_ms: i64) -> bool {
        match &self.last {
            None => self.count >= CALLS,
            Some(last) => self.count >= last.calls + CALLS && now_ms - last.at_ms >= LONG / 2,
        }
    }

    /// Records the state of its worktree.
    pub(super) fn found(&mut self, print: String, tokens: u64, now_ms: i64) {
        let seen = Seen {
            print,
            calls: self.count,
            tokens,
            at_ms: now_ms,
        };
        if self
            .tree
            .as_ref()
            .is_none_or(|tree| tree.print != seen.print)
        {
            self.tree = Some(seen.clone());
        }
        self.last = Some(seen);
    }

    /// The marks for a view.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        if let Some(why) = self.repeats() {
            let kind = MarkKind::Repeats;
            marks.push(Mark { kind, why });
        }
        if let Some(why) = self.changes_nothing() {
            let kind = MarkKind::ChangesNothing;
            marks.push(Mark { kind, why });
        }
        marks
    }

    fn repeats(&self) -> Option<String> {
        let last = self.calls.back()?;
        let same = |call: &&Call| call.print == last.print;
        let times = self.calls.iter().rev().take_while(same).count();
        if times >= SAME {
            let times = match times {
                REMEMBERED.. => format!("more than {REMEMBERED}"),
                times => times.to_string(),
            };
            return Some(format!(
                "it made the same call {times} times in a row: {}",
                last.words
            ));
        }
        let other = self.calls.iter().rev().nth(1)?;
        if other.print == last.print {
            return None;
        }
        let pair = [last.print, other.print];
        let in_turn = self.calls.iter().rev().zip(pair.iter().cycle());
        let rounds = in_turn.take_while(|(call, print)| call.print == **print);
        let rounds = rounds.count() / 2;
        (rounds >= ROUNDS).then(|| {
            format!(
                "it makes two calls in turn, {rounds} times so far: {} / {}",
                other.words, last.words
            )
        })
    }

    fn changes_nothing(&self) -> Option<String> {
        let (first, last) = (self.tree.as_ref()?, self.last.as_ref()?);
        let calls = last.calls - first.calls;
        let long = last.at_ms - first.at_ms;
        let grows = last.tokens > first.tokens;
        (calls >= CALLS && long >= LONG && grows).then(|| {
            let minutes = long / 60_000;
            format!("its worktree has not changed for {calls} tool calls and {minutes} minutes")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(calls: &[&str]) -> Vec<MarkKind> {
        let mut habits = Habits::default();
        for command in calls {
            habits.called("Bash", &json!({ "command": command }));
        }
        habits.marks().iter().map(|mark| mark.kind).collect()
    }

    #[test]
    fn the_same_call_again_and_again_is_marked_with_what_it_is() {
        assert_eq!(after(&["a", "a", "a"]), []);
        assert_eq!(after(&["a", "a", "a", "a"]), [MarkKind::Repeats]);
        // Something else in between is progress, or at least not this.
        assert_eq!(after(&["a", "a", "b", "a", "a"]), []);
        let mut habits = Habits::default();
        for _ in 0..200 {
            habits.called("Bash", &json!({ "command": "make\x1b[2J test" }));
        }
        let marks = habits.marks();
        let why = "it made the same call more than 64 times in a row: Bash make\u{fffd}[2J test";
        assert_eq!(marks[0].why, why);
        habits.called("Read", &json!({ "file_path": "a" }));
        assert_eq!(habits.marks(), [], "it has stopped");
    }

    #[test]
    fn two_calls_in_turn_are_marked() {
        assert_eq!(after(&["a", "b", "a", "b", "a"]), []);
        assert_eq!(
            after(&["x", "a", "b", "a", "b", "a", "b"]),
            [MarkKind::Repeats]
        );
        assert_eq!(after(&["a", "b", "c", "a", "b", "c", "a", "b", "c"]), []);
        // The same tool with another input is another call: edits differ.
        let mut habits = Habits::default();
        for n in 0..10 {
            habits.called("Edit", &json!({ "file_path": "a", "new_string": n }));
            habits.called("Bash", &json!({ "command": "make" }));
        }
        assert_eq!(habits.marks(), []);
    }

    #[test]
    fn one_who_works_long_and_changes_nothing_is_marked_until_something_changes() {
        let mut habits = Habits::default();
        let call = |habits: &mut Habits, from: u64, to: u64| {
            for n in from..to {
                habits.called("Read", &json!({ "file_path": n }));
            }
        };
        call(&mut habits, 0, 10);
        assert!(!habits.wants_a_look(0), "nothing to suspect");
        call(&mut habits, 10, 30);
        assert!(habits.wants_a_look(0));
        habits.found("t1".into(), 1_000, 0);
        assert!(!habits.wants_a_look(LONG), "no more was done");
        call(&mut habits, 30, 70);
        assert!(!habits.wants_a_look(1_000), "too soon");
        assert!(habits.wants_a_look(LONG));
        habits.found("t1".into(), 9_000, LONG);
        let marks = habits.marks();
        assert_eq!(marks[0].kind, MarkKind::ChangesNothing);
        let why = "its worktree has not changed for 40 tool calls and 5 minutes";
        assert_eq!(marks[0].why, why);
        call(&mut habits, 70, 110);
        habits.found("t2".into(), 10_000, 2 * LONG);
        assert_eq!(habits.marks(), [], "it changed something");
        // A waiting agent costs nothing and gets no mark.
        call(&mut habits, 110, 150);
        habits.found("t2".into(), 10_000, 3 * LONG);
        assert_eq!(habits.marks(), []);
    }
}
