//! The things one `foreach` makes tasks of: found, kept inside the repository, grouped.

use std::collections::BTreeMap;

use super::error::FanoutError;
use super::findings;
use super::items::{self, Item, Origin, Source};
use super::lines::Step;
use super::paths::Checkout;
use super::plan::{Foreach, Outside};
use super::read::PlanFile;
use super::task::sha256;
use super::template::{self, Values, Wrong};

/// Maximum number of unusable things that a message names.
const SHOWN: usize = 5;
/// The keys that give the list of things.
const SOURCES: [&str; 5] = ["files", "lines", "jsonl", "junit", "sarif"];

/// Reads the things in a tool's report: its name, its content, and the checkout it is about.
type Reader = fn(&str, &[u8], &Checkout) -> Result<Vec<Item>, FanoutError>;

/// One `foreach` of a plan, and the source of its inputs.
pub(super) struct Loop<'a> {
    pub(super) file: &'a PlanFile,
    /// Its place among all of them, from 0.
    pub(super) at: usize,
    pub(super) foreach: &'a Foreach,
    pub(super) source: &'a dyn Source,
}

/// Things, and notes about the others.
#[derive(Debug, Default)]
pub(super) struct Things {
    pub(super) items: Vec<Item>,
    /// A description of the search, for a message that nothing was found.
    pub(super) what: String,
    /// Notes for every reader.
    pub(super) notes: Vec<String>,
}

