//! The results that have still to land, and their order.

use std::collections::{BTreeMap, BTreeSet};

use runs::{AgentError, Agents};
use swarm::run::{CheckPlace, SharedPlace};
use taskboard::{Status, Task, TaskId, TaskResult};
use worktrees::{Slug, Trees};

use super::shared::{has_landed, obtain};

/// A task that waits to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// The task.
    pub task: TaskId,
    pub(crate) blocked_by: Vec<TaskId>,
    pub(crate) files: BTreeSet<String>,
    /// The files it changed, or its planned paths.
    pub paths: Vec<String>,
}

/// The task that lands next: never before one it builds on; then the one that shares files with the
/// fewest others, so that most of the rest needs no new check. A task in `rests` waits, and so do
/// its dependents.
pub fn next_to_land(queue: &BTreeMap<TaskId, Queued>, rests: &BTreeSet<TaskId>) -> Option<TaskId> {
    let mut awake = queue.values().filter(|one| !rests.contains(&one.task));
    let free = awake
        .clone()
        .filter(|one| !one.blocked_by.iter().any(|id| queue.contains_key(id)));
    let shared = |one: &Queued| {
        let others = queue.values().filter(|other| other.task != one.task);
        others
            .filter(|other| !other.files.is_disjoint(&one.files))
            .count()
    };
    let best = free.min_by_key(|one| (shared(one), one.task));
    // A cycle, which only other tools can make, must not block everything.
    let best = best.or_else(|| awake.next().filter(|_| rests.is_empty()));
    best.map(|one| one.task)
}

/// The completed tasks of a team whose work is on no branch but their own.
pub fn unlanded(agents: &Agents) -> Result<Vec<TaskId>, AgentError> {
    let board = agents.board();
    if !board.exists() {
        return Ok(Vec::new());
    }
    let trees = agents.trees()?;
    let snapshot = board.snapshot()?;
    let results = Results::new(agents, &trees);
    let waiting = snapshot.tasks().filter_map(|task| results.queued(task));
    Ok(waiting.map(|queued| queued.task).collect())
}

/// The result of a task that waits to land, if there is one: in the worktree it was done in, or,
/// where machines share the board, on any machine.
///
/// On a shared board, only the board says what has landed. If a machine dies after it moved the
/// branch and before it updated the board, only its own records have the landing, and no other
/// machine would ever learn of it.
pub fn queued(task: &Task, trees: &Trees, shared: bool) -> Option<Queued> {
    let result = task.result()?;
    let done = task.status == Status::Completed && result.changed == Some(true);
    // Undone work lands only on an explicit request.
    if !done || result.undone == Some(true) || has_landed(&result) {
        return None;
    }
    let slug = Slug::new(result.worktree.as_deref()?).ok()?;
    if !shared {
        let entry = trees.get(&slug).ok()?;
        let landed = entry.merged.as_ref();
        if landed.is_some_and(|landed| is_on_branch(landed, &result)) {
            return None;
        }
    }
    Some(Queued::of(task, trees))
}

/// The places of results: worktrees here, and if several machines share the board, also the remote.
#[derive(Debug, Clone, Copy)]
pub struct Results<'a> {
    pub(crate) list: &'a str,
    pub(crate) trees: &'a Trees,
    /// The shared place of the machines on this board; `None` if the board is not shared.
    pub(crate) shared: Option<&'a SharedPlace>,
}

impl<'a> Results<'a> {
    /// The results of the board of `agents`.
    pub fn new(agents: &'a Agents, trees: &'a Trees) -> Self {
        Self {
            list: agents.board().name().as_str(),
            trees,
            shared: agents.shared(),
        }
    }

    /// The result of a task that waits to land, from any machine. Fetches its commit if it is not
    /// here.
    pub fn queued(&self, task: &Task) -> Option<Queued> {
        let waiting = queued(task, self.trees, self.shared.is_some())?;
        if self.shared.is_none() || is_here(task, self.trees) {
            return Some(waiting);
        }
        self.fetch(task);
        // Its changed files are known only now.
        Some(Queued::of(task, self.trees))
    }

