//! The effect of a change of one task on its blockers and on the tasks that wait for it.

use std::collections::BTreeSet;

use database::Type;

use crate::error::BoardError;
use crate::id::TaskId;
use crate::id::insert;
use crate::task::{Status, Task};

use super::rows::{Stored, numbers};
use super::visit::Visit;

impl Visit<'_> {
    /// Writes a task that was changed, and what follows from it for others.
    pub(crate) fn put(&mut self, op: &'static str, task: Task) -> Result<(), BoardError> {
        let before = self.stored(task.id)?.task.clone();
        if before == task {
            return Ok(());
        }
        let id = task.id;
        let neighbours = [
            &before.blocked_by,
            &before.blocks,
            &task.blocked_by,
            &task.blocks,
        ];
        let changed_edges = before.blocked_by != task.blocked_by || before.blocks != task.blocks;
        if changed_edges {
            let all: Vec<TaskId> = neighbours.into_iter().flatten().copied().collect();
            self.load(all)?;
        }
        let (was_open, open) = (
            before.status != Status::Completed,
            task.status != Status::Completed,
        );
        let links = changed(&before.blocked_by, &task.blocked_by);
        let back_links = changed(&before.blocks, &task.blocks);
        if was_open != open {
            // The tasks that waited for it before and still do; the others follow below.
            let kept = task.blocks.iter().filter(|id| before.blocks.contains(id));
            self.shift_open(
                &kept.copied().collect::<Vec<_>>(),
                if open { 1 } else { -1 },
            )?;
            self.ranks.reopened_or_done(&task, &before);
        }
        self.set(op, task);
        for (blocker, added) in links {
            self.link(blocker, id, added, Side::Blocker, true);
        }
        for (dependent, added) in back_links {
            self.link(
                id,
                dependent,
                added,
                Side::Dependent,
                if added { open } else { was_open },
            );
        }
        Ok(())
    }

    /// Brings the other side of an edge up to date after one side was written.
    fn link(&mut self, blocker: TaskId, dependent: TaskId, added: bool, other: Side, open: bool) {
        let op = if added { "block" } else { "unblock" };
        let change = |list: &mut Vec<TaskId>, id: TaskId| {
            if added {
                insert(list, id);
            } else {
                list.retain(|it| *it != id);
            }
        };
        match other {
            Side::Blocker => {
                let open = self.get(blocker).is_some_and(Stored::is_open);
                if let Some(stored) = self.known.get_mut(&blocker) {
                    change(&mut stored.task.blocks, dependent);
                    self.mark(blocker, Some(op));
                }
                self.count_blocker(dependent, added, open);
            }
            Side::Dependent => {
                if let Some(stored) = self.known.get_mut(&dependent) {
                    change(&mut stored.task.blocked_by, blocker);
                    self.mark(dependent, Some(op));
                }
                self.count_blocker(dependent, added, open);
            }
        }
        self.ranks.edge(blocker);
    }

    fn count_blocker(&mut self, dependent: TaskId, added: bool, open: bool) {
        if let Some(stored) = self.known.get_mut(&dependent).filter(|_| open) {
            stored.open_blockers += if added { 1 } else { -1 };
        }
    }

    /// One blocker more, or less, is open for these tasks.
    pub(crate) fn shift_open(&mut self, ids: &[TaskId], by: i32) -> Result<(), BoardError> {
        for id in ids {
            if let Some(stored) = self.known.get_mut(id) {
                stored.open_blockers += by;
                self.mark(*id, None);
            }
        }
        let others = numbers(ids.iter().filter(|id| !self.known.contains_key(id)));
        if !others.is_empty() {
            let sql = format!(
                "WITH moved AS (UPDATE @.tasks SET open_blockers = open_blockers + $3, \
                 since = @.clock_ms() \
                 WHERE list = $1 AND id = ANY($2) RETURNING *) {}",
                super::changes::raise_head("moved")
            );
            self.session.execute(
                &sql,
                &[
                    (&self.list, Type::INT4),
                    (&others, Type::INT8_ARRAY),
                    (&by, Type::INT4),
                ],
            )?;
        }
        Ok(())
    }

    /// Adds a new task, created together with others (`new`). Its other neighbours are loaded.
    pub(crate) fn add(&mut self, task: Task, new: &BTreeSet<TaskId>) {
        let waits = |id: &&TaskId| new.contains(id) || self.get(**id).is_some_and(Stored::is_open);
        let open = task.blocked_by.iter().filter(waits).count();
        let id = task.id;
        let stored = Stored {
            task,
            version: 0,
            chain: 1,
            open_blockers: i32::try_from(open).unwrap_or(i32::MAX),
        };
        self.known.insert(id, stored);
        self.mark(id, Some("create"));
        self.ranks.edge(id);
    }

    /// A new task waits for an existing one.
    pub(crate) fn name_dependent(&mut self, blocker: TaskId, dependent: TaskId) {
        if let Some(stored) = self.known.get_mut(&blocker) {
            insert(&mut stored.task.blocks, dependent);
            self.mark(blocker, Some("block"));
            self.ranks.edge(blocker);
        }
    }

    /// An existing task waits for a new one.
    pub(crate) fn name_blocker(&mut self, dependent: TaskId, blocker: TaskId) {
        if let Some(stored) = self.known.get_mut(&dependent) {
            insert(&mut stored.task.blocked_by, blocker);
            stored.open_blockers += 1;
            self.mark(dependent, Some("block"));
        }
    }
}

/// The task of an edge that is updated.
#[derive(Clone, Copy)]
enum Side {
    Blocker,
    Dependent,
}

/// The tasks that are in one of the two only; `true` if in the second.
fn changed(before: &[TaskId], after: &[TaskId]) -> Vec<(TaskId, bool)> {
    let gone = before
        .iter()
        .filter(|id| !after.contains(id))
        .map(|id| (*id, false));
    let new = after
        .iter()
        .filter(|id| !before.contains(id))
        .map(|id| (*id, true));
    gone.chain(new).collect()
}
