//! Types of agents: Markdown files with YAML front matter, a JSON flag, and the built-in ones.
//!
//! Managed > `--agents` > project (the nearest directory first) > user > built in. A file
//! without front matter is not a definition; a bad one is reported and left out, and the rest
//! load. Within one level the first file in the order of paths wins, and the other is reported.
//! Nothing is run or trusted here: [`Source::is_repository`] and [`Definition::runs_code`] say
//! what needs the user's trust before it may run.

mod builtin;
mod definition;
mod error;
mod front_matter;
pub(crate) mod fuzz;
mod json;
mod read;
mod scan;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::{Value, json};

pub use definition::{Definition, Effort, Isolation, McpServer, MemoryScope, PermissionMode};
pub use error::DefinitionError;
pub use source::{Source, Sources};

/// The front matter of a Markdown file and the text after it; `None` if it has no readable one.
pub fn front_matter(text: &str) -> Option<(serde_json::Map<String, Value>, &str)> {
    let document = front_matter::split(text).ok()??;
    Some((document.fields, document.body))
}

/// A definition that was read, also one that another hides.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its definition.
    pub definition: Definition,
    /// The source of the definition.
    pub source: Source,
    /// The sources of the same name it hides, the next best first.
    pub overrides: Vec<Source>,
    /// The one that hides it.
    pub overridden_by: Option<Source>,
}

/// A definition or field that was left out or ignored, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub source: Source,
    /// The line, if there is one to point at.
    pub line: Option<usize>,
    /// The name of the agent, as far as it is known.
    pub name: Option<String>,
    /// The reason.
    pub why: String,
    /// True if only a key is ignored; the definition counts.
    pub ignored_key: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let (None, Some(name)) = (self.source.file(), &self.name) {
            write!(f, ": {name:?}")?;
        }
        write!(f, ": {}", self.why)?;
        if self.ignored_key {
            f.write_str(" (ignored)")?;
        }
        Ok(())
    }
}

impl Problem {
    /// `{"source","file"?,"line"?,"name"?,"why","ignoredKey"?}`.
    pub fn to_json(&self) -> Value {
        let mut value = json!({ "source": self.source.as_str() });
        if let Some(file) = self.source.file() {
            value["file"] = file.to_string_lossy().into();
        }
        if let Some(line) = self.line {
            value["line"] = line.into();
        }
        if let Some(name) = &self.name {
            value["name"] = name.as_str().into();
        }
        value["why"] = self.why.as_str().into();
        if self.ignored_key {
            value["ignoredKey"] = true.into();
        }
        value
    }
}

/// All types of agents there are.
///
/// ```
/// use swarm::definitions::{Definitions, Sources};
///
/// let types = Definitions::load(&Sources {
///     json: Some(r#"{"tester": {"description": "Tests", "prompt": "You test."}}"#.into()),
///     ..Sources::default()
/// });
/// assert_eq!(types.get("tester")?.definition.prompt, "You test.");
/// assert!(types.get("testre").is_err());
/// # Ok::<(), swarm::definitions::DefinitionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Definitions {
    /// All definitions by name, for each name the one that counts first.
    pub found: Vec<Found>,
    /// The definitions and fields that were left out or ignored.
    pub problems: Vec<Problem>,
    deny: Vec<String>,
}

impl Definitions {
    /// Reads all definitions. It cannot fail: files that cannot be read are in `problems`.
    pub fn load(sources: &Sources) -> Self {
        let mut loader = Loader::default();
        if let Some(dir) = &sources.managed {
            loader.directory(dir, Source::Managed);
        }
        if let Some(text) = &sources.json {
            loader.flag(text);
        }
        let user = sources.user.as_deref();
        for dir in &sources.project {
            // A repository that is the user's home has its definitions there already.
            if user.is_none_or(|user| !same(dir, user)) {
                loader.directory(dir, Source::Project);
            }
        }
        if let Some(dir) = user {
            loader.directory(dir, Source::User);
        }
        loader.built_in();
        loader.finish(sources.deny.clone())
    }

