//! The things a `foreach` makes tasks of.

use std::path::PathBuf;

use roxmltree::{Document, Node, ParsingOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::FanoutError;
use super::template::Values;

/// Where plans get their inputs from.
pub trait Source {
    /// The files of the base commit that match, in order.
    fn files(&self, globs: &[String], except: &[String]) -> Result<Vec<PathBuf>, FanoutError>;
    /// What is in this file; `-` is standard input.
    fn read(&self, name: &str) -> Result<Vec<u8>, FanoutError>;
}

/// Where a finding is, and what it says: what reports and annotations point at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The file, from the top of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The rule that was broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// error, warning or note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Who found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One thing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Item {
    /// What it is called, for its task's id and subject.
    pub(super) label: String,
    /// What templates can say about it.
    pub(super) values: Values,
    pub(super) origin: Option<Origin>,
}

fn wrong(what: &str, why: impl Into<String>) -> FanoutError {
    FanoutError::Input {
        what: what.to_owned(),
        why: why.into(),
    }
}

fn item(label: &str, values: impl IntoIterator<Item = (&'static str, String)>) -> Item {
    let values = values
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    Item {
        label: label.to_owned(),
        values: values.collect(),
        origin: None,
    }
}

/// Files of the base commit.
pub(super) fn files(paths: Vec<PathBuf>) -> Result<Vec<Item>, FanoutError> {
    let mut items = Vec::new();
    for path in paths {
        let Some(text) = path.to_str() else {
            let why = "the name is not valid UTF-8; leave it out with `exclude`";
            return Err(wrong(&path.to_string_lossy(), why));
        };
        let part = |part: Option<&std::ffi::OsStr>| {
            part.map(|part| part.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let dir = path.parent().map(|dir| dir.to_string_lossy().into_owned());
        let dir = dir
            .filter(|dir| !dir.is_empty())
            .unwrap_or_else(|| ".".into());
        let mut one = item(
            text,
            [
                ("path", text.to_owned()),
                ("dir", dir),
                ("name", part(path.file_name())),
                ("stem", part(path.file_stem())),
                ("ext", part(path.extension())),
            ],
        );
        one.origin = Some(Origin {
            file: Some(text.to_owned()),
            ..Origin::default()
        });
        items.push(one);
    }
    Ok(items)
}

fn as_text<'a>(what: &str, bytes: &'a [u8]) -> Result<&'a str, FanoutError> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong(what, "it is not valid UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Lines that are not empty.
pub(super) fn lines(what: &str, bytes: &[u8]) -> Result<Vec<Item>, FanoutError> {
    let lines = as_text(what, bytes)?.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty());
    Ok(lines
        .map(|line| item(line, [("line", line.to_owned())]))
        .collect())
}

/// A JSON object on each line that is not empty.
pub(super) fn jsonl(what: &str, bytes: &[u8]) -> Result<Vec<Item>, FanoutError> {
    let mut items = Vec::new();
    for (number, line) in as_text(what, bytes)?.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("{what}:{}", number + 1);
        let value: Value =
            serde_json::from_str(line).map_err(|error| wrong(&place, error.to_string()))?;
        let Value::Object(_) = &value else {
            return Err(wrong(&place, "a line must be a JSON object"));
        };
        let label = ["id", "name", "path", "file", "title", "subject"]
            .iter()
            .find_map(|key| value.get(key).and_then(Value::as_str));
        let mut one = item(label.unwrap_or("item"), [("json", value.to_string())]);
        flatten("", &value, &mut one.values);
        items.push(one);
    }
    Ok(items)
}

/// `{"a":{"b":1}}` is known as `a` and as `a.b`.
fn flatten(prefix: &str, value: &Value, into: &mut Values) {
    let Value::Object(map) = value else { return };
    for (key, value) in map {
        let name = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        flatten(&name, value, into);
        into.insert(name, text);
    }
}

/// The tests that failed.
pub(super) fn junit(what: &str, bytes: &[u8]) -> Result<Vec<Item>, FanoutError> {
    let text = as_text(what, bytes)?;
    let options = ParsingOptions {
        // Reports have no need for a DTD, and a DTD is where the bombs are.
        allow_dtd: false,
        nodes_limit: 5_000_000,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| wrong(what, format!("it is not a JUnit report: {error}")))?;
    let root = document.root_element().tag_name().name();
    if !matches!(root, "testsuites" | "testsuite") {
        return Err(wrong(
            what,
            format!("it is not a JUnit report: it begins with <{root}>"),
        ));
    }
    let cases = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"));
    Ok(cases.filter_map(failed_case).collect())
}

