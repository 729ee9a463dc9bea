//! Keeps a report small, and secrets out of it.

use std::sync::Arc;

use serde_json::Value;
use swarm::redact::Secrets;

use super::model::Report;

/// Maximum bytes of a text of an agent or a person in a report.
const TEXT: usize = 8 * 1024;
/// Maximum bytes of the diff of one task.
const ONE_DIFF: usize = 128 * 1024;
/// Maximum bytes of all diffs together.
const ALL_DIFFS: usize = 6 << 20;
/// Maximum number of diffs: each is a git command.
const DIFFS: usize = 400;
/// Maximum bytes of the output of all checks together.
const ALL_OUTPUT: usize = 4 << 20;

/// Cuts a text at the end.
pub(super) fn text(text: &str) -> String {
    if text.len() <= TEXT {
        return text.to_owned();
    }
    let mut end = TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n[{} bytes more]", &text[..end], text.len() - end)
}

/// The room that is left for diffs.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    diffs: usize,
    /// Number of diffs that found no room.
    refused: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: ALL_DIFFS,
            diffs: DIFFS,
            refused: 0,
        }
    }
}

impl Room {
    /// Room for none.
    pub(super) fn none() -> Self {
        Self {
            bytes: 0,
            diffs: 0,
            refused: 0,
        }
    }

    /// Maximum length of the next diff; 0 if no room is left.
    pub(super) fn next(&mut self) -> usize {
        match self.bytes.min(ONE_DIFF) {
            0 => self.refused += 1,
            most if self.diffs > 0 => return most,
            _ => self.refused += 1,
        }
        0
    }

    /// Records a diff of this length.
    pub(super) fn took(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.diffs = self.diffs.saturating_sub(1);
    }

    /// The number of diffs that found no room, in words.
    pub(super) fn words(&self) -> Option<String> {
        let left_out = self.refused;
        (left_out > 0).then(|| {
            let diffs = store::counted(left_out, "diff");
            format!("{diffs} left out; `ccb diff TASK` shows them")
        })
    }
}

/// Leaves out outputs of checks if they are too large together, because very long reports are
/// little use.
pub(super) fn outputs(report: &mut Report) {
    let mut left = ALL_OUTPUT;
    let mut out = 0;
    for check in report
        .tasks
        .iter_mut()
        .filter_map(|task| task.check.as_mut())
    {
        let len = check.output.text.len();
        // A reader looks for the failures.
        if len > left && check.passed {
            check.output.cut += len as u64;
            check.output.text.clear();
            out += usize::from(len > 0);
        }
        left = left.saturating_sub(check.output.text.len());
    }
    if out > 0 {
        let checks = store::counted(out, "check");
        report
            .omitted
            .push(format!("the output of {checks} that passed is left out"));
    }
}

/// The report without secrets: every text in it, whatever it is.
pub(super) fn redacted(report: &Report, secrets: &Arc<Secrets>) -> Report {
    let Ok(mut value) = serde_json::to_value(report) else {
        return Report::default();
    };
    redact(&mut value, secrets);
    serde_json::from_value(value).unwrap_or_default()
}

fn redact(value: &mut Value, secrets: &Arc<Secrets>) {
    match value {
        Value::String(text) => {
            if let Some(clean) = secrets.redacted(text) {
                *text = clean;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|one| redact(one, secrets)),
        Value::Object(all) => all.values_mut().for_each(|one| redact(one, secrets)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{CheckPart, Excerpt, TaskPart};
    use super::*;

    #[test]
    fn secrets_are_taken_out_of_every_text() {
        let secrets = Arc::new(Secrets::new(["hunter2hunter2"]));
        let report = Report {
            title: "use hunter2hunter2".into(),
            tasks: vec![TaskPart {
                diff: Some(Excerpt {
                    text: "+password = hunter2hunter2".into(),
                    cut: 0,
                }),
                ..TaskPart::default()
            }],
            notes: vec!["hunter2hunter2".into()],
            ..Report::default()
        };
        let clean = redacted(&report, &secrets);
        let text = serde_json::to_string(&clean).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(clean.tasks.len(), 1);
    }

    #[test]
    fn what_is_long_is_cut_between_characters() {
        let long = "ä".repeat(TEXT);
        let cut = text(&long);
        assert!(cut.len() < TEXT + 40, "{}", cut.len());
        assert!(
            cut.ends_with(&format!("[{TEXT} bytes more]")),
            "{}",
            &cut[TEXT..]
        );
        assert_eq!(text("short"), "short");
    }

    #[test]
    fn output_of_what_failed_stays_and_what_passed_goes_first() {
        let check = |passed: bool| TaskPart {
            check: Some(CheckPart {
                passed,
                output: Excerpt {
                    text: "x".repeat(ALL_OUTPUT),
                    cut: 0,
                },
                ..CheckPart::default()
            }),
            ..TaskPart::default()
        };
        let mut report = Report {
            tasks: vec![check(true), check(true), check(false)],
            ..Report::default()
        };
        outputs(&mut report);
        let len = |at: usize| {
            report.tasks[at]
                .check
                .as_ref()
                .map(|it| it.output.text.len())
        };
        assert_eq!((len(1), len(2)), (Some(0), Some(ALL_OUTPUT)));
        assert_eq!(report.omitted.len(), 1);
    }

    #[test]
    fn there_is_room_for_so_many_diffs() {
        let mut room = Room::default();
        for _ in 0..DIFFS {
            assert!(room.next() > 0);
            room.took(10);
        }
        assert_eq!(room.next(), 0);
        assert!(room.words().unwrap().starts_with("1 diff left out"));
    }
}
