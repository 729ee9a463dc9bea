//! Lines with the time in front, for logs.

use std::io::Write;

use coordinator::fanout::{FanoutEvent, Progress, time};

use super::Show;
use crate::output::{clean_line, short_commit};

pub(super) struct Plain {
    now: fn() -> String,
    started: std::collections::HashMap<String, u64>,
}

impl Plain {
    pub(super) fn new(now: fn() -> String) -> Self {
        Self {
            now,
            started: std::collections::HashMap::new(),
        }
    }

    /// What is written about an event.
    fn line(&mut self, event: &FanoutEvent, progress: &Progress, now_ms: u64) -> Option<String> {
        let subject = |id: &str| {
            progress
                .task(id)
                .map(|task| task.subject.as_str())
                .unwrap_or_default()
        };
        let text = match event {
            FanoutEvent::Planned { tasks, jobs } => {
                format!("{} tasks, {jobs} at once", tasks.len())
            }
            FanoutEvent::Started {
                task,
                agent,
                attempt,
            } => {
                self.started.entry(task.clone()).or_insert(now_ms);
                let again = if *attempt > 1 {
                    format!(" (attempt {attempt})")
                } else {
                    String::new()
                };
                format!("{task}: started{again}: {} [{agent}]", subject(task))
            }
            FanoutEvent::Checking { task } => format!("{task}: checking"),
            FanoutEvent::Retrying { task, why } => format!("{task}: will be tried again: {why}"),
            FanoutEvent::Finished { task, outcome } => {
                let (good, bad) = progress.ended();
                let took = self
                    .started
                    .remove(task)
                    .map(|from| time(now_ms.saturating_sub(from)));
                let took = took
                    .map(|took| format!(" after {took}"))
                    .unwrap_or_default();
                let eta = progress.eta_ms(now_ms).filter(|left| *left > 0);
                let eta = eta
                    .map(|left| format!(", about {} left", time(left)))
                    .unwrap_or_default();
                format!(
                    "{task}: {}{took}: {} ({}/{}{eta})",
                    outcome.kind(),
                    outcome.words(),
                    good + bad,
                    progress.tasks.len()
                )
            }
            FanoutEvent::Landed {
                task,
                branch,
                commit,
            } => {
                format!("{task}: landed on {branch} at {}", short_commit(commit))
            }
            FanoutEvent::Paused { why } => format!("paused: {why}"),
            FanoutEvent::Resumed => "goes on".into(),
            FanoutEvent::Note { text } => format!("note: {text}"),
            FanoutEvent::Tick | FanoutEvent::Ended => return None,
        };
        Some(format!("{} {}", (self.now)(), clean_line(&text)))
    }
}

impl Show for Plain {
    fn show(&mut self, event: &FanoutEvent, progress: &Progress, now_ms: u64) {
        if let Some(line) = self.line(event, progress, now_ms) {
            write_line(&line);
        }
    }
}

pub(super) fn write_line(line: &str) {
    // A closed stderr does not stop the run.
    writeln!(std::io::stderr().lock(), "{line}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use coordinator::fanout::{Outcome, PlannedEvent};

    #[test]
    fn lines_have_the_time_and_no_tricks() {
        let mut plain = Plain::new(|| "T".into());
        let mut progress = Progress::default();
        let task = PlannedEvent {
            id: "a".into(),
            subject: "do\n\x1b[2Jit".into(),
            ..PlannedEvent::default()
        };
        let mut lines = Vec::new();
        for (at, event) in [
            FanoutEvent::Planned {
                tasks: vec![task],
                jobs: 2,
            },
            FanoutEvent::Started {
                task: "a".into(),
                agent: "a1".into(),
                attempt: 2,
            },
            FanoutEvent::Finished {
                task: "a".into(),
                outcome: Outcome::NoChange { proven: true },
            },
            FanoutEvent::Tick,
        ]
        .iter()
        .enumerate()
        {
            let now = u64::try_from(at).unwrap() * 1000;
            progress.take(event, now);
            lines.extend(plain.line(event, &progress, now));
        }
        assert_eq!(
            lines,
            [
                "T 1 tasks, 2 at once",
                "T a: started (attempt 2): do \u{fffd}[2Jit [a1]",
                "T a: no_change after 1.0 s: nothing changed; its check passes (1/1)",
            ]
        );
    }
}
