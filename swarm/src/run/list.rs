//! Finding runs.

use std::path::Path;

use store::agent_id::AgentId;

use super::meta::Meta;
use super::run_dir::{RunDir, RunError};

/// Names those runs for which there is something left to do.
pub(super) const ACTIVE: &str = ".active";

/// The ids of the runs for which there is something left to do: they are under way, or a process
/// died before all was done.
pub fn active(runs: &Path) -> Result<Vec<String>, RunError> {
    names(&runs.join(ACTIVE))
}

/// All runs there are, oldest first, and the directories that could not be read.
pub fn all(runs: &Path) -> Result<(Vec<Meta>, Vec<RunError>), RunError> {
    let mut metas = Vec::new();
    let mut problems = Vec::new();
    for id in names(runs)? {
        match RunDir::new(runs, &id).meta() {
            Ok(meta) => metas.push(meta),
            // Being made, or given up before it began.
            Err(RunError::NotFound { .. }) => {}
            Err(error) => problems.push(error),
        }
    }
    metas.sort_by(|a, b| (&a.created_at, &a.agent_id).cmp(&(&b.created_at, &b.agent_id)));
    Ok((metas, problems))
}

/// The ids of runs of which there is a directory, but nothing in it that says what they are.
pub fn without_meta(runs: &Path) -> Result<Vec<String>, RunError> {
    let mut ids = names(runs)?;
    ids.retain(|id| {
        let meta = RunDir::new(runs, id).meta();
        AgentId::parse(id).is_some() && matches!(meta, Err(RunError::NotFound { .. }))
    });
    Ok(ids)
}

fn names(dir: &Path) -> Result<Vec<String>, RunError> {
    let mut names = store::tree::names_in(dir)?;
    names.retain(|name| !name.starts_with('.'));
    Ok(names)
}
