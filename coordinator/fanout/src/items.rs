//! The things a `foreach` makes tasks of.

use std::path::PathBuf;

use roxmltree::{Document, Node, ParsingOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::FanoutError;
use super::paths::Checkout;
use super::template::Values;

/// The source of a plan's inputs.
pub trait Source {
    /// The files of the base commit that match, in order.
    fn files(&self, globs: &[String], except: &[String]) -> Result<Vec<PathBuf>, FanoutError>;
    /// The content of this file; `-` is standard input.
    fn read(&self, name: &str) -> Result<Vec<u8>, FanoutError>;
    /// Every file of the base commit, with git's name of its content, in order.
    fn contents(&self) -> Result<Vec<(String, String)>, FanoutError>;
    /// The checkout that paths in inputs mean.
    fn checkout(&self) -> &Checkout;
}

/// The place and the text of a finding, for reports and annotations.
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
    /// The tool that found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The description of the rule, in its tool's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_text: Option<String>,
    /// The address of the rule's documentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_uri: Option<String>,
}

impl Origin {
    /// In one line, as compilers write it: `path:line:column: rule message`.
    pub(super) fn line_of_text(&self) -> String {
        let mut text = String::new();
        if let Some(file) = &self.file {
            text.push_str(file);
            for number in [self.line, self.column].into_iter().map_while(|n| n) {
                text.push_str(&format!(":{number}"));
            }
            text.push_str(": ");
        }
        let said = [self.rule.as_deref(), self.message.as_deref()];
        let said: Vec<&str> = said.into_iter().flatten().collect();
        text.push_str(&said.join(" "));
        text
    }
}

/// One thing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Item {
    /// The name, for its task's id and subject.
    pub(super) label: String,
    /// The values for templates.
    pub(super) values: Values,
    pub(super) origin: Option<Origin>,
    /// The reason why its file cannot be used: the file, and the problem.
    pub(super) outside: Option<String>,
    /// The files that its task will change.
    pub(super) paths: Vec<String>,
    /// For a group: the value it is grouped by, and the common content.
    pub(super) group: Option<(String, String)>,
    pub(super) members: Vec<Self>,
}

impl Item {
    /// `path` from the top of the repository; a path outside is recorded.
    pub(super) fn inside(&mut self, path: &str, relative: Result<String, String>) -> String {
        relative.unwrap_or_else(|why| {
            self.outside = Some(format!("{path:?} {why}"));
            path.to_owned()
        })
    }
}

pub(super) fn wrong(what: &str, why: impl Into<String>) -> FanoutError {
    FanoutError::Input {
        what: what.to_owned(),
        why: why.into(),
    }
}

pub(super) fn item(label: &str, values: impl IntoIterator<Item = (&'static str, String)>) -> Item {
    let values = values
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    Item {
        label: label.to_owned(),
        values: values.collect(),
        ..Item::default()
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

pub(super) fn as_text<'a>(what: &str, bytes: &'a [u8]) -> Result<&'a str, FanoutError> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong(what, "it is not valid UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Lines that are not empty.
pub(super) fn lines(
    what: &str,
    bytes: &[u8],
    checkout: &Checkout,
) -> Result<Vec<Item>, FanoutError> {
    let lines = as_text(what, bytes)?.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty());
    let one = |line: &str| {
        let is_path = line.starts_with('/') || line.starts_with("file:");
        // A line can be anything; it must name a file in here only if it is one of the task's
        // `paths`.
        let relative = checkout.relative(line).ok().filter(|_| is_path);
        let line = relative.unwrap_or_else(|| checkout.without_top(line));
        item(&line, [("line", line.clone())])
    };
    Ok(lines.map(one).collect())
}

/// A JSON object on each line that is not empty.
pub(super) fn jsonl(
    what: &str,
    bytes: &[u8],
    checkout: &Checkout,
) -> Result<Vec<Item>, FanoutError> {
    let mut items = Vec::new();
    for (number, line) in as_text(what, bytes)?.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("{what}:{}", number + 1);
        let mut value: Value =
            serde_json::from_str(line).map_err(|error| wrong(&place, error.to_string()))?;
        let Value::Object(_) = &value else {
            return Err(wrong(&place, "a line must be a JSON object"));
        };
        let mut one = Item::default();
        stay_inside(&mut value, "", checkout, &mut one);
        let label = ["id", "name", "path", "file", "title", "subject"]
            .iter()
            .find_map(|key| value.get(key).and_then(Value::as_str));
        one.label = label.unwrap_or("item").to_owned();
        one.values.insert("json".into(), value.to_string());
        flatten("", &value, &mut one.values);
        let file = ["path", "file"]
            .iter()
            .find_map(|key| value.get(key).and_then(Value::as_str));
        one.origin = file.filter(|file| !file.is_empty()).map(|file| Origin {
            file: Some(file.to_owned()),
            line: value.get("line").and_then(Value::as_u64),
            ..Origin::default()
        });
        items.push(one);
    }
    Ok(items)
}

