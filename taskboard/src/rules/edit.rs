//! The changes to a task.

use serde_json::{Map, Value};

use crate::error::{BoardError, Refusal};
use crate::facts::{self, LeaseTerm};
use crate::id::TaskId;
use crate::id::insert;
use crate::rules::cycles::cycle_with;
use crate::rules::index::Index;
use crate::rules::ready::Dependencies;
use crate::task::{Status, Task, check_description, check_line};

/// The changes to a task; everything left out stays.
#[derive(Debug, Clone, Default)]
pub struct Update {
    /// A new subject; `None` keeps the old one.
    pub subject: Option<String>,
    /// A new description; `None` keeps the old one.
    pub description: Option<String>,
    /// A new activity text; the inner `None` removes it.
    pub active_form: Option<Option<String>>,
    /// A new owner; the inner `None` gives the task back.
    pub owner: Option<Option<String>>,
    /// A new status; `None` keeps the old one. `in_progress` is a claim, `completed` a completion,
    /// with their rules.
    pub status: Option<Status>,
    /// Merged into the metadata; `null` removes a key.
    pub metadata: Map<String, Value>,
    /// More tasks that wait for this one.
    pub add_blocks: Vec<TaskId>,
    /// More tasks this one waits for.
    pub add_blocked_by: Vec<TaskId>,
    /// The end of the claim, if the new status is one.
    pub lease: Option<LeaseTerm>,
    /// True if such a claim is refused while the agent works on another task.
    pub one_at_a_time: bool,
}

impl Update {
    pub(crate) fn check(&self) -> Result<(), BoardError> {
        if let Some(subject) = &self.subject {
            check_line("subject", subject)?;
        }
        if let Some(description) = &self.description {
            check_description(description)?;
        }
        if let Some(Some(text)) = &self.active_form {
            check_line("active form", text)?;
        }
        if let Some(Some(owner)) = &self.owner {
            check_line("owner", owner)?;
        }
        Ok(())
    }

    /// The name of the first fact about the task that this changes, if it changes one.
    pub fn first_fact(&self) -> Option<String> {
        facts::first_fact(&self.metadata)
    }

    /// Makes the changes that have no rules of their own.
    pub(crate) fn edit(&self, task: &mut Task) -> Result<(), BoardError> {
        if let Some(subject) = &self.subject {
            task.subject.clone_from(subject);
        }
        if let Some(description) = &self.description {
            task.description.clone_from(description);
        }
        if let Some(active_form) = &self.active_form {
            task.active_form.clone_from(active_form);
        }
        let was_unclear = task.is_unclear();
        task.merge_metadata(&self.metadata)?;
        if facts::decide_check(&self.metadata) && !task.is_unclear() {
            task.end_dispute();
        } else if was_unclear {
            task.end_dispute_if_clear();
        }
        Ok(())
    }

    /// Adds the new edges to this task's side; says which of the new blockers are open.
    ///
    /// Both directions stand in the one file, so the change is still one rename. The other sides
    /// follow; until then every reader takes the union, and the next change of the board completes
    /// them.
    pub(crate) fn link(&self, index: &Index, task: &mut Task) -> Result<Vec<TaskId>, BoardError> {
        if self.add_blocks.is_empty() && self.add_blocked_by.is_empty() {
            return Ok(Vec::new());
        }
        let mut edges = index.edges();
        for (blocker, dependent) in self.edges(task.id) {
            for other in [blocker, dependent] {
                if index.get(other).is_none() {
                    return Err(BoardError::NotFound { id: other });
                }
            }
            if let Some(path) = cycle_with(&edges, blocker, dependent) {
                return Err(BoardError::Cycle { path });
            }
            edges.add_edge(blocker, dependent, ());
        }
        for dependent in &self.add_blocks {
            insert(&mut task.blocks, *dependent);
        }
        for blocker in &self.add_blocked_by {
            insert(&mut task.blocked_by, *blocker);
        }
        let open = self.add_blocked_by.iter().copied();
        Ok(open.filter(|blocker| index.is_open(*blocker)).collect())
    }

    /// The new edges of task `id`, as (blocker, dependent).
    pub(crate) fn edges(&self, id: TaskId) -> impl Iterator<Item = (TaskId, TaskId)> {
        let before = self.add_blocked_by.iter().map(move |other| (*other, id));
        before.chain(self.add_blocks.iter().map(move |other| (id, *other)))
    }
}

/// Refuses what has just been made to wait.
pub(crate) fn check_open(task: &Task, by: Vec<TaskId>) -> Result<(), BoardError> {
    if by.is_empty() {
        return Ok(());
    }
    Err(BoardError::refused(task, Refusal::Blocked { by }))
}
