//! What the work on a task starts from: everything it builds on.

use std::collections::BTreeSet;

use taskboard::{Board, Task, TaskId};
use worktrees::{TreeError, Trees};

use crate::landing::commit_of;

/// Where trees for tasks start, before what they build on is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BaseOf {
    /// Always here: the same work gives the same result, whatever else is done meanwhile.
    Fixed(String),
    /// Where this branch stands when the work begins.
    Branch(String),
    /// Nobody gets a tree.
    NoTrees,
}

/// The commit the work on `task` starts from, if it gets a tree.
pub(super) fn base_for(
    of: &BaseOf,
    task: &Task,
    board: &Board,
    trees: &Trees,
) -> Result<Option<String>, TreeError> {
    let start = match of {
        BaseOf::NoTrees => return Ok(None),
        BaseOf::Fixed(commit) => commit.clone(),
        BaseOf::Branch(branch) => trees.resolve(&format!("refs/heads/{branch}"))?,
    };
    let mut commits = Vec::new();
    let mut seen = BTreeSet::new();
    for blocker in &task.blocked_by {
        collect(board, *blocker, &mut seen, &mut commits);
    }
    let Some(rejected) = rejected(task).filter(|commit| trees.has_commit(commit)) else {
        return trees.compose(&start, &commits).map(Some);
    };
    // A person wants something else about it, not all of it anew. If that does not fit with the
    // rest any more, it is done anew.
    let with_it: Vec<String> = commits.iter().cloned().chain([rejected]).collect();
    match trees.compose(&start, &with_it) {
        Err(TreeError::Conflicts { .. }) => trees.compose(&start, &commits).map(Some),
        composed => composed.map(Some),
    }
}

/// The work that a person sent back, if that was the last thing that happened to the task.
fn rejected(task: &Task) -> Option<String> {
    let attempts = task.attempts();
    attempts.last()?.work.as_ref()?.commit.clone()
}

/// The commits of `id`, or, where it left none, of what it builds on itself.
fn collect(board: &Board, id: TaskId, seen: &mut BTreeSet<TaskId>, commits: &mut Vec<String>) {
    if !seen.insert(id) {
        return;
    }
    // What is gone left nothing that could be built on.
    let Ok(task) = board.get(id) else {
        return;
    };
    match commit_of(&task) {
        Some(commit) => commits.push(commit),
        None => {
            for blocker in &task.blocked_by {
                collect(board, *blocker, seen, commits);
            }
        }
    }
}
