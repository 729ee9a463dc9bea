//! The directory a run leaves behind (`ccb-out/`).
//!
//! ```text
//! report.json  report.html  junit.xml  report.md  results.sarif  gl-code-quality-report.json  manifest.json
//! <task>.patch             what it changed, for `git am`
//! transcripts/<task>.jsonl what its agent said and did
//! checks/<task>.log        what its check printed
//! ```
//!
//! The manifest is written last: a directory with a complete one is whole. Secrets are taken
//! out of everything but patches, which would not apply any more; one that seems to hold a
//! secret is reported instead.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use store::atomic::{self, Durability};
use swarm::redact::{Redactor, Secrets};

use super::code_quality::code_quality;
use super::error::FanoutError;
use super::graph::Graph;
use super::junit::junit;
use super::manifest::{Entry, Loaded, MANIFEST, Manifest, PatchEntry, wrong};
use super::markdown::markdown;
use super::report::{Report, TaskReport};
use super::sarif::sarif;

const TMP: &str = ".ccb-tmp";
/// Keeps the results out of the repository they are in. Not in the manifest: those who carry
/// results elsewhere leave such files behind.
const IGNORE: &str = ".gitignore";
const SUBDIRS: [&str; 2] = ["transcripts", "checks"];

/// Makes the page of a report whose other files are in this directory.
pub type PageOf<'a> = &'a dyn Fn(&Report, &Path) -> String;

/// A stored file of a task besides its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The transcript of its agent, as JSON lines.
    Transcript,
    /// The output of its check.
    Check,
}

/// A stored patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPatch {
    /// Its file's name.
    pub file: String,
    /// True if it seems to hold a secret.
    pub holds_secret: bool,
}

/// The results of a run, being written.
#[derive(Debug)]
pub struct Results {
    dir: PathBuf,
    secrets: Arc<Secrets>,
    files: Mutex<Vec<Entry>>,
}

impl Results {
    /// Makes `dir`, or deletes the results of an earlier run from it. Refuses a directory with
    /// other files.
    pub fn create(dir: &Path, base: &str, secrets: Arc<Secrets>) -> Result<Self, FanoutError> {
        make_dir(dir)?;
        let ours = |name: &String| name == TMP || name == IGNORE;
        let holds_something = !list(dir)?.iter().all(ours);
        match Manifest::load(dir)? {
            Some(manifest) => empty(dir, &manifest)?,
            None if holds_something => {
                let why =
                    "there is something in it that is no result of ccb; name another directory";
                return Err(wrong(dir, why));
            }
            None => {}
        }
        for sub in SUBDIRS {
            make_dir(&dir.join(sub))?;
        }
        make_dir(&dir.join(TMP))?;
        let results = Self {
            dir: dir.to_owned(),
            secrets,
            files: Mutex::default(),
        };
        results.put_manifest(&Manifest::new(base))?;
        let (tmp, path) = (dir.join(TMP), dir.join(IGNORE));
        atomic::replace(&tmp, &path, b"*\n", Durability::Relaxed)?;
        Ok(results)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Stores `bytes` of a task, without secrets, and returns the file's name.
    pub fn keep(&self, task: &str, what: Keep, bytes: &[u8]) -> Result<String, FanoutError> {
        let name = match what {
            Keep::Transcript => format!("transcripts/{task}.jsonl"),
            Keep::Check => format!("checks/{task}.log"),
        };
        self.put(&name, &self.redacted(bytes))?;
        Ok(name)
    }

    /// Stores a patch as `<task>.patch`.
    pub fn keep_patch(&self, task: &str, bytes: &[u8]) -> Result<KeptPatch, FanoutError> {
        let file = format!("{task}.patch");
        self.put(&file, bytes)?;
        Ok(KeptPatch {
            holds_secret: self.redacted(bytes) != bytes,
            file,
        })
    }

    /// Takes over a task's files from other results.
    pub fn adopt(&self, task: &TaskReport, from: &Loaded) -> Result<(), FanoutError> {
        for file in task.files.values() {
            let listed = from.manifest.files.iter().any(|entry| entry.path == *file);
            let path = from.dir.join(file);
            match atomic::read(&path)?.filter(|_| listed) {
                Some(bytes) => self.put(file, &bytes)?,
                None => return Err(wrong(&path, "the manifest does not know this file")),
            }
        }
        Ok(())
    }

    /// Writes every form of the report, and the manifest; returns the report as written.
    pub fn finish(&self, report: &Report, page: Option<PageOf<'_>>) -> Result<Report, FanoutError> {
        let report = self.clean(report);
        if let Some(page) = page {
            self.put("report.html", page(&report, &self.dir).as_bytes())?;
        }
        let mut json = serde_json::to_value(&report).unwrap_or(Value::Null);
        json["counts"] = serde_json::to_value(report.counts()).unwrap_or(Value::Null);
        json["cost"] = serde_json::to_value(report.cost()).unwrap_or(Value::Null);
        self.put("report.json", &pretty(&json))?;
        self.put("junit.xml", junit(&report).as_bytes())?;
        self.put("report.md", markdown(&report).as_bytes())?;
        self.put("results.sarif", &pretty(&sarif(&report)))?;
        let quality = pretty(&code_quality(&report));
        self.put("gl-code-quality-report.json", &quality)?;
        let mut files = self
            .files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        // All of them, before the manifest says that they are whole.
        atomic::sync_file_system(&self.dir, Durability::Full)?;
        self.put_manifest(&Manifest {
            complete: true,
            files,
            patches: patches(&report),
            ..Manifest::new(&report.base)
        })?;
        store::tree::delete(&self.dir.join(TMP))?;
        atomic::sync_dir(&self.dir, Durability::Full)?;
        Ok(report)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), FanoutError> {
        let tmp = self.dir.join(TMP);
        atomic::replace(&tmp, &self.dir.join(name), bytes, Durability::Relaxed)?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|entry| entry.path != name);
        files.push(Entry::of(name, bytes));
        Ok(())
    }