impl Loop<'_> {
    /// The name in messages.
    pub(super) fn name(&self) -> String {
        match &self.foreach.id {
            Some(id) => format!("foreach {id:?}"),
            None => format!("foreach number {}", self.at + 1),
        }
    }

    fn steps<'s>(&self, key: &'s str) -> [Step<'s>; 3] {
        [Step::Key("foreach"), Step::At(self.at), Step::Key(key)]
    }

    /// A mistake in its value under `key`.
    pub(super) fn wrong(&self, key: &str, why: &str) -> FanoutError {
        let why = format!("{}{why}", self.name());
        self.file.wrong(&self.steps(key), why)
    }

    /// All tasks' things; `first` is the number of the first one.
    pub(super) fn things(&self, first: usize) -> Result<Things, FanoutError> {
        let (mut found, what) = self.find()?;
        let mut notes = Vec::new();
        for (at, item) in found.iter_mut().enumerate() {
            let index = (first + at).to_string();
            item.values.insert("index".into(), index);
            self.fill_paths(item)?;
        }
        let all = found.len();
        let (outside, inside): (Vec<Item>, Vec<Item>) =
            found.into_iter().partition(|item| item.outside.is_some());
        notes.extend(self.left_out(&outside, all)?);
        let items = match &self.foreach.group_by {
            None => inside,
            Some(by) => grouped(inside, by).map_err(|wrong| {
                let line = self.file.line(&self.steps("groupBy"));
                let why = format!("{}, groupBy: {}", self.name(), wrong.why);
                self.file.wrong_at(line, why, wrong.hint)
            })?,
        };
        Ok(Things { items, what, notes })
    }

    /// Fills in the files that its template's task will change.
    fn fill_paths(&self, item: &mut Item) -> Result<(), FanoutError> {
        let checkout = self.source.checkout();
        for path in &self.foreach.task.paths.0 {
            let filled = template::text(path, &item.values).map_err(|wrong| {
                let [foreach, at, _] = self.steps("");
                let steps = [foreach, at, Step::Key("task"), Step::Key("paths")];
                let why = format!("{}, paths: {}", self.name(), wrong.why);
                self.file.wrong_at(self.file.line(&steps), why, wrong.hint)
            })?;
            match own_path(&filled, checkout) {
                Ok(path) => item.paths.extend(path),
                Err(why) => item.outside = Some(format!("{filled:?} {why}")),
            }
        }
        Ok(())
    }

    /// Reports the unusable things, as a note or as an error.
    fn left_out(&self, outside: &[Item], all: usize) -> Result<Option<String>, FanoutError> {
        if outside.is_empty() {
            return Ok(None);
        }
        let said = outside.iter().take(SHOWN).map(|item| {
            let of = item.origin.as_ref();
            let rule = of.and_then(|origin| origin.rule.as_deref());
            let named = rule.map(|rule| format!("{rule}: ")).unwrap_or_default();
            format!("{named}{}", item.outside.as_deref().unwrap_or_default())
        });
        let mut said: Vec<String> = said.collect();
        if outside.len() > SHOWN {
            said.push(format!("and {} more", outside.len() - SHOWN));
        }
        let (count, said) = (outside.len(), said.join("; "));
        let name = self.name();
        if self.foreach.outside == Some(Outside::Skip) {
            let note = format!("{name}: {count} of {all} items were left out: {said}");
            return Ok(Some(note));
        }
        Err(FanoutError::Outside {
            place: self.file.place(&self.steps(self.source_key())),
            why: format!("{name}: {count} of {all} items cannot be used: {said}"),
        })
    }

    fn given(&self) -> Vec<&'static str> {
        let foreach = self.foreach;
        let given = [
            foreach.files.is_some(),
            foreach.lines.is_some(),
            foreach.jsonl.is_some(),
            foreach.junit.is_some(),
            foreach.sarif.is_some(),
        ];
        let both = SOURCES.into_iter().zip(given);
        both.filter(|(_, given)| *given)
            .map(|(key, _)| key)
            .collect()
    }

    fn source_key(&self) -> &'static str {
        self.given().first().copied().unwrap_or("task")
    }

    /// Its things, and a description of the search.
    fn find(&self) -> Result<(Vec<Item>, String), FanoutError> {
        let (foreach, name, checkout) = (self.foreach, self.name(), self.source.checkout());
        let given = self.given();
        if given.len() != 1 {
            let key = given.get(1).copied().unwrap_or("task");
            let has = match given.len() {
                0 => String::new(),
                _ => format!("; it has {}", given.join(" and ")),
            };
            let why = format!(" needs exactly one of {}{has}", SOURCES.join(", "));
            return Err(self.wrong(key, &why));
        }
        if !foreach.exclude.0.is_empty() && foreach.files.is_none() {
            return Err(self.wrong("exclude", ": `exclude` goes with `files` only"));
        }
        if let Some(globs) = &foreach.files {
            for (key, globs) in [("files", globs), ("exclude", &foreach.exclude)] {
                self.check_globs(key, &globs.0)?;
            }
            let mut paths = self.source.files(&globs.0, &foreach.exclude.0)?;
            paths.sort();
            paths.dedup();
            let what = format!(
                "{name}: no file of the base commit matches {}",
                globs.0.join(", ")
            );
            return Ok((items::files(paths)?, what));
        }
        if let Some(lines) = &foreach.lines {
            let found = items::lines(shown(lines), &self.read(lines)?, checkout)?;
            return Ok((found, format!("{name}: {} has no line", shown(lines))));
        }
        if let Some(lines) = &foreach.jsonl {
            let found = items::jsonl(shown(lines), &self.read(lines)?, checkout)?;
            return Ok((found, format!("{name}: {} has no line", shown(lines))));
        }
        if let Some(names) = &foreach.junit {
            let what = format!("{name}: no test failed in {}", names.0.join(", "));
            return Ok((self.reports(&names.0, items::junit)?, what));
        }
        let names = foreach.sarif.clone().unwrap_or_default();
        let what = format!("{name}: there is no finding in {}", names.0.join(", "));
        Ok((self.reports(&names.0, findings::sarif)?, what))
    }

    fn reports(&self, names: &[String], read: Reader) -> Result<Vec<Item>, FanoutError> {
        let mut all = Vec::new();
        for name in names {
            let bytes = self.read(name)?;
            all.extend(read(shown(name), &bytes, self.source.checkout())?);
        }
        Ok(all)
    }

    /// One of its inputs; an error names the `foreach` that needs it.
    fn read(&self, name: &str) -> Result<Vec<u8>, FanoutError> {
        self.source.read(name).map_err(|error| match error {
            FanoutError::Input { what, why } => FanoutError::Input {
                what: format!(
                    "{}: {}: {what}",
                    self.file.place(&self.steps(self.source_key())),
                    self.name()
                ),
                why,
            },
            other => other,
        })
    }

    /// A pattern that git would match with nothing is a mistake, not an empty answer.
    fn check_globs(&self, key: &str, globs: &[String]) -> Result<(), FanoutError> {
        if key == "files" && globs.is_empty() {
            return Err(self.wrong(key, ", files: there is no pattern"));
        }
        for (at, glob) in globs.iter().enumerate() {
            let Some((why, hint)) = bad_glob(glob) else {
                continue;
            };
            let [foreach, place, key_step] = self.steps(key);
            let line = self.file.line(&[foreach, place, key_step, Step::At(at)]);
            let why = format!("{}, {key}: the pattern {glob:?} {why}", self.name());
            return Err(self.file.wrong_at(line, why, Some(hint.to_owned())));
        }
        Ok(())
    }
}

