//! Fuzz targets: plans, the findings of other tools, and reports; see [`store::fuzz`].

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use roxmltree::Document;

use super::error::FanoutError;
use super::expand::{Basis, expand};
use super::findings;
use super::items::{self, Item, Source};
use super::junit::junit;
use super::manifest::Manifest;
use super::markdown::markdown;
use super::paths::Checkout;
use super::read::PlanFile;
use super::report::Report;
use super::sarif::sarif;
use super::task::PlannedTask;
use super::template;
use super::whole_check::failures_in;

/// Inputs that are all the same.
struct Given<'a> {
    bytes: &'a [u8],
    checkout: Checkout,
}

impl Source for Given<'_> {
    fn files(&self, globs: &[String], _: &[String]) -> Result<Vec<PathBuf>, FanoutError> {
        let globs = globs.iter().filter(|glob| !glob.contains('*'));
        Ok(globs.map(PathBuf::from).collect())
    }

    fn read(&self, _: &str) -> Result<Vec<u8>, FanoutError> {
        Ok(self.bytes.to_owned())
    }

    fn contents(&self) -> Result<Vec<(String, String)>, FanoutError> {
        Ok(vec![("src/a.rs".to_owned(), "100644 blob 0".to_owned())])
    }

    fn checkout(&self) -> &Checkout {
        &self.checkout
    }
}

fn checkout() -> Checkout {
    let top = Path::new("/nonexistent/checkout");
    Checkout::new(top, top)
}

/// A plan, and after a NUL byte the content of its inputs.
pub fn plan(data: &[u8]) {
    let end = data
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(data.len());
    let (text, inputs) = data.split_at(end);
    let text = String::from_utf8_lossy(text);
    let source = Given {
        bytes: inputs.get(1..).unwrap_or_default(),
        checkout: checkout(),
    };
    for name in ["plan.yaml", "plan.json"] {
        let file = match PlanFile::read(name, &text) {
            Ok(file) => file,
            Err(error) => {
                readable(&error, data.len());
                continue;
            }
        };
        let basis = Basis {
            base: "0".repeat(40),
            allow_empty: true,
            ..Basis::default()
        };
        match expand(&file, &source, &basis) {
            Ok(expanded) => {
                tasks(&expanded.tasks);
                let again = expand(&file, &source, &basis).ok();
                assert_eq!(again, Some(expanded), "another time, other tasks");
            }
            Err(error) => readable(&error, data.len()),
        }
    }
}

fn readable(error: &FanoutError, length: usize) {
    let words = error.to_string();
    assert!(words.len() <= 64 * length + 4096, "{} bytes", words.len());
}

fn tasks(tasks: &[PlannedTask]) {
    let ids: BTreeSet<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids.len(), tasks.len(), "two tasks have one id");
    for task in tasks {
        let known = |on: &String| ids.contains(on.as_str());
        assert!(task.depends_on.iter().all(known), "{:?}", task.depends_on);
    }
}

/// Findings of linters, tests and other tools. The first byte selects the format.
pub fn findings(data: &[u8]) {
    let Some((form, data)) = data.split_first() else {
        return;
    };
    let checkout = checkout();
    let found = match form % 4 {
        0 => findings::sarif("in", data, &checkout),
        1 => items::junit("in", data, &checkout),
        2 => items::jsonl("in", data, &checkout),
        _ => items::lines("in", data, &checkout),
    };
    drop(failures_in(data));
    match found {
        Ok(items) => items.iter().for_each(finding),
        Err(error) => readable(&error, data.len()),
    }
    let text = String::from_utf8_lossy(data);
    if let Ok(path) = checkout.relative(&text) {
        stays_inside(&path);
    }
}

fn finding(item: &Item) {
    let file = item
        .origin
        .as_ref()
        .and_then(|origin| origin.file.as_deref());
    if let (Some(file), None) = (file, &item.outside) {
        stays_inside(file);
    }
    if let Some(origin) = &item.origin {
        assert!(origin.line_of_text().len() <= 4096 + 8 * size(item));
    }
    // Every value is one word of a command, whatever it contains.
    for name in item.values.keys() {
        let Ok(command) = template::command(&format!("run {{{{{name}}}}}"), &item.values) else {
            continue;
        };
        let word = command.strip_prefix("run ").unwrap_or_default();
        assert!(is_one_word(word), "{command}");
    }
}

fn size(item: &Item) -> usize {
    item.values.values().map(String::len).sum()
}

fn stays_inside(file: &str) {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    assert!(
        Path::new(file).components().all(plain),
        "{file:?} leads out"
    );
}

/// True if a shell takes this for one quoted word.
fn is_one_word(word: &str) -> bool {
    let mut inside = false;
    let mut letters = word.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => inside = !inside,
            '\\' if !inside => drop(letters.next()),
            _ if !inside => return false,
            _ => {}
        }
    }
    !inside && !word.is_empty()
}

/// A report of this or another machine, and its other forms.
pub fn report(data: &[u8]) {
    drop(serde_json::from_slice::<Manifest>(data));
    let Ok(mut report) = serde_json::from_slice::<Report>(data) else {
        return;
    };
    report.judge();
    let xml = junit(&report);
    let read = Document::parse(&xml);
    assert!(read.is_ok(), "{read:?}");
    assert!(sarif(&report).is_object());
    let text = markdown(&report);
    assert!(text.len() <= 64 * data.len() + 64 * 1024);
    let json = serde_json::to_vec(&report).unwrap_or_default();
    let again = serde_json::from_slice::<Report>(&json);
    assert!(again.is_ok(), "{again:?}");
    drop((report.counts_text(), report.done_text(), report.cost()));
}
