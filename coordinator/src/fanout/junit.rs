//! `junit.xml`: every task is a test case.

use std::fmt::Write;

use super::outcome::Outcome;
use super::report::{Report, TaskReport};

/// The report as JUnit XML.
///
/// A task that failed is a `failure`, one that nobody could finish (budget, quota, killed) an
/// `error`, one that never started is `skipped`.
pub fn junit(report: &Report) -> String {
    let count = |wanted: Case| {
        let cases = report
            .tasks
            .iter()
            .filter(|task| case(&task.outcome) == wanted);
        cases.count()
    };
    let totals = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
        report.tasks.len(),
        count(Case::Failure),
        count(Case::Error),
        count(Case::Skipped),
        seconds(report.duration_ms()),
    );
    let name = escape(&report.name);
    // JUnit wants a time without a zone.
    let stamp = report.started_at.get(..19).unwrap_or_default();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let root = totals.replace(&format!(" skipped=\"{}\"", count(Case::Skipped)), "");
    line(&mut xml, 0, &format!("<testsuites name=\"{name}\" {root}>"));
    line(
        &mut xml,
        1,
        &format!(
            "<testsuite name=\"{name}\" {totals} timestamp=\"{stamp}\" hostname=\"localhost\">"
        ),
    );
    let cost = report.cost();
    let said = [
        ("base", report.base.clone()),
        ("cost.usd", format!("{:.4}", cost.usd)),
        ("cost.tokens", cost.tokens.to_string()),
    ];
    properties(&mut xml, 2, &said);
    for task in &report.tasks {
        test_case(&mut xml, report, task);
    }
    line(&mut xml, 1, "</testsuite>");
    line(&mut xml, 0, "</testsuites>");
    xml
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Passed,
    Failure,
    Error,
    Skipped,
}

fn case(outcome: &Outcome) -> Case {
    match outcome {
        outcome if outcome.is_success() => Case::Passed,
        Outcome::Skipped { .. } => Case::Skipped,
        Outcome::Failed { .. }
        | Outcome::VerifyFailed { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Conflict { .. } => Case::Failure,
        _ => Case::Error,
    }
}

fn test_case(xml: &mut String, report: &Report, task: &TaskReport) {
    let class = task.group.as_deref().unwrap_or(&report.name);
    let open = format!(
        "<testcase name=\"{}\" classname=\"{}\" time=\"{}\">",
        escape(&task.id),
        escape(class),
        seconds(task.duration_ms)
    );
    line(xml, 2, &open);
    let kind = task.outcome.kind();
    let words = escape(&task.words());
    let tail = task.check.as_ref().map(|check| check.tail.as_str());
    match case(&task.outcome) {
        Case::Passed => {}
        Case::Skipped => line(xml, 3, &format!("<skipped message=\"{words}\"/>")),
        failed => {
            let tag = if failed == Case::Failure {
                "failure"
            } else {
                "error"
            };
            let tail = escape(tail.unwrap_or_default());
            let text = format!("<{tag} message=\"{words}\" type=\"{kind}\">{tail}</{tag}>");
            line(xml, 3, &text);
        }
    }
    // The common schema has no place for properties of a case.
    let mut said = format!(
        "{}\noutcome: {kind}\nattempts: {}\ncost: {:.4} USD, {} tokens\nkey: {}\n",
        task.subject, task.attempts, task.cost.usd, task.cost.tokens, task.key
    );
    if let Some(commit) = task.outcome.commit() {
        said.push_str(&format!("commit: {commit}\n"));
    }
    line(
        xml,
        3,
        &format!("<system-out>{}</system-out>", escape(&said)),
    );
    line(xml, 2, "</testcase>");
}

fn properties(xml: &mut String, depth: usize, pairs: &[(&str, String)]) {
    line(xml, depth, "<properties>");
    for (name, value) in pairs {
        let value = escape(value);
        line(
            xml,
            depth + 1,
            &format!("<property name=\"{name}\" value=\"{value}\"/>"),
        );
    }
    line(xml, depth, "</properties>");
}

fn line(xml: &mut String, depth: usize, text: &str) {
    // Writing to a String does not fail.
    writeln!(xml, "{:1$}{text}", "", depth * 2).ok();
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Text for XML, in which some characters cannot be written at all.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => {
                write!(out, "&#{};", u32::from(c)).ok();
            }
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
