//! Noticing a model that makes the same call over and over.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// The number of calls that are remembered.
const MEMORY: usize = 30;
/// The number of identical calls with the same result after which the model gets a warning.
const TELL: usize = 5;
/// After so many the turn is over.
const END: usize = 10;

/// The last calls of a turn.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: VecDeque<u64>,
    end: Option<String>,
}

impl Repeats {
    /// Notes a call and its result; returns the warning for the model, if the call was made too
    /// often.
    pub(super) fn note(&mut self, name: &str, input: &Value, result: &str) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        (name, input.to_string(), result).hash(&mut hasher);
        let hash = hasher.finish();
        self.last.push_back(hash);
        if self.last.len() > MEMORY {
            self.last.pop_front();
        }
        let times = self.last.iter().filter(|known| **known == hash).count();
        if times >= END {
            self.end = Some(format!(
                "the model repeated the same call of {name} {times} times with the same result. Resume \
                 the agent with more instructions, or use another model"
            ));
        }
        (times >= TELL).then(|| {
            format!(
                "[You have made this very call {times} times now, and its result was the same each \
                 time. Do something else, or say what keeps you from going on.]"
            )
        })
    }

    /// The reason to end the turn; `None` if it may continue.
    pub(super) fn end(&mut self) -> Option<String> {
        self.end.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_again_and_again_is_told_then_ended() {
        let mut repeats = Repeats::default();
        let input = json!({"command": "ls"});
        let told: Vec<bool> = (0..END)
            .map(|n| {
                // Another call in between is no excuse.
                repeats.note("Read", &json!({"n": n}), "");
                assert_eq!(repeats.end(), None);
                repeats.note("Bash", &input, "a b").is_some()
            })
            .collect();
        assert_eq!(told.iter().filter(|told| !**told).count(), TELL - 1);
        assert!(repeats.end().unwrap().contains("the same call of Bash"));
    }

    #[test]
    fn work_is_no_repetition() {
        let mut repeats = Repeats::default();
        let input = json!({"command": "make"});
        for n in 0..100 {
            let told = repeats.note("Bash", &input, &format!("{n} errors"));
            assert_eq!(told, None);
        }
        assert_eq!(repeats.end(), None);
    }
}
