//! `results.sarif`: the remaining tasks, for tools that show findings.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::items::Origin;
use super::report::{Report, TaskReport};

/// Maximum characters of a message: viewers show one line of it.
const MESSAGE: usize = 240;

/// Every task that did not succeed, as a SARIF 2.1.0 log.
///
/// A task made from a finding keeps that finding's rule and place; a task made from several has a
/// result for each.
pub fn sarif(report: &Report) -> Value {
    let left = left(report);
    let mut rules: BTreeMap<String, Value> = BTreeMap::new();
    for (task, origin) in &left {
        let id = rule(task, origin);
        rules
            .entry(id)
            .or_insert_with_key(|id| rule_entry(id, task, origin));
    }
    let ids: Vec<&String> = rules.keys().collect();
    let results = left.iter().enumerate().map(|(at, (task, origin))| {
        // The same task several times: tools that compare logs must be able to distinguish the
        // results.
        let before = left[..at].iter().rev();
        let nth = before.take_while(|(other, _)| other.id == task.id);
        result(task, origin, &ids, nth.count())
    });
    let results: Vec<Value> = results.collect();
    let mut driver = json!({
        "name": "ccb",
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": rules.values().collect::<Vec<_>>(),
    });
    let home = env!("CARGO_PKG_REPOSITORY");
    if !home.is_empty() {
        driver["informationUri"] = home.into();
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": driver},
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

/// The remaining tasks, each with the findings to show.
pub(super) fn left(report: &Report) -> Vec<(&TaskReport, Origin)> {
    let failed = report.tasks.iter();
    let failed = failed.filter(|task| !task.outcome.is_success());
    failed
        .flat_map(|task| {
            let origins = match task.findings.is_empty() {
                true => vec![task.origin.clone().unwrap_or_default()],
                false => task.findings.clone(),
            };
            origins.into_iter().map(move |origin| (task, origin))
        })
        .collect()
}

pub(super) fn rule(task: &TaskReport, origin: &Origin) -> String {
    let own = origin.rule.clone();
    own.unwrap_or_else(|| format!("ccb/{}", task.outcome.kind()))
}

/// The description of a rule: from the tool that found it, or from ccb.
fn rule_entry(id: &str, task: &TaskReport, origin: &Origin) -> Value {
    let text = match (&origin.rule_text, &origin.rule, &origin.tool) {
        (Some(text), _, _) => text.clone(),
        (None, Some(rule), Some(tool)) => format!("{rule}, found by {tool}"),
        (None, Some(rule), None) => rule.clone(),
        (None, None, _) => format!("A task of the plan ended so: {}", task.outcome.meaning()),
    };
    let short = short(&text);
    let mut entry = json!({
        "id": id,
        "shortDescription": {"text": short},
        "fullDescription": {"text": text},
        "help": {"text": text},
    });
    if let Some(uri) = &origin.rule_uri {
        entry["helpUri"] = uri.clone().into();
    }
    entry
}

/// The problem, in one line.
pub(super) fn message(task: &TaskReport, origin: &Origin) -> String {
    let words = short(&task.words());
    match &origin.message {
        Some(message) => format!("{} ({}: {words})", short(message), task.id),
        None => format!("{}: {words} ({})", task.id, short(&task.subject)),
    }
}

/// The first line of a text, shortened.
fn short(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
    match first.char_indices().nth(MESSAGE) {
        Some((at, _)) => format!("{}…", &first[..at]),
        None => first.to_owned(),
    }
}

fn result(task: &TaskReport, origin: &Origin, rules: &[&String], nth: usize) -> Value {
    let rule = rule(task, origin);
    let level = origin
        .level
        .as_deref()
        .filter(|level| matches!(*level, "none" | "note" | "warning" | "error"));
    let mut result = Map::new();
    result.insert("ruleId".into(), rule.clone().into());
    if let Some(index) = rules.iter().position(|one| **one == rule) {
        result.insert("ruleIndex".into(), index.into());
    }
    result.insert("level".into(), level.unwrap_or("error").into());
    let text = message(task, origin);
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
    let print = fingerprint(task, nth);
    result.insert("partialFingerprints".into(), json!({"ccbTask/v1": print}));
    result.insert(
        "properties".into(),
        json!({
            "task": task.id, "outcome": task.outcome.kind(), "attempts": task.attempts,
        }),
    );
    Value::Object(result)
}

/// Identifies a finding over several runs.
pub(super) fn fingerprint(task: &TaskReport, nth: usize) -> String {
    match nth {
        0 => task.id.clone(),
        nth => format!("{}#{}", task.id, nth + 1),
    }
}

/// The file the task was to change, if that is one file.
pub(super) fn plain_path(task: &TaskReport) -> Option<&str> {
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
