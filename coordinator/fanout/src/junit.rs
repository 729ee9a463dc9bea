//! `junit.xml`: every task is a test case.

use std::time::Duration;

use director::Verdict;
use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};

use super::outcome::Outcome;
use super::report::{Report, TaskReport};

/// The report as JUnit XML.
///
/// A failed task is a `failure`, one that could not be finished (budget, quota, killed) an `error`,
/// one that never started is `skipped`.
pub fn junit(report: &Report) -> String {
    let name = writable(&report.name);
    let time = Duration::from_millis(report.duration_ms());
    let cost = report.cost();
    let mut suite = TestSuite::new(name.as_str());
    suite.set_time(time);
    // JUnit wants a time without a zone.
    let stamp = report.started_at.get(..19).unwrap_or_default();
    suite.extra.insert("timestamp".into(), stamp.into());
    suite.extra.insert("hostname".into(), "localhost".into());
    suite.add_property(Property::new("base", writable(&report.base)));
    suite.add_property(Property::new("cost.usd", format!("{:.4}", cost.usd)));
    suite.add_property(Property::new("cost.tokens", cost.tokens.to_string()));
    suite.add_test_cases(report.tasks.iter().map(|task| test_case(report, task)));
    if report.verdict != Verdict::Done && suite.failures + suite.errors == 0 {
        // A reader of this file alone must not take the run for a success.
        suite.add_test_case(whole_case(report));
    }
    let skipped = format!(" skipped=\"{}\"", suite.skipped);
    let mut all = quick_junit::Report::new(name.as_str());
    all.set_time(time);
    all.add_test_suite(suite);
    // The common schema has no such attribute for all suites together, only for each.
    let xml = all.to_string().unwrap_or_default();
    xml.replacen(&skipped, "", 1)
}

/// The run itself, if it failed as a whole.
fn whole_case(report: &Report) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    let why = report.broken.clone();
    let why = why.unwrap_or_else(|| format!("{}: see report.md", report.title()));
    status.set_message(writable(&why)).set_type("run");
    let mut case = TestCase::new("ccb-fanout", status);
    case.set_classname(writable(&report.name));
    case
}

fn test_case(report: &Report, task: &TaskReport) -> TestCase {
    let kind = task.outcome.kind();
    let mut status = status(&task.outcome);
    if !task.outcome.is_success() {
        status.set_message(writable(&task.words()));
    }
    if let TestCaseStatus::NonSuccess { .. } = status {
        let tail = task.check.as_ref().map(|check| writable(&check.tail));
        status
            .set_type(kind)
            .set_description(tail.unwrap_or_default());
    }
    let mut case = TestCase::new(writable(&task.id), status);
    case.set_classname(writable(task.group.as_deref().unwrap_or(&report.name)));
    case.set_time(Duration::from_millis(task.duration_ms));
    // The common schema has no place for properties of a case.
    let mut said = format!(
        "{}\noutcome: {kind}\nattempts: {}\ncost: {:.4} USD, {} tokens\nkey: {}\n",
        task.subject, task.attempts, task.cost.usd, task.cost.tokens, task.key
    );
    let flaky = task.check.as_ref().and_then(|check| check.flaky.as_ref());
    if let Some(flaky) = flaky.filter(|_| task.is_flaky()) {
        said.push_str(&format!("flaky: {flaky}\n"));
    }
    if let Some(commit) = task.outcome.commit() {
        said.push_str(&format!("commit: {commit}\n"));
    }
    case.set_system_out(writable(&said));
    case
}

fn status(outcome: &Outcome) -> TestCaseStatus {
    match outcome {
        outcome if outcome.is_success() => TestCaseStatus::success(),
        Outcome::Skipped { .. } => TestCaseStatus::skipped(),
        Outcome::Failed { .. }
        | Outcome::VerifyFailed { .. }
        | Outcome::OutOfBounds { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Conflict { .. } => TestCaseStatus::non_success(NonSuccessKind::Failure),
        _ => TestCaseStatus::non_success(NonSuccessKind::Error),
    }
}

/// Text with a replacement mark for every character that XML cannot write. The library would leave
/// them out, and with an escape character also the text after it.
fn writable(text: &str) -> String {
    text.replace(
        |c| matches!(c, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}'),
        "\u{fffd}",
    )
}
