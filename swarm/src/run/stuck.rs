//! Noticing a program that waits for an answer it will never get.

use std::time::Duration;

use tokio::time::Instant;

use crate::runtime::Event;

/// Maximum bytes of the last line that are read.
const MAX_LINE: usize = 200;
/// The endings of such questions.
const QUESTIONS: &[&str] = &["?", ":", "]", ")", ">"];
/// And what is in them.
const WORDS: &[&str] = &[
    "y/n",
    "yes/no",
    "password",
    "passphrase",
    "press ",
    "continue",
    "enter ",
    "overwrite",
    "username",
    "are you sure",
    "do you want",
    "proceed",
];

/// The agent's last output and its time.
#[derive(Debug)]
pub(super) struct Stuck {
    since: Instant,
    last: Vec<u8>,
    reported: bool,
}

impl Stuck {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            last: Vec::new(),
            reported: false,
        }
    }

    /// Notes an event of the agent.
    pub(super) fn alive(&mut self, event: &Event) {
        self.since = Instant::now();
        self.reported = false;
        let Event::Output { bytes, .. } = event else {
            self.last.clear();
            return;
        };
        match memchr::memrchr(b'\n', bytes) {
            Some(end) => self.last = bytes[end + 1..].to_vec(),
            None => self.last.extend_from_slice(bytes),
        }
        let surplus = self.last.len().saturating_sub(MAX_LINE);
        self.last.drain(..surplus);
    }

    /// The agent's question, if it seems to have waited for an answer this long. Reported once.
    pub(super) fn report(&mut self, busy: bool, after: Duration) -> Option<String> {
        if self.reported || !busy || self.since.elapsed() < after {
            return None;
        }
        let line = String::from_utf8_lossy(&self.last);
        let line = line.trim();
        let lower = line.to_lowercase();
        let asks = QUESTIONS.iter().any(|end| line.ends_with(end))
            && (line.ends_with('?') || WORDS.iter().any(|word| lower.contains(word)));
        if !asks {
            return None;
        }
        self.reported = true;
        Some(line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Stream;

    fn printed(text: &str) -> Event {
        Event::Output {
            stream: Stream::Stdout,
            bytes: text.into(),
        }
    }

    #[test]
    fn a_question_without_a_line_end_is_noticed_once() {
        let mut stuck = Stuck::new();
        stuck.alive(&printed("installing\nOverwrite it? [y/"));
        stuck.alive(&printed("N]"));
        assert_eq!(stuck.report(true, Duration::MAX), None, "not yet");
        assert_eq!(stuck.report(false, Duration::ZERO), None, "it is idle");
        let asked = stuck.report(true, Duration::ZERO);
        assert_eq!(asked.as_deref(), Some("Overwrite it? [y/N]"));
        assert_eq!(stuck.report(true, Duration::ZERO), None, "said once");
    }

    #[test]
    fn what_only_takes_long_is_left_alone() {
        for text in ["compiling\n", "is it?\n", "12%", "array[3]", "note:"] {
            let mut stuck = Stuck::new();
            stuck.alive(&printed(text));
            assert_eq!(stuck.report(true, Duration::ZERO), None, "{text:?}");
        }
    }
}