    /// The definitions that count, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Found> {
        self.found
            .iter()
            .filter(|found| found.overridden_by.is_none())
    }

    /// The definition that counts for `name`. Names that differ only in case are one name.
    ///
    /// A type that is denied is an error, never another type.
    pub fn get(&self, name: &str) -> Result<&Found, DefinitionError> {
        if self.is_denied(name) {
            return Err(DefinitionError::Denied { name: name.into() });
        }
        let is_it = |found: &&Found| found.definition.name.as_str().eq_ignore_ascii_case(name);
        self.iter().find(is_it).ok_or_else(|| self.unknown(name))
    }

    /// True if `agents.deny` names this type.
    pub fn is_denied(&self, name: &str) -> bool {
        self.deny
            .iter()
            .any(|denied| denied.eq_ignore_ascii_case(name))
    }

    fn unknown(&self, name: &str) -> DefinitionError {
        let named = |problem: &&Problem| {
            let theirs = problem.name.as_deref();
            theirs.is_some_and(|theirs| theirs.eq_ignore_ascii_case(name))
        };
        let known = || self.iter().map(|found| found.definition.name.as_str());
        let lower = name.to_ascii_lowercase();
        let near = known().filter(|one| {
            let one = one.to_ascii_lowercase();
            one.starts_with(&lower) || store::nearest(&lower, [one.as_str()]).is_some()
        });
        DefinitionError::Unknown {
            name: name.into(),
            nearest: near.map(str::to_owned).collect(),
            known: known().map(str::to_owned).collect(),
            problem: self.problems.iter().find(named).cloned().map(Box::new),
        }
    }
}

fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(a) == real(b)
}

/// Collects definitions, from the highest level to the lowest.
#[derive(Default)]
struct Loader {
    /// By lower-case name, the one that counts first.
    found: BTreeMap<String, Vec<Found>>,
    problems: Vec<Problem>,
}

impl Loader {
    fn directory(&mut self, dir: &Path, source: fn(std::path::PathBuf) -> Source) {
        let scan = scan::scan(dir);
        for (path, why) in scan.problems {
            self.problem(source(path), None, None, why);
        }
        let mut level = Vec::new();
        for path in scan.files {
            let read = match scan::read(&path) {
                Ok(text) => read::markdown(&text),
                Err(why) => Err(read::Mistake::whole(why)),
            };
            match read {
                Ok(None) => {}
                Ok(Some(reading)) => self.add(reading, source(path), &mut level),
                Err(mistake) => {
                    let name = mistake.name.or_else(|| {
                        // The best guess at whom the user will miss.
                        let stem = path.file_stem()?.to_str()?;
                        Some(stem.to_owned())
                    });
                    self.problem(source(path), mistake.line, name, mistake.why);
                }
            }
        }
    }

    fn flag(&mut self, text: &str) {
        let mut level = Vec::new();
        match json::entries(text) {
            Err(mistake) => self.problem(Source::Flag, mistake.line, None, mistake.why),
            Ok(entries) => {
                for (name, value) in entries {
                    match read::json(&name, &value) {
                        Ok(reading) => self.add(reading, Source::Flag, &mut level),
                        Err(mistake) => {
                            self.problem(Source::Flag, None, Some(name), mistake.why);
                        }
                    }
                }
            }
        }
    }

    fn built_in(&mut self) {
        let mut level = Vec::new();
        for text in builtin::ALL {
            match read::markdown(text) {
                Ok(Some(reading)) => self.add(reading, Source::BuiltIn, &mut level),
                Ok(None) => {}
                // A test reads them all.
                Err(mistake) => self.problem(Source::BuiltIn, mistake.line, None, mistake.why),
            }
        }
    }

    /// `level` are the names that this level has already.
    fn add(&mut self, reading: read::Reading, source: Source, level: &mut Vec<String>) {
        let definition = reading.definition;
        let key = definition.name.as_str().to_ascii_lowercase();
        let same_name = self.found.entry(key.clone()).or_default();
        if level.contains(&key) {
            let winner = same_name.last().map(|found| found.source.to_string());
            let winner = winner.unwrap_or_default();
            let name = definition.name.to_string();
            let why = format!("{name:?} is defined twice on one level; {winner} counts");
            return self.problem(source, None, Some(name), why);
        }
        level.push(key);
        let name = definition.name.to_string();
        same_name.push(Found {
            definition,
            source: source.clone(),
            overrides: Vec::new(),
            overridden_by: None,
        });
        for ignored in reading.ignored {
            self.problems.push(Problem {
                source: source.clone(),
                line: ignored.line,
                name: Some(name.clone()),
                why: ignored.why,
                ignored_key: true,
            });
        }
    }

    fn problem(&mut self, source: Source, line: Option<usize>, name: Option<String>, why: String) {
        self.problems.push(Problem {
            source,
            line,
            name,
            why,
            ignored_key: false,
        });
    }

    fn finish(self, deny: Vec<String>) -> Definitions {
        let mut all = Vec::new();
        for mut same_name in self.found.into_values() {
            let sources: Vec<Source> = same_name.iter().map(|one| one.source.clone()).collect();
            for (n, found) in same_name.iter_mut().enumerate() {
                found.overrides = sources[n + 1..].to_vec();
                found.overridden_by = (n > 0).then(|| sources[0].clone());
            }
            all.append(&mut same_name);
        }
        Definitions {
            found: all,
            problems: self.problems,
            deny,
        }
    }
}
