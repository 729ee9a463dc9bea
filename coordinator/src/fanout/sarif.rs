//! `results.sarif`: what is left to do, for tools that show findings.

use serde_json::{Map, Value, json};

use super::report::{Report, TaskReport};

/// Every task that did not succeed, as a SARIF 2.1.0 log.
///
/// One that was made from a finding keeps that finding's rule and place.
pub fn sarif(report: &Report) -> Value {
    let left: Vec<&TaskReport> = report
        .tasks
        .iter()
        .filter(|task| !task.outcome.is_success())
        .collect();
    let mut rules: Vec<String> = left.iter().map(|task| rule(task)).collect();
    rules.sort();
    rules.dedup();
    let results: Vec<Value> = left.iter().map(|task| result(task, &rules)).collect();
    let rules: Vec<Value> = rules.iter().map(|id| json!({"id": id})).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "ccb",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": report.signal.is_none(),
                "startTimeUtc": report.started_at,
                "endTimeUtc": report.ended_at,
            }],
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the top of the repository"}}},
            "results": results,
        }],
    })
}

fn rule(task: &TaskReport) -> String {
    let own = task.origin.as_ref().and_then(|origin| origin.rule.clone());
    own.unwrap_or_else(|| format!("ccb/{}", task.outcome.kind()))
}

fn result(task: &TaskReport, rules: &[String]) -> Value {
    let rule = rule(task);
    let origin = task.origin.clone().unwrap_or_default();
    let level = origin
        .level
        .as_deref()
        .filter(|level| matches!(*level, "none" | "note" | "warning" | "error"));
    let text = match &origin.message {
        Some(message) => format!("{message} ({}: {})", task.id, task.words()),
        None => format!("{}: {} ({})", task.id, task.words(), task.subject),
    };
    let mut result = Map::new();
    result.insert("ruleId".into(), rule.clone().into());
    if let Some(index) = rules.iter().position(|one| *one == rule) {
        result.insert("ruleIndex".into(), index.into());
    }
    result.insert("level".into(), level.unwrap_or("error").into());
    result.insert("message".into(), json!({"text": text}));
    if let Some(file) = origin.file.as_deref().or(plain_path(task)) {
        let mut place = json!({"artifactLocation": {"uri": uri(file), "uriBaseId": "SRCROOT"}});
        if let Some(line) = origin.line.filter(|line| *line > 0) {
            place["region"] = json!({"startLine": line});
            if let Some(column) = origin.column.filter(|column| *column > 0) {
                place["region"]["startColumn"] = column.into();
            }
        }
        result.insert("locations".into(), json!([{"physicalLocation": place}]));
    }
    result.insert("partialFingerprints".into(), json!({"ccbTask/v1": task.id}));
    result.insert(
        "properties".into(),
        json!({
            "task": task.id, "outcome": task.outcome.kind(), "attempts": task.attempts,
        }),
    );
    Value::Object(result)
}

/// What the task was going to change, if that is one file.
fn plain_path(task: &TaskReport) -> Option<&str> {
    let path = task.paths.first()?;
    let is_plain = !path.contains(['*', '?', '[']) && !path.ends_with('/');
    is_plain.then_some(path.as_str())
}

/// A path as a relative URI.
fn uri(path: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte);
    let mut out = String::with_capacity(path.len());
    for byte in path.trim_start_matches("./").bytes() {
        if keep(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