/// Makes files relative to the repository: the values `path` and `file`, and paths in texts.
fn stay_inside(value: &mut Value, key: &str, checkout: &Checkout, item: &mut Item) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                stay_inside(value, key, checkout, item);
            }
        }
        Value::Array(list) => {
            for value in list {
                stay_inside(value, key, checkout, item);
            }
        }
        Value::String(text) if matches!(key, "path" | "file") && !text.is_empty() => {
            *text = item.inside(text, checkout.relative(text));
        }
        Value::String(text) => *text = checkout.without_top(text),
        _ => {}
    }
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
pub(super) fn junit(
    what: &str,
    bytes: &[u8],
    checkout: &Checkout,
) -> Result<Vec<Item>, FanoutError> {
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
    Ok(cases
        .filter_map(|case| failed_case(case, checkout))
        .collect())
}

fn failed_case(case: Node<'_, '_>, checkout: &Checkout) -> Option<Item> {
    let is_failure = |node: &Node<'_, '_>| matches!(node.tag_name().name(), "failure" | "error");
    let failure = case.children().find(is_failure)?;
    let of = |name: &str| case.attribute(name).unwrap_or_default().to_owned();
    let suite = case.ancestors().find(|node| node.has_tag_name("testsuite"));
    let suite_says = |name: &str| {
        suite
            .and_then(|suite| suite.attribute(name))
            .unwrap_or_default()
    };
    let text = checkout.without_top(failure.text().unwrap_or_default().trim());
    let message = failure.attribute("message").unwrap_or_default().trim();
    let message = match message {
        "" => text.lines().next().unwrap_or_default().to_owned(),
        message => checkout.without_top(message),
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
    let mut one = Item::default();
    let file = match file.as_str() {
        "" => file,
        given => one.inside(given, checkout.relative(given)),
    };
    // pytest counts lines from 0.
    let first = u64::from(suite_says("name") == "pytest");
    let line = of("line").parse::<u64>().ok().map(|line| line + first);
    one.origin = Some(Origin {
        file: Some(file.clone()).filter(|file| !file.is_empty()),
        line,
        rule: Some(full.clone()),
        level: Some("error".into()),
        tool: Some("junit".into()),
        message: Some(message.clone()),
        ..Origin::default()
    });
    let values = item(
        &full,
        [
            ("name", name),
            ("classname", class),
            ("test", full.clone()),
            ("suite", suite_says("name").to_owned()),
            ("kind", failure.tag_name().name().to_owned()),
            ("message", message),
            ("text", text),
            ("file", file),
            (
                "line",
                line.map_or_else(|| of("line"), |line| line.to_string()),
            ),
        ],
    );
    Some(Item {
        label: values.label,
        values: values.values,
        ..one
    })
}