fn failed_case(case: Node<'_, '_>) -> Option<Item> {
    let is_failure = |node: &Node<'_, '_>| matches!(node.tag_name().name(), "failure" | "error");
    let failure = case.children().find(is_failure)?;
    let of = |name: &str| case.attribute(name).unwrap_or_default().to_owned();
    let suite = case.ancestors().find(|node| node.has_tag_name("testsuite"));
    let suite_says = |name: &str| {
        suite
            .and_then(|suite| suite.attribute(name))
            .unwrap_or_default()
    };
    let text = failure.text().unwrap_or_default().trim().to_owned();
    let message = failure.attribute("message").unwrap_or_default().trim();
    let message = match message {
        "" => text.lines().next().unwrap_or_default().to_owned(),
        message => message.to_owned(),
    };
    let (name, class) = (of("name"), of("classname"));
    let full = match class.as_str() {
        "" => name.clone(),
        class => format!("{class}::{name}"),
    };
    let file = match of("file") {
        file if file.is_empty() => suite_says("file").to_owned(),
        file => file,
    };
    let line = of("line");
    let mut one = item(
        &full,
        [
            ("name", name),
            ("classname", class),
            ("test", full.clone()),
            ("suite", suite_says("name").to_owned()),
            ("kind", failure.tag_name().name().to_owned()),
            ("message", message.clone()),
            ("text", text),
            ("file", file.clone()),
            ("line", line.clone()),
        ],
    );
    one.origin = Some(Origin {
        file: Some(file).filter(|file| !file.is_empty()),
        line: line.parse().ok(),
        rule: Some(full),
        level: Some("error".into()),
        tool: Some("junit".into()),
        message: Some(message),
        ..Origin::default()
    });
    Some(one)
}

/// The findings of all runs, but those that were suppressed, fixed, or are no problem.
pub(super) fn sarif(what: &str, bytes: &[u8]) -> Result<Vec<Item>, FanoutError> {
    let log: Value = serde_json::from_str(as_text(what, bytes)?)
        .map_err(|error| wrong(what, format!("it is not a SARIF log: {error}")))?;
    let Some(runs) = log.get("runs").and_then(Value::as_array) else {
        return Err(wrong(what, "it is not a SARIF log: it has no \"runs\""));
    };
    match log.get("version").and_then(Value::as_str) {
        Some("2.1.0") => {}
        other => {
            let version = other.unwrap_or("none");
            return Err(wrong(
                what,
                format!("its SARIF version is {version}, known is 2.1.0"),
            ));
        }
    }
    let mut items = Vec::new();
    for run in runs {
        let tool = run.pointer("/tool/driver/name").and_then(Value::as_str);
        let rules = run.pointer("/tool/driver/rules").and_then(Value::as_array);
        let results = run.get("results").and_then(Value::as_array);
        for result in results.into_iter().flatten() {
            items.extend(finding(result, tool.unwrap_or_default(), rules));
        }
    }
    Ok(items)
}

fn finding(result: &Value, tool: &str, rules: Option<&Vec<Value>>) -> Option<Item> {
    let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str);
    let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_u64);
    let is_list = |key: &str| result.get(key).and_then(Value::as_array);
    let suppressed = is_list("suppressions").is_some_and(|list| !list.is_empty());
    let problem = text("/kind").is_none_or(|kind| kind == "fail");
    if suppressed || !problem || text("/baselineState") == Some("absent") {
        return None;
    }
    let by_index = number("/ruleIndex").or_else(|| number("/rule/index"));
    let entry = by_index
        .and_then(|index| rules?.get(usize::try_from(index).ok()?))
        .or_else(|| {
            let id = text("/ruleId")?;
            rules?
                .iter()
                .find(|rule| rule.get("id").and_then(Value::as_str) == Some(id))
        });
    let of_rule = |pointer: &str| entry.and_then(|rule| rule.pointer(pointer)?.as_str());
    let rule = text("/ruleId")
        .or(text("/rule/id"))
        .or(of_rule("/id"))
        .unwrap_or_default();
    let message = text("/message/text").or(text("/message/markdown"));
    let message = message
        .or(of_rule("/shortDescription/text"))
        .unwrap_or_default();
    let level = text("/level")
        .or(of_rule("/defaultConfiguration/level"))
        .unwrap_or("warning");
    let at = "/locations/0/physicalLocation";
    let uri = text(&format!("{at}/artifactLocation/uri")).unwrap_or_default();
    let path = decoded(uri.strip_prefix("file://").unwrap_or(uri));
    let line = number(&format!("{at}/region/startLine"));
    let column = number(&format!("{at}/region/startColumn"));
    let shown = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
    let label = match line {
        Some(line) => format!("{rule}-{path}-{line}"),
        None => format!("{rule}-{path}"),
    };
    let mut one = item(
        &label,
        [
            ("rule", rule.to_owned()),
            ("message", message.to_owned()),
            ("level", level.to_owned()),
            ("tool", tool.to_owned()),
            ("path", path.clone()),
            ("line", shown(line)),
            ("column", shown(column)),
        ],
    );
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    one.origin = Some(Origin {
        file: some(&path),
        line,
        column,
        rule: some(rule),
        level: some(level),
        tool: some(tool),
        message: some(message),
    });
    Some(one)
}

/// A URI's path without its percent signs.
fn decoded(uri: &str) -> String {
    let bytes = uri.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| uri.get(at + 1..at + 3))
            .flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
