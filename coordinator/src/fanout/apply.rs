//! Results, applied to a repository: here or anywhere else.

use std::path::{Path, PathBuf};

use worktrees::patch::{self, Applied};

use super::error::FanoutError;
use super::manifest::Loaded;

/// How to apply.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyOptions {
    /// Only say whether it would work.
    pub check: bool,
    /// Merge where a patch does not fit as it is.
    pub three_way: bool,
}

/// What was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyAnswer {
    /// The tasks whose patches were, in order.
    pub tasks: Vec<String>,
    /// The commit the repository was at.
    pub before: String,
    /// The commit it is at now.
    pub after: String,
    /// Whether it was at the commit the patches were made for.
    pub same_base: bool,
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
        // The results may be where nobody can write.
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
            before,
            after: commit,
        }),
        Applied::Stopped { file, why } => {
            let name = file.file_name().unwrap_or_default();
            Err(FanoutError::DoesNotApply {
                patch: name.to_string_lossy().into_owned(),
                why: one_line(&why),
            })
        }
    }
}

fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
        .collect();
    lines.join("; ")
}