/// The problem in a pattern, and a correction.
fn bad_glob(glob: &str) -> Option<(&'static str, &'static str)> {
    if glob.trim().is_empty() {
        return Some(("is empty", "`**` means every file"));
    }
    if glob.starts_with('/') || glob.split('/').any(|part| part == "..") {
        return Some((
            "leads out of the repository",
            "patterns start at the top of the repository",
        ));
    }
    let mut escaped = false;
    let mut open = false;
    // A `]` right after the bracket is one of the characters.
    let mut first = false;
    for c in glob.chars() {
        match c {
            _ if std::mem::take(&mut escaped) => first = false,
            '\\' => escaped = true,
            '[' if !open => (open, first) = (true, true),
            '!' | '^' if open && first => {}
            ']' if open && !first => open = false,
            '{' if !open => {
                let hint = "write a list with one pattern for each";
                return Some(("has braces, which mean nothing in it", hint));
            }
            _ => first = false,
        }
    }
    match (open, escaped) {
        (true, _) => Some(("has a \"[\" without its \"]\"", "write \\[ for a bracket")),
        (_, true) => Some(("ends with a backslash", "write \\\\ for a backslash")),
        _ => None,
    }
}

/// One of a task's `paths` from the top of the repository; an empty one is none.
pub(super) fn own_path(given: &str, checkout: &Checkout) -> Result<Option<String>, String> {
    let given = given.trim();
    if given.is_empty() {
        return Ok(None);
    }
    let mut path = checkout.relative(given)?;
    if given.ends_with('/') && path != "." {
        path.push('/');
    }
    Ok(Some(path))
}

pub(super) fn shown(name: &str) -> &str {
    if name == "-" { "standard input" } else { name }
}

impl Item {
    /// Distinguishes it from other things. A group is identified by its common value, whatever its
    /// things are.
    pub(super) fn print(&self) -> String {
        let content = match &self.group {
            Some((by, value)) => serde_json::json!(["group", by, value]),
            None => {
                let mut values: Values = self.values.clone();
                values.remove("index");
                serde_json::json!([self.label, values])
            }
        };
        sha256(content.to_string().as_bytes())
    }

    /// Its findings, one line each.
    pub(super) fn findings(&self) -> String {
        let line = |item: &Self| match &item.origin {
            Some(origin) if origin.message.is_some() => origin.line_of_text(),
            _ => item.label.clone(),
        };
        match self.members.as_slice() {
            [] => line(self),
            members => members.iter().map(line).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// One thing for all of `items` with the same `by`, in the order of their first ones.
fn grouped(items: Vec<Item>, by: &str) -> Result<Vec<Item>, Wrong> {
    let expression = match by.contains("{{") {
        true => by.to_owned(),
        false => format!("{{{{{by}}}}}"),
    };
    let mut order: Vec<String> = Vec::new();
    let mut groups: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for item in items {
        let value = template::text(&expression, &item.values)?;
        if !groups.contains_key(&value) {
            order.push(value.clone());
        }
        groups.entry(value).or_default().push(item);
    }
    let group = |value: String| {
        let members = groups.remove(&value).unwrap_or_default();
        together(by, value, members)
    };
    Ok(order.into_iter().map(group).collect())
}

fn together(by: &str, value: String, members: Vec<Item>) -> Item {
    let mut values = Values::new();
    let names = members.iter().flat_map(|item| item.values.keys());
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        let all = members.iter().filter_map(|item| item.values.get(name));
        let mut different: Vec<&str> = Vec::new();
        for one in all {
            if !different.contains(&one.as_str()) {
                different.push(one);
            }
        }
        values.insert(name.clone(), different.join(","));
    }
    if let Some(first) = members.first().and_then(|item| item.values.get("index")) {
        values.insert("index".into(), first.clone());
    }
    let mut paths: Vec<String> = Vec::new();
    for path in members.iter().flat_map(|item| &item.paths) {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    let label = match value.as_str() {
        "" => "rest".to_owned(),
        value => value.to_owned(),
    };
    Item {
        label,
        values,
        paths,
        origin: members.first().and_then(|item| item.origin.clone()),
        group: Some((by.to_owned(), value)),
        members,
        ..Item::default()
    }
}

/// The places of a group's findings, where there are several.
pub(super) fn origins(item: &Item) -> Vec<Origin> {
    match item.members.as_slice() {
        [] | [_] => Vec::new(),
        several => several
            .iter()
            .filter_map(|item| item.origin.clone())
            .collect(),
    }
}
