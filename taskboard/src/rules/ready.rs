//! The tasks that can start, and their order: the rules, once, for the board and for the scheduler
//! of its tasks.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::id::TaskId;
use crate::task::Status;

/// The order in which ready tasks are handed out, largest first: priority, then the longest chain
/// of unfinished tasks that begins with it, then the lowest id.
pub type Rank = (i64, usize, Reverse<TaskId>);

/// The rank of a task at the beginning of a chain of `chain` unfinished tasks.
pub fn rank(id: TaskId, priority: i64, chain: usize) -> Rank {
    (priority, chain, Reverse(id))
}

/// The edges between tasks.
pub trait Dependencies {
    /// True if tasks that it blocks have to wait. A missing task is resolved; an unreadable one is
    /// not.
    fn is_open(&self, id: TaskId) -> bool;

    /// Every task others have to wait for.
    fn open(&self) -> impl Iterator<Item = TaskId>;

    /// Tasks that `id` waits for or once waited for.
    fn blockers(&self, id: TaskId) -> impl Iterator<Item = TaskId>;

    /// The blockers of `id` that are open, lowest first.
    fn open_blockers(&self, id: TaskId) -> Vec<TaskId> {
        let mut open: Vec<TaskId> = self.blockers(id).filter(|it| self.is_open(*it)).collect();
        open.sort_unstable();
        open
    }

    /// True if a task with this status can be started: pending, not parked, and nothing it waits
    /// for is open.
    fn can_start(&self, id: TaskId, status: Status, parked: bool) -> bool {
        status == Status::Pending && !parked && !self.blockers(id).any(|it| self.is_open(it))
    }

    /// For every open task, the length of the longest chain of open tasks that starts with it. A
    /// path into a cycle counts as a chain up to the cycle.
    fn chains(&self) -> HashMap<TaskId, usize> {
        let mut chains: HashMap<TaskId, usize> = self.open().map(|id| (id, 1)).collect();
        let mut waiting: HashMap<TaskId, usize> = HashMap::new();
        for id in chains.keys() {
            for before in self.blockers(*id).filter(|it| chains.contains_key(it)) {
                *waiting.entry(before).or_default() += 1;
            }
        }
        if waiting.is_empty() {
            return chains;
        }
        // Backwards from the tasks that block no other, so that no recursion is needed.
        let last = chains.keys().filter(|id| !waiting.contains_key(id));
        let mut done: Vec<TaskId> = last.copied().collect();
        while let Some(id) = done.pop() {
            let length = chains.get(&id).map_or(1, |length| length + 1);
            for before in self.blockers(id) {
                let Some(left) = waiting.get_mut(&before) else {
                    continue;
                };
                *left -= 1;
                if *left == 0 {
                    done.push(before);
                }
                let chain = chains.entry(before).or_insert(1);
                *chain = (*chain).max(length);
            }
        }
        chains
    }
}
