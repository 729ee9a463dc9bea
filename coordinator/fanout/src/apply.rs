//! Applies results to a repository: here or on another machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use worktrees::patch::{self, Applied};

use super::error::FanoutError;
use super::manifest::Loaded;
use super::outcome::Outcome;
use super::report::TaskReport;

/// The options of an application.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyOptions {
    /// True if ccb only checks whether it would work.
    pub check: bool,
    /// True if a patch that does not fit is merged.
    pub three_way: bool,
}

/// The result of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyAnswer {
    /// The tasks whose patches were applied, in order.
    pub tasks: Vec<String>,
    /// The commit the repository was at.
    pub before: String,
    /// The commit it is at now.
    pub after: String,
    /// True if it was at the commit the patches were made for.
    pub same_base: bool,
    /// The tasks that were left out, and why.
    pub skipped: Vec<Skipped>,
}

/// A task whose work was not applied.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// The task's id.
    pub task: String,
    /// The outcome, in a line.
    pub why: String,
    /// The patch, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// True if the check passed: good work is left.
    pub proven: bool,
}

impl Skipped {
    fn of(task: &TaskReport) -> Option<Self> {
        let missing = !task.outcome.is_success();
        missing.then(|| Self {
            task: task.id.clone(),
            why: task.headline(),
            patch: task.files.get("patch").cloned(),
            proven: matches!(task.outcome, Outcome::Conflict { .. }),
        })
    }
}

/// Applies the patches in `dir` to the repository at `repo`: all of them, or nothing changes.
pub fn apply(dir: &Path, repo: &Path, options: ApplyOptions) -> Result<ApplyAnswer, FanoutError> {
    let loaded = Loaded::load(dir)?;
    let top = patch::top(repo)?;
    let before = patch::resolve(&top, "HEAD")?;
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let patches = &loaded.manifest.patches;
    let files: Vec<PathBuf> = patches.iter().map(|patch| dir.join(&patch.path)).collect();
    let applied = if options.check {
        // The results may be in a read-only directory.
        let scratch = tempfile::tempdir().map_err(|error| FanoutError::Input {
            what: "a temporary directory".into(),
            why: error.to_string(),
        })?;
        patch::check(&top, &files, options.three_way, scratch.path())?
    } else {
        if !patch::has_identity(&top) {
            return Err(FanoutError::NoIdentity);
        }
        let (changed, _) = patch::uncommitted(&top)?;
        if changed > 0 {
            return Err(FanoutError::Uncommitted { changed });
        }
        patch::apply(&top, &files, options.three_way)?
    };
    match applied {
        Applied::All { commit } => Ok(ApplyAnswer {
            tasks: patches.iter().map(|patch| patch.task.clone()).collect(),
            same_base: before == loaded.report.base,
            skipped: loaded.report.tasks.iter().filter_map(Skipped::of).collect(),
            before,
            after: commit,
        }),
        Applied::Stopped { file, why } => {
            let name = file.file_name().unwrap_or_default();
            let patch = name.to_string_lossy().into_owned();
            let mut why = one_line(&why);
            if let Some(with) = same_files(&loaded, &patch) {
                why.push_str(&format!("; {with}"));
            }
            Err(FanoutError::DoesNotApply { patch, why })
        }
    }
}

/// The tasks whose patches before this one change the same files.
fn same_files(loaded: &Loaded, patch: &str) -> Option<String> {
    let tasks = &loaded.report.tasks;
    let find = |id: &str| tasks.iter().find(|task| task.id == id);
    let patches = &loaded.manifest.patches;
    let at = patches.iter().position(|one| one.path == patch)?;
    let own: BTreeSet<&str> = paths(find(&patches[at].task)?).collect();
    let others = patches[..at].iter().filter_map(|one| find(&one.task));
    let shared: Vec<String> = others
        .filter_map(|other| {
            let both: Vec<&str> = paths(other).filter(|path| own.contains(path)).collect();
            (!both.is_empty()).then(|| format!("{} ({})", other.id, both.join(", ")))
        })
        .collect();
    let shared = (!shared.is_empty()).then(|| shared.join(", "));
    shared.map(|shared| format!("it changes the same files as {shared}"))
}

fn paths(task: &TaskReport) -> impl Iterator<Item = &str> {
    task.changes.iter().map(|change| change.path.as_str())
}

fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
        .collect();
    lines.join("; ")
}
