//! All finished work that waits to land. Unchecked work is separate: a person approves it
//! explicitly.

use std::collections::BTreeSet;

use runs::Agents;
use store::Failure;
use taskboard::{Snapshot, TaskId};

use super::work::{Unlanded, candidates};

/// The work of "land all". Work whose landing was undone is not in it.
#[derive(Debug, Default)]
pub struct Everything {
    /// Work that a check proved, and that builds on no unchecked work.
    pub checked: Vec<TaskId>,
    /// Work without proof.
    pub unchecked: Vec<Unlanded>,
    /// Checked work that builds on unchecked work, each with the task it builds on.
    pub builds_on_it: Vec<(TaskId, TaskId)>,
}

impl Everything {
    /// The tasks of the unchecked work and of what builds on it.
    pub fn rest(&self) -> Vec<TaskId> {
        let unchecked = self.unchecked.iter().map(|work| work.task);
        let mut all: Vec<TaskId> = unchecked.collect();
        all.extend(self.builds_on_it.iter().map(|(task, _)| task));
        all.sort_unstable();
        all
    }

    /// The unchecked tasks with the reasons: `#3 (it has no check)`.
    pub fn unchecked_words(&self) -> String {
        let words = |work: &Unlanded| {
            let why = work.unchecked.as_deref().unwrap_or_default();
            format!("#{} ({why})", work.task)
        };
        let all: Vec<String> = self.unchecked.iter().map(words).collect();
        all.join(", ")
    }
}

/// All finished work on the list of `agents`.
pub fn everything(agents: &Agents) -> Result<Everything, Failure> {
    let mut all = candidates(agents)?;
    all.retain(|work| !work.undone);
    if all.is_empty() {
        return Ok(Everything::default());
    }
    let snapshot = agents.board().snapshot()?;
    Ok(split(all, &snapshot))
}

fn split(all: Vec<Unlanded>, snapshot: &Snapshot) -> Everything {
    let (unchecked, checked): (Vec<Unlanded>, Vec<Unlanded>) =
        all.into_iter().partition(|work| work.unchecked.is_some());
    let below: Vec<TaskId> = unchecked.iter().map(|work| work.task).collect();
    let mut found = Everything {
        unchecked,
        ..Everything::default()
    };
    for work in checked {
        // Its commits contain those of the work it builds on.
        match builds_on(work.task, &below, snapshot).first() {
            Some(on) => found.builds_on_it.push((work.task, *on)),
            None => found.checked.push(work.task),
        }
    }
    found
}

/// The tasks among these that this one depends on, directly or not.
pub fn builds_on(id: TaskId, among: &[TaskId], snapshot: &Snapshot) -> Vec<TaskId> {
    let mut seen = BTreeSet::new();
    let mut next = vec![id];
    while let Some(id) = next.pop() {
        let blockers = snapshot.get(id).map(|task| task.blocked_by.clone());
        next.extend(blockers.into_iter().flatten().filter(|on| seen.insert(*on)));
    }
    let mut found: Vec<TaskId> = seen.into_iter().filter(|on| among.contains(on)).collect();
    found.retain(|on| *on != id);
    found
}
