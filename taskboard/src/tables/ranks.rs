//! Keeping the length of the chain that starts with a task, by which ready tasks are ranked.

use std::collections::{BTreeSet, HashMap};

use database::Type;

use crate::error::BoardError;
use crate::id::TaskId;
use crate::task::{Status, Task};

use super::rows::{Stored, id, numbers};
use super::visit::Visit;

/// Tasks whose chain may have another length by now.
#[derive(Debug, Default)]
pub(crate) struct Stale(BTreeSet<TaskId>);

impl Stale {
    /// An edge from `blocker` is new, or gone.
    pub(crate) fn edge(&mut self, blocker: TaskId) {
        self.0.insert(blocker);
    }

    /// A task is completed, or open again. Only those it waits for have it in their chains; when
    /// it is completed they usually are, too, and nothing is left to do.
    pub(crate) fn reopened_or_done(&mut self, task: &Task, before: &Task) {
        self.0.extend(&before.blocked_by);
        self.0.extend(&task.blocked_by);
        if task.status != Status::Completed {
            self.0.insert(task.id);
        }
    }
}

/// Computes the stale chains again, and those of the tasks before them as far as they change.
pub(crate) fn settle(visit: &mut Visit<'_>) -> Result<(), BoardError> {
    let mut stale = std::mem::take(&mut visit.ranks).0;
    // For tasks outside this change: chains of those that wait, 0 if completed.
    let mut below: HashMap<TaskId, i32> = HashMap::new();
    while !stale.is_empty() {
        visit.load(stale.iter().copied())?;
        stale.retain(|id| visit.get(*id).is_some_and(Stored::is_open));
        let dependents = stale.iter().filter_map(|id| visit.get(*id));
        let dependents: BTreeSet<TaskId> = dependents
            .flat_map(|stored| &stored.task.blocks)
            .filter(|id| visit.get(**id).is_none() && !below.contains_key(id))
            .copied()
            .collect();
        look_below(visit, &dependents, &mut below)?;
        let mut before = BTreeSet::new();
        // Blockers mostly have the lower ids, so one round from the top mostly suffices.
        for id in stale.into_iter().rev() {
            let Some(stored) = visit.get(id) else {
                continue;
            };
            let length = |id: &TaskId| match visit.get(*id) {
                Some(stored) if stored.is_open() => stored.chain,
                Some(_) => 0,
                None => below.get(id).copied().unwrap_or(0),
            };
            let chain = 1 + stored.task.blocks.iter().map(length).max().unwrap_or(0);
            if chain != stored.chain {
                before.extend(&stored.task.blocked_by);
                visit.set_chain(id, chain);
            }
        }
        stale = before;
    }
    Ok(())
}

fn look_below(
    visit: &Visit<'_>,
    ids: &BTreeSet<TaskId>,
    below: &mut HashMap<TaskId, i32>,
) -> Result<(), BoardError> {
    if ids.is_empty() {
        return Ok(());
    }
    let (session, wanted) = (visit.session, numbers(ids));
    let rows = session.query(
        "SELECT id, CASE WHEN status = 2 THEN 0 ELSE chain END AS chain FROM @.tasks \
         WHERE list = $1 AND id = ANY($2)",
        &[(&visit.list, Type::INT4), (&wanted, Type::INT8_ARRAY)],
    )?;
    for row in &rows {
        below.insert(
            id(session, session.column(row, "id")?)?,
            session.column(row, "chain")?,
        );
    }
    Ok(())
}
