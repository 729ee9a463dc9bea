//! Several results made one: the parts of a plan that ran on several machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use swarm::redact::Secrets;

use super::error::FanoutError;
use super::manifest::Loaded;
use super::report::Report;
use super::results::Results;

/// Merges the results in `dirs`; with `out`, writes the whole there.
pub fn merge_results(
    dirs: &[PathBuf],
    out: Option<&Path>,
    secrets: Arc<Secrets>,
) -> Result<Report, FanoutError> {
    let parts = dirs
        .iter()
        .map(|dir| Loaded::load(dir))
        .collect::<Result<Vec<_>, _>>()?;
    let whole = Report::merge(parts.iter().map(|part| part.report.clone()).collect())?;
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