    fn put_manifest(&self, manifest: &Manifest) -> Result<(), FanoutError> {
        let value = serde_json::to_value(manifest).unwrap_or(Value::Null);
        let (tmp, path) = (self.dir.join(TMP), self.dir.join(MANIFEST));
        Ok(atomic::replace(
            &tmp,
            &path,
            &pretty(&value),
            Durability::Full,
        )?)
    }

    fn redacted(&self, bytes: &[u8]) -> Vec<u8> {
        let mut redactor = Redactor::new(Arc::clone(&self.secrets));
        let mut out = Vec::with_capacity(bytes.len());
        redactor.push(bytes, &mut out);
        redactor.finish(&mut out);
        out
    }

    /// The report without secrets.
    fn clean(&self, report: &Report) -> Report {
        let mut report = report.clone();
        let clean = |text: &str| self.secrets.redact(text);
        for note in &mut report.notes {
            *note = clean(note);
        }
        report.broken = report.broken.as_deref().map(clean);
        report.again = report.again.as_deref().map(clean);
        for task in &mut report.tasks {
            task.subject = clean(&task.subject);
            task.outcome = task.outcome.map_texts(&clean);
            for step in &mut task.resolve {
                *step = clean(step);
            }
            if let Some(check) = &mut task.check {
                check.command = clean(&check.command);
                check.tail = clean(&check.tail);
            }
            if let Some(check) = &mut task.check {
                check.flaky = check.flaky.as_deref().map(clean);
            }
            for origin in task.origin.iter_mut().chain(&mut task.findings) {
                origin.message = origin.message.as_deref().map(clean);
            }
        }
        report
    }
}

/// The patches, each after those it builds on.
fn patches(report: &Report) -> Vec<PatchEntry> {
    let tasks = &report.tasks;
    let graph = Graph::new(
        tasks
            .iter()
            .map(|task| (task.id.as_str(), &task.depends_on[..])),
    );
    let entry = |at: usize| {
        let task = &tasks[at];
        // The patch of a failed task is for reading, not for applying.
        let usable = task.outcome.is_success();
        Some(PatchEntry {
            task: task.id.clone(),
            path: task.files.get("patch").filter(|_| usable)?.clone(),
            commit: task.outcome.commit()?.to_owned(),
        })
    };
    graph.order().into_iter().filter_map(entry).collect()
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn make_dir(dir: &Path) -> Result<(), FanoutError> {
    std::fs::create_dir_all(dir).map_err(|error| wrong(dir, format!("cannot make it: {error}")))
}

fn list(dir: &Path) -> Result<Vec<String>, FanoutError> {
    let entries = std::fs::read_dir(dir);
    let entries = entries.map_err(|error| wrong(dir, format!("cannot list it: {error}")))?;
    let names = entries.filter_map(Result::ok);
    Ok(names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect())
}

/// Deletes the files of an earlier run, the manifest last: it shows that the directory is ccb's.
fn empty(dir: &Path, manifest: &Manifest) -> Result<(), FanoutError> {
    for entry in &manifest.files {
        atomic::remove(&dir.join(&entry.path))?;
    }
    // An unfinished run listed nothing, but wrote in these places only.
    for name in list(dir)?.iter().filter(|name| name.ends_with(".patch")) {
        atomic::remove(&dir.join(name))?;
    }
    for sub in SUBDIRS.iter().chain([&TMP]) {
        store::tree::delete(&dir.join(sub))?;
    }
    Ok(())
}
