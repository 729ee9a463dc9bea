//! What the work on a task starts from: everything it builds on.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use landing::{commit_of, obtain};
use runs::{AgentError, Agents};
use taskboard::{Board, BoardError, Task, TaskId};
use worktrees::{TreeError, Trees};

/// So long a branch of a remote is taken to stand where it was seen: many tasks begin at once.
const A_MOMENT: Duration = Duration::from_millis(500);

/// Where trees for tasks start, before what they build on is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseOf {
    /// Always here: the same work gives the same result, whatever else is done meanwhile.
    Fixed(String),
    /// Where this branch stands when the work begins.
    Branch(String),
    /// The same, with the branch as other machines know it.
    Remote(String),
    /// Nobody gets a tree.
    NoTrees,
}

/// The commit the work on `task` starts from, if it gets a tree.
pub(super) fn base_for(
    of: &BaseOf,
    task: &Task,
    board: &Board,
    trees: &Trees,
    remote: Option<&Remote>,
) -> Result<Option<String>, AgentError> {
    let start = match (of, remote) {
        (BaseOf::NoTrees, _) => return Ok(None),
        (BaseOf::Fixed(commit), _) => commit.clone(),
        (BaseOf::Remote(branch), Some(remote)) => remote.branch(trees, branch)?,
        (BaseOf::Branch(branch) | BaseOf::Remote(branch), _) => {
            trees.resolve(&format!("refs/heads/{branch}"))?
        }
    };
    let mut builds_on = Vec::new();
    let mut seen = BTreeSet::new();
    for blocker in &task.blocked_by {
        collect(board, *blocker, &mut seen, &mut builds_on)?;
    }
    if let Some(remote) = remote {
        for task in &builds_on {
            obtain(trees, &remote.name, board.name().as_str(), task)?;
        }
    }
    let commits: Vec<String> = builds_on.iter().filter_map(commit_of).collect();
    let Some(rejected) = rejected(task).filter(|commit| trees.has_commit(commit)) else {
        return Ok(Some(trees.compose(&start, &commits)?));
    };
    // A person wants something else about it, not all of it anew. If that does not fit with the
    // rest any more, it is done anew.
    let with_it: Vec<String> = commits.iter().cloned().chain([rejected]).collect();
    let composed = match trees.compose(&start, &with_it) {
        Err(TreeError::Conflicts { .. }) => trees.compose(&start, &commits),
        composed => composed,
    };
    Ok(Some(composed?))
}

/// The work that a person sent back, if that was the last thing that happened to the task.
fn rejected(task: &Task) -> Option<String> {
    let attempts = task.attempts();
    attempts.last()?.work.as_ref()?.commit.clone()
}

/// A remote by which machines share branches and results.
#[derive(Debug)]
pub struct Remote {
    pub(super) name: String,
    /// When a branch was looked at, and where it stood.
    seen: Mutex<HashMap<String, (Instant, String)>>,
}

impl Remote {
    /// The one by which results of these agents get to other machines, if they do.
    pub fn of(agents: &Agents) -> Option<Self> {
        Some(Self {
            name: agents.shared()?.remote.clone()?,
            seen: Mutex::default(),
        })
    }

    /// Where a branch stands, or stood a moment ago.
    fn branch(&self, trees: &Trees, branch: &str) -> Result<String, TreeError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, commit)) = seen.get(branch)
            && at.elapsed() < A_MOMENT
        {
            return Ok(commit.clone());
        }
        let commit = trees.fetch_branch(&self.name, branch)?;
        seen.insert(branch.to_owned(), (Instant::now(), commit.clone()));
        Ok(commit)
    }
}

/// The task `id`, or, where it left nothing, what it builds on itself.
fn collect(
    board: &Board,
    id: TaskId,
    seen: &mut BTreeSet<TaskId>,
    found: &mut Vec<Task>,
) -> Result<(), BoardError> {
    if !seen.insert(id) {
        return Ok(());
    }
    let task = match board.get(id) {
        Ok(task) => task,
        // What is gone left nothing that could be built on. What cannot be read is not gone.
        Err(BoardError::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    if commit_of(&task).is_some() {
        found.push(task);
        return Ok(());
    }
    for blocker in &task.blocked_by {
        collect(board, *blocker, seen, found)?;
    }
    Ok(())
}
