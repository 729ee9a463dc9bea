//! The base commit of the work on a task: everything the task builds on.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use landing::{commit_of, obtain};
use runs::{AgentError, Agents};
use taskboard::{Board, BoardError, Task, TaskId};
use worktrees::{TreeError, Trees};

/// Lifetime of a cached remote branch position: many tasks begin at the same time.
const A_MOMENT: Duration = Duration::from_millis(500);

/// The start of worktrees for tasks, before the results a task builds on are added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseOf {
    /// Always this commit: the same work gives the same result, whatever else is done meanwhile.
    Fixed(String),
    /// The head of this branch when the work begins.
    Branch(String),
    /// The same, with the branch as the remote has it.
    Remote(String),
    /// No task gets a worktree.
    NoTrees,
}

/// The commit the work on `task` starts from, if it gets a worktree.
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
    // A person asked for a change, not for a new start. If the rejected work does not fit with the
    // rest any more, the task starts anew.
    let with_it: Vec<String> = commits.iter().cloned().chain([rejected]).collect();
    let composed = match trees.compose(&start, &with_it) {
        Err(TreeError::Conflicts { .. }) => trees.compose(&start, &commits),
        composed => composed,
    };
    Ok(Some(composed?))
}

/// The rejected commit, if a rejection was the last thing that happened to the task.
fn rejected(task: &Task) -> Option<String> {
    let attempts = task.attempts();
    attempts.last()?.work.as_ref()?.commit.clone()
}

/// A remote by which machines share branches and results.
#[derive(Debug)]
pub struct Remote {
    pub(super) name: String,
    /// By branch: the time of the last query and the commit it returned.
    seen: Mutex<HashMap<String, (Instant, String)>>,
}

impl Remote {
    /// The remote that takes results of these agents to other machines; `None` if there is none.
    pub fn of(agents: &Agents) -> Option<Self> {
        Some(Self {
            name: agents.shared()?.remote.clone()?,
            seen: Mutex::default(),
        })
    }

    /// The head of a branch, at most a moment old.
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
        // A deleted task left nothing to build on. An unreadable task is not deleted.
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
