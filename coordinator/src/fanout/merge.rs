//! Several results made one: the parts of a plan that ran on several machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use swarm::redact::Secrets;

use super::error::FanoutError;
use super::manifest::{Loaded, Manifest};
use super::report::Report;
use super::results::Results;

/// Merges the results in `dirs`; with `out`, writes the whole there.
pub fn merge_results(
    dirs: &[PathBuf],
    out: Option<&Path>,
    secrets: Arc<Secrets>,
) -> Result<Report, FanoutError> {
    // A part whose job died has begun and said nothing: the others are worth a report.
    let unfinished = |dir: &&PathBuf| {
        let manifest = Manifest::load(dir).ok().flatten();
        manifest.is_some_and(|manifest| !manifest.complete)
    };
    let (dead, there): (Vec<&PathBuf>, Vec<&PathBuf>) = dirs.iter().partition(unfinished);
    let parts = there
        .iter()
        .map(|dir| Loaded::load(dir))
        .collect::<Result<Vec<_>, _>>()?;
    let mut whole = Report::merge(parts.iter().map(|part| part.report.clone()).collect())?;
    for dir in dead {
        let name = dir.file_name().unwrap_or(dir.as_os_str());
        let words = format!("the run in {} did not come to its end", name.display());
        whole.broken = Some(match whole.broken.take() {
            Some(other) => format!("{other}; {words}"),
            None => words,
        });
    }
    whole.judge();
    let Some(out) = out else {
        return Ok(whole);
    };
    let here = out.canonicalize().ok();
    if dirs
        .iter()
        .any(|dir| here.is_some() && dir.canonicalize().ok() == here)
    {
        let why = format!("{} cannot be merged into itself", out.display());
        return Err(FanoutError::Merge { why });
    }
    let results = Results::create(out, &whole.base, secrets)?;
    for task in &whole.tasks {
        let from = parts.iter().find(|part| part.report.tasks.contains(task));
        if let Some(from) = from {
            results.adopt(task, from)?;
        }
    }
    results.finish(&whole)
}