    /// Fetches the commit of a task that another machine did, if that is possible now.
    pub(crate) fn fetch(&self, task: &Task) {
        let remote = self.shared.and_then(|place| place.remote.as_ref());
        if let Some(remote) = remote
            && let Err(error) = obtain(self.trees, remote, self.list, task)
        {
            tracing::warn!(%error, task = %task.id, "what was changed is not known");
        }
    }
}

/// True if the result of a task is in a worktree of this machine.
pub fn is_here(task: &Task, trees: &Trees) -> bool {
    let name = task.result().and_then(|result| result.worktree);
    let slug = name.and_then(|name| Slug::new(&name).ok());
    slug.is_some_and(|slug| trees.get(&slug).is_ok())
}

/// True if all of a result is on the branch: its agent may have continued after a part of it
/// landed.
pub(super) fn is_on_branch(landed: &worktrees::LandingRecord, result: &TaskResult) -> bool {
    let same = |commit: &String| *commit == landed.head;
    !landed.pending && result.commit.as_ref().is_none_or(same)
}

impl Queued {
    /// Reads the changes of a completed task.
    pub(crate) fn of(task: &Task, trees: &Trees) -> Self {
        let result = task.result().unwrap_or_default();
        let files = match (&result.base, &result.commit) {
            (Some(base), Some(commit)) => trees.changed_paths(base, commit).unwrap_or_default(),
            _ => Vec::new(),
        };
        Self {
            task: task.id,
            blocked_by: task.blocked_by.clone(),
            files: files.into_iter().collect(),
            paths: task.paths(),
        }
    }
}

/// Metadata key: the worker whose own task this is.
pub const WORKER_OF: &str = "workerOf";

/// True if the task is the own task of a worker that a lead started.
pub fn is_workers(task: &Task) -> bool {
    let metadata = task.metadata.as_ref();
    task.is_internal() && metadata.is_some_and(|metadata| metadata.contains_key(WORKER_OF))
}

/// The commit of a completed task's result, if it counts.
pub fn commit_of(task: &Task) -> Option<String> {
    let result = task.result()?;
    result.commit.filter(|_| result.undone != Some(true))
}

/// True if the check passed on the files of the result's commit, and not in a directory in use.
pub fn is_commit_checked(result: &TaskResult) -> bool {
    result.check_passed() && result.check_place() == Some(CheckPlace::Commit.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_on_lands_first_then_what_touches_least() {
        let id = |number| TaskId::new(number).unwrap();
        let queue = |all: &[(u64, &[u64], &str)]| -> BTreeMap<TaskId, Queued> {
            let one = |(number, blocked_by, files): &(u64, &[u64], &str)| Queued {
                task: id(*number),
                blocked_by: blocked_by.iter().map(|number| id(*number)).collect(),
                files: files.split_whitespace().map(str::to_owned).collect(),
                paths: Vec::new(),
            };
            all.iter().map(|it| (id(it.0), one(it))).collect()
        };
        let none = BTreeSet::new();
        let next = |all: &[(u64, &[u64], &str)]| {
            let next = next_to_land(&queue(all), &none);
            next.map(TaskId::get)
        };
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[(1, &[2], "a"), (2, &[], "a")]), Some(2));
        assert_eq!(
            next(&[(1, &[], "a b"), (2, &[], "a"), (3, &[], "c")]),
            Some(3)
        );
        assert_eq!(next(&[(1, &[9], "a"), (2, &[], "a")]), Some(1));
        // A paused task, and one that builds on it.
        let two = queue(&[(1, &[], "a"), (2, &[1], "b"), (3, &[], "a c")]);
        let rests = BTreeSet::from([id(1)]);
        assert_eq!(next_to_land(&two, &rests), Some(id(3)));
        // Two tasks that wait for each other.
        assert_eq!(next(&[(1, &[2], "a"), (2, &[1], "a")]), Some(1));
    }
}
