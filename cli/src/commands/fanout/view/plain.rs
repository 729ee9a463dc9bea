//! Lines with the time in front, for logs.

use std::io::Write;

use fanout::{FanoutEvent, Progress, time};
use runs::failure_text::FailureText;
use store::counted;

use super::{Show, board_command};
use crate::output::{QUOTE, clean_line, short_commit};

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

    /// The line for an event; `None` if nothing is written.
    fn line(&mut self, event: &FanoutEvent, progress: &Progress, now_ms: u64) -> Option<String> {
        let subject = |id: &str| {
            progress
                .task(id)
                .map(|task| task.subject.as_str())
                .unwrap_or_default()
        };
        let text = match event {
            FanoutEvent::Planned { tasks, jobs, team } => {
                let tasks = counted(tasks.len(), "task");
                let board = match team.as_str() {
                    "" => String::new(),
                    team => format!("; the board: {}", board_command(team)),
                };
                format!("{tasks}, {jobs} at once{board}")
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
            FanoutEvent::Retrying { task, why } => {
                format!("{task}: failed, will be retried: {why}")
            }
            FanoutEvent::Finished { task, outcome } => {
                let (good, bad) = progress.ended();
                let took = self
                    .started
                    .remove(task)
                    .map(|from| time(now_ms.saturating_sub(from)));
                let took = took.map(|took| format!("{took}, ")).unwrap_or_default();
                let eta = progress.eta_ms(now_ms).filter(|left| *left > 0);
                let eta = eta
                    .map(|left| format!(", about {} left", time(left)))
                    .unwrap_or_default();
                let (mark, words) = (outcome.mark(), outcome.words());
                let failure = FailureText::of(&words);
                let (ended, all) = (good + bad, progress.tasks.len());
                let (what, printed) = (failure.what, failure.printed.join("\n"));
                format!("{mark} {task}: {what} ({took}{ended}/{all}{eta})\n{printed}")
            }
            FanoutEvent::Landed {
                task,
                branch,
                commit,
            } => {
                format!("{task}: landed on {branch} at {}", short_commit(commit))
            }
            FanoutEvent::Paused { why } => format!("paused: {why}"),
            FanoutEvent::Resumed => "resumed".into(),
            FanoutEvent::Note { text } => format!("note: {text}"),
            FanoutEvent::Tick | FanoutEvent::Ended => return None,
        };
        let failure = FailureText::of(&text);
        let mut all = format!("{} {}", (self.now)(), clean_line(&failure.what));
        // The output keeps its lines, below the line with the time.
        for line in &failure.printed {
            all.push_str(&format!("\n{QUOTE}{}", clean_line(line)));
        }
        Some(all)
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
    use fanout::{Outcome, PlannedEvent};

    #[test]
    fn lines_have_the_time_and_no_tricks() {
        let mut plain = Plain::new(|| "T".into());
        let mut progress = Progress::default();
        let task = PlannedEvent {
            id: "a".into(),
            subject: "do\x1b[2Jit".into(),
            ..PlannedEvent::default()
        };
        let mut lines = Vec::new();
        for (at, event) in [
            FanoutEvent::Planned {
                tasks: vec![task],
                jobs: 2,
                team: "t".into(),
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
            FanoutEvent::Finished {
                task: "b".into(),
                outcome: Outcome::VerifyFailed {
                    why: "exit code 1:\nfirst\n\x1b[2Jlast".into(),
                },
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
                "T 1 task, 2 at once; the board: ccb --team t task list",
                "T a: started (attempt 2): do\u{fffd}[2Jit [a1]",
                "T ✔ a: nothing changed; its check passes (1.0 s, 1/1)",
                "T ✘ b: the check failed: exit code 1 (1/1)\n  │ first\n  │ \u{fffd}[2Jlast",
            ]
        );
    }
}
