//! From the text of a plan to a [`Plan`], with mistakes that name their line.

use serde_json::error::Category;

use super::error::FanoutError;
use super::lines::{Lines, Step};
use super::plan::{PLAN_VERSION, Plan};

/// A plan and the text it was read from.
#[derive(Debug, Clone)]
pub struct PlanFile {
    /// The parsed plan.
    pub plan: Plan,
    /// The name in messages.
    pub name: String,
    /// For finding lines.
    text: String,
}

impl PlanFile {
    /// Reads a plan; `name` is what messages call it, and one that ends in `.json` is JSON.
    pub fn read(name: &str, text: &str) -> Result<Self, FanoutError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let is_json = name.ends_with(".json") || text.trim_start().starts_with('{');
        let read = if is_json { json(text) } else { yaml(text) };
        let plan = read.map_err(|mistake| FanoutError::Plan {
            place: place(name, mistake.line),
            why: mistake.why,
            hint: mistake.hint,
        })?;
        let file = Self {
            plan,
            name: name.to_owned(),
            text: text.to_owned(),
        };
        match file.plan.v {
            Some(v) if v > PLAN_VERSION => Err(file.wrong_at(
                file.line(&[Step::Key("v")]),
                format!("it has format version {v}, this ccb knows {PLAN_VERSION}"),
                Some("upgrade ccb".into()),
            )),
            _ => Ok(file),
        }
    }

    /// A mistake in the value that these steps lead to.
    pub(super) fn wrong(&self, at: &[Step<'_>], why: String) -> FanoutError {
        self.wrong_at(self.line(at), why, None)
    }

    pub(super) fn wrong_at(
        &self,
        line: Option<usize>,
        why: String,
        hint: Option<String>,
    ) -> FanoutError {
        FanoutError::Plan {
            place: place(&self.name, line),
            why,
            hint,
        }
    }

    /// The line of the value that these steps lead to, or of the nearest one above it.
    pub(super) fn line(&self, at: &[Step<'_>]) -> Option<usize> {
        // Only an error needs it, so the text is read again.
        Lines::of(&self.text).find(at)
    }

    /// The line of exactly the value that these steps lead to.
    pub(super) fn exact_line(&self, at: &[Step<'_>]) -> Option<usize> {
        Lines::of(&self.text).exact(at)
    }

    /// The plan's name with that line.
    pub(super) fn place(&self, at: &[Step<'_>]) -> String {
        place(&self.name, self.line(at))
    }
}

fn place(name: &str, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("{name}:{line}"),
        None => name.to_owned(),
    }
}

struct Mistake {
    line: Option<usize>,
    why: String,
    hint: Option<String>,
}

fn yaml(text: &str) -> Result<Plan, Mistake> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        // Aliases of aliases of aliases must not multiply without a limit.
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_alias_expansions_per_anchor: 10_000,
        },
    };
    if text.trim().is_empty() {
        return Ok(Plan::default());
    }
    serde_saphyr::from_str_with_options::<Plan>(text, options).map_err(|error| {
        let line = error.location().map(|place| place.line());
        let line = line.and_then(|line| usize::try_from(line).ok());
        if let serde_saphyr::Error::SerdeUnknownField {
            field, expected, ..
        } = &error
        {
            return unknown_key(line, field, expected);
        }
        let whole = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        Mistake {
            line: line.filter(|line| *line > 0),
            why: plain_words(&without_place(&whole)),
            hint: None,
        }
    })
}

/// A parser's message in the words of a plan's author.
fn plain_words(words: &str) -> String {
    match words {
        "expected mapping start" => "there should be keys and values here, `key: value`".into(),
        "expected sequence start" => "there should be a list here".into(),
        "expected string scalar" => "there should be a single value here".into(),
        "null is not allowed here" => "a value is missing here".into(),
        _ => numbers(words),
    }
}

/// The same for numbers: an author does not know Rust's names for them.
fn numbers(words: &str) -> String {
    for (name, plain) in [
        ("u32", "a whole number"),
        ("u64", "a whole number"),
        ("usize", "a whole number"),
        ("i64", "a whole number"),
        ("f64", "a number"),
    ] {
        if words == format!("invalid {name}") {
            return format!("there should be {plain} here");
        }
        if let Some(before) = words.strip_suffix(&format!("expected {name}")) {
            let from = if name.starts_with('u') {
                " from 0 on"
            } else {
                ""
            };
            return format!("{before}expected {plain}{from}");
        }
    }
    words.to_owned()
}

/// A message in one line, without the place at its end, which ccb writes before it.
fn without_place(whole: &str) -> String {
    let lines: Vec<&str> = whole.lines().map(str::trim).collect();
    let words = lines.join(" ");
    match words.rsplit_once(" at line ") {
        // Not if the text itself contains one.
        Some((before, after)) if is_place(after) => before.to_owned(),
        _ => words,
    }
}

/// `4, column 10` or `4 column 10`, as the parsers write it.
fn is_place(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts = text.split_once(", column ").or(text.split_once(" column "));
    parts.is_some_and(|(line, column)| digits(line) && digits(column))
}

/// JSON is also YAML, and there a number may stand for a text, as the schema says.
fn json(text: &str) -> Result<Plan, Mistake> {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    strict_json(text).or_else(|mistake| match is_json {
        true => yaml(text).map_err(|_| mistake),
        false => Err(mistake),
    })
}

fn strict_json(text: &str) -> Result<Plan, Mistake> {
    serde_json::from_str::<Plan>(text).map_err(|error| {
        let (line, whole) = (Some(error.line()), error.to_string());
        if let Some((_, rest)) = whole.split_once("unknown field `") {
            let mut quoted = rest.split('`');
            let key = quoted.next().unwrap_or_default();
            let known: Vec<&str> = quoted.skip(1).step_by(2).collect();
            return unknown_key(line, key, &known);
        }
        let words = without_place(&whole);
        let why = match error.classify() {
            Category::Data => numbers(&words),
            _ => format!("it is not JSON: {words}"),
        };
        Mistake {
            line,
            why,
            hint: None,
        }
    })
}

/// Reports an unknown key together with the nearest right one.
fn unknown_key(line: Option<usize>, key: &str, known: &[&str]) -> Mistake {
    let hint = store::did_you_mean(
        key,
        known.iter().copied(),
        format!("there are: {}", known.join(", ")),
    );
    Mistake {
        line,
        why: format!("unknown key {key:?}"),
        hint: Some(hint),
    }
}
