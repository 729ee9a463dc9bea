//! `gl-code-quality-report.json`: the remaining tasks, for GitLab's merge requests.

use serde_json::{Value, json};

use super::report::Report;
use super::sarif::{fingerprint, left, message, plain_path, rule};
use super::task::sha256;

/// Every task that did not succeed, as a report of GitLab's Code Quality. GitLab shows what has
/// a place: a task without a file is shown at `plan`, the name of the run.
pub fn code_quality(report: &Report) -> Value {
    let left = left(report);
    let entries = left.iter().enumerate().map(|(at, (task, origin))| {
        let before = left[..at].iter().rev();
        let nth = before.take_while(|(other, _)| other.id == task.id);
        let print = sha256(fingerprint(task, nth.count()).as_bytes());
        let severity = match origin.level.as_deref() {
            Some("note" | "none") => "info",
            Some("warning") => "minor",
            _ => "major",
        };
        let path = origin.file.as_deref().or(plain_path(task));
        json!({
            "description": message(task, origin),
            "check_name": rule(task, origin),
            "fingerprint": &print[..32],
            "severity": severity,
            "location": {
                "path": path.unwrap_or(&report.name),
                "lines": {"begin": origin.line.filter(|line| *line > 0).unwrap_or(1)},
            },
        })
    });
    entries.collect()
}
