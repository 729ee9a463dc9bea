//! From the text of a plan to a [`Plan`], with mistakes that name their line.

use serde_json::error::Category;

use super::error::FanoutError;
use super::plan::{PLAN_VERSION, Plan};

/// A plan and the text it was read from.
#[derive(Debug, Clone)]
pub struct PlanFile {
    /// What it says.
    pub plan: Plan,
    /// What it is called in messages.
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
                file.line_with("v", &v.to_string(), 0),
                format!("it has format version {v}, this ccb knows {PLAN_VERSION}"),
                Some("upgrade ccb".into()),
            )),
            _ => Ok(file),
        }
    }

    /// A mistake at the line that says `key: value`, the `nth` of them.
    pub(super) fn wrong(&self, key: &str, value: &str, nth: usize, why: String) -> FanoutError {
        self.wrong_at(self.line_with(key, value, nth), why, None)
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

    /// The line on which `key` has this value, or a list with it.
    pub(super) fn line_with(&self, key: &str, value: &str, nth: usize) -> Option<usize> {
        let strip = |text: &str| {
            text.trim()
                .trim_matches(['"', '\'', ',', '{', '}'])
                .to_owned()
        };
        let says = |line: &str| {
            let line = line
                .trim_start()
                .trim_start_matches("- ")
                .trim_start_matches(['{', ' ']);
            let Some((before, after)) = line.split_once(':') else {
                return false;
            };
            let after = after.split(" #").next().unwrap_or(after);
            let is_key = strip(before) == key;
            let mut values = after.trim().trim_matches(['[', ']']).split(',').map(strip);
            is_key && values.any(|one| one == value)
        };
        let mut lines = self.text.lines().enumerate().filter(|(_, line)| says(line));
        lines.nth(nth).map(|(at, _)| at + 1)
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
        let words = whole.lines().next().unwrap_or(&whole);
        let words = words
            .rsplit_once(" at line ")
            .map_or(words, |(words, _)| words);
        Mistake {
            line: line.filter(|line| *line > 0),
            why: words.to_owned(),
            hint: None,
        }
    })
}

fn json(text: &str) -> Result<Plan, Mistake> {
    serde_json::from_str::<Plan>(text).map_err(|error| {
        let (line, whole) = (Some(error.line()), error.to_string());
        if let Some((_, rest)) = whole.split_once("unknown field `") {
            let mut quoted = rest.split('`');
            let key = quoted.next().unwrap_or_default();
            let known: Vec<&str> = quoted.skip(1).step_by(2).collect();
            return unknown_key(line, key, &known);
        }
        let words = whole
            .rsplit_once(" at line ")
            .map_or(whole.as_str(), |(words, _)| words);
        let why = match error.classify() {
            Category::Data => words.to_owned(),
            _ => format!("it is not JSON: {words}"),
        };
        Mistake {
            line,
            why,
            hint: None,
        }
    })
}

/// An unknown key is told together with the nearest right one.
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
