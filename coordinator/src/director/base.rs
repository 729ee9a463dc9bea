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
    trees.compose(&start, &commits).map(Some)
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
