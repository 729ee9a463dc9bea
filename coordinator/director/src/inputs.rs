//! The inputs of scheduling: tasks, slots and limits, as plain values.

use std::collections::{BTreeMap, BTreeSet};

use landing::has_landed;
use taskboard::{Dependencies, Status, Task, TaskId};

/// A task, as far as scheduling is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskView {
    pub id: TaskId,
    /// The status on the board.
    pub status: Status,
    pub owner: Option<String>,
    /// The tasks that block it.
    pub blocked_by: Vec<TaskId>,
    /// A task with a higher number starts first.
    pub priority: i64,
    /// True if the task is parked until a person acts.
    pub parked: bool,
    /// The files it may change. An empty list means any file, without a claim to have it alone.
    pub paths: Vec<String>,
    /// True if a command does the task; otherwise it needs a model.
    pub has_command: bool,
    /// The agent type it is for.
    pub agent_type: Option<String>,
    /// True if the task is marked done but its check has not passed under ccb.
    pub reported: bool,
    /// The labels a machine must have to do it.
    pub needs: Vec<String>,
    /// True if the owner loses the task by being silent: an owner on another machine, for example.
    pub expires: bool,
    /// True if its result is on a branch, according to a board that machines share.
    pub landed: bool,
}

impl TaskView {
    /// True if the task is completed and proven.
    pub(super) fn is_done(&self) -> bool {
        self.status == Status::Completed && !self.reported
    }

    /// The fields of `task` that scheduling needs.
    pub(super) fn of(task: &Task) -> Self {
        Self {
            id: task.id,
            status: task.status,
            owner: task.owner.clone(),
            blocked_by: task.blocked_by.clone(),
            priority: task.priority(),
            parked: task.parked().is_some(),
            paths: task.paths(),
            has_command: task.run_command().is_some(),
            agent_type: task.agent_type().map(str::to_owned),
            reported: task.is_reported(),
            needs: task.needs(),
            expires: task.lease().is_some_and(|lease| lease.expires_at.is_some()),
            landed: task.result().as_ref().is_some_and(has_landed),
        }
    }
}

/// All tasks of a list.
pub(super) type Tasks = BTreeMap<TaskId, TaskView>;

/// The dependencies among the tasks. An unproven task counts as open.
pub(super) struct Waiting<'a> {
    pub(super) tasks: &'a Tasks,
    /// Tasks whose files cannot be read: their dependents wait.
    pub(super) unreadable: &'a BTreeSet<TaskId>,
}

impl Dependencies for Waiting<'_> {
    fn is_open(&self, id: TaskId) -> bool {
        let open = self.tasks.get(&id).is_some_and(|task| !task.is_done());
        open || self.unreadable.contains(&id)
    }

    fn open(&self) -> impl Iterator<Item = TaskId> {
        let known = self.tasks.keys().chain(self.unreadable).copied();
        known.filter(|id| self.is_open(*id))
    }

    fn blockers(&self, id: TaskId) -> impl Iterator<Item = TaskId> {
        let task = self.tasks.get(&id).into_iter();
        task.flat_map(|task| task.blocked_by.iter().copied())
    }
}

/// A slot that can be given work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeatView {
    /// The name under which it owns tasks, if it has one.
    pub name: Option<String>,
    pub at: Option<TaskId>,
    /// True if it runs commands and nothing else.
    pub commands_only: bool,
    /// The runtime of its agents, if not all slots have the same one.
    pub runtime: Option<String>,
    /// True if it can take a task now; false while its agent ends, waits for an approval, or has
    /// exited.
    pub available: bool,
}

/// The limits that scheduling must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of agents at the same time.
    pub at_once: usize,
    /// Number of successes required before more agents than that run.
    pub canary: Option<usize>,
    /// Number of failures after which nothing new starts.
    pub max_failures: Option<usize>,
    /// True if no two tasks that may change the same files run at the same time.
    pub exclusive_paths: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            at_once: 4,
            canary: None,
            max_failures: None,
            exclusive_paths: true,
        }
    }
}

/// True if two sets of paths may touch the same file. A pattern counts as everything below the
/// directory it starts in.
pub(super) fn overlap(one: &[String], other: &[String]) -> bool {
    one.iter().any(|a| {
        other
            .iter()
            .any(|b| below(fixed(a), fixed(b)) || below(fixed(b), fixed(a)))
    })
}

/// The part of a pattern before its first wild card, without a half name at its end.
fn fixed(pattern: &str) -> &str {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    match pattern.find(['*', '?', '[', '{']) {
        None => pattern,
        Some(wild) => match pattern[..wild].rfind('/') {
            Some(slash) => &pattern[..slash],
            None => "",
        },
    }
}

fn below(path: &str, dir: &str) -> bool {
    dir.is_empty()
        || dir == "."
        || path
            .strip_prefix(dir)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_overlap_where_they_can_name_one_file() {
        let sets =
            |text: &str| -> Vec<String> { text.split_whitespace().map(Into::into).collect() };
        for (one, other, together) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src", "src/b.rs", true),
            ("src/", "./src/b.rs", true),
            ("src", "srcs/b.rs", false),
            ("src/*.rs", "src/deep/b.rs", true),
            ("src/x*.rs", "lib/*.rs", false),
            ("*.md", "src/b.rs", true),
            ("docs lib", "tests lib/x", true),
            ("", "src", false),
        ] {
            assert_eq!(overlap(&sets(one), &sets(other)), together, "{one} {other}");
            assert_eq!(overlap(&sets(other), &sets(one)), together, "{other} {one}");
        }
    }

    #[test]
    fn a_chain_counts_what_is_left_and_survives_a_cycle() {
        let id = |number| TaskId::new(number).unwrap();
        let task = |number, blocked_by: &[u64], status| TaskView {
            id: id(number),
            status,
            owner: None,
            blocked_by: blocked_by.iter().map(|number| id(*number)).collect(),
            priority: 0,
            parked: false,
            paths: Vec::new(),
            has_command: true,
            agent_type: None,
            reported: false,
            needs: Vec::new(),
            expires: false,
            landed: false,
        };
        let open = Status::Pending;
        let tasks: Tasks = [
            task(1, &[], Status::Completed),
            task(2, &[1], open),
            task(3, &[2], open),
            task(4, &[1], open),
            task(5, &[6], open),
            task(6, &[5], open),
        ]
        .into_iter()
        .map(|task| (task.id, task))
        .collect();
        let waiting = Waiting {
            tasks: &tasks,
            unreadable: &BTreeSet::new(),
        };
        let chains = waiting.chains();
        let of = |number| chains[&id(number)];
        assert_eq!((of(2), of(3), of(4)), (2, 1, 1));
        assert!(!chains.contains_key(&id(1)), "it is done");
        assert!(of(5) >= 1 && of(6) >= 1);
    }
}
