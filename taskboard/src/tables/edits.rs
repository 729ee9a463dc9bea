//! The rows that the changes of a board load and write besides their task.

use std::collections::BTreeSet;

use database::Type;

use crate::error::BoardError;
use crate::id::TaskId;
use crate::rules::batch::Batch;
use crate::rules::needs::Needs;
use crate::task::Task;

use super::rows::{ids, numbers};
use super::visit::Visit;

impl Visit<'_> {
    /// Loads what a batch of new tasks refers to.
    pub(super) fn load_around(&mut self, batch: &Batch<'_>) -> Result<(), BoardError> {
        self.load(batch.existing().map(|(id, _)| id))?;
        let waiting = batch.existing().filter(|(_, waits)| *waits);
        let waiting: Vec<TaskId> = waiting.map(|(id, _)| id).collect();
        self.load_below(&waiting)
    }

    /// Loads the facts that an edit needs besides the task and its blockers.
    pub(super) fn load_for(&mut self, needs: &Needs<'_>) -> Result<(), BoardError> {
        if let Some(agent) = needs.agent {
            let held = "owner = $2 AND owner IS NOT NULL AND status < 2";
            self.find(held, &[(&agent, Type::TEXT)])?;
        }
        let ends = needs.edges.iter().flat_map(|(from, to)| [*from, *to]);
        self.load(ends)?;
        let dependents: Vec<TaskId> = needs.edges.iter().map(|(_, to)| *to).collect();
        self.load_below(&dependents)
    }

    /// The tasks among these that can start now, lowest first.
    pub(super) fn startable(&self, ids_: &[TaskId]) -> Result<Vec<TaskId>, BoardError> {
        if ids_.is_empty() {
            return Ok(Vec::new());
        }
        let row = self.session.query_one(
            "SELECT coalesce(array_agg(id ORDER BY id), '{}') AS ids FROM @.tasks WHERE list = $1 \
             AND id = ANY($2) AND status = 0 AND open_blockers = 0 AND NOT parked",
            &[(&self.list, Type::INT4), (&numbers(ids_), Type::INT8_ARRAY)],
        )?;
        Ok(ids(self.session, self.session.column(&row, "ids")?)?)
    }

    /// Number of tasks shown, and true if any task has a check; `None` while a shown task is open.
    pub(super) fn finished(&self) -> Result<Option<(usize, bool)>, BoardError> {
        let row = self.session.query_one(
            "SELECT @.anything_open($1) AS open",
            &[(&self.list, Type::INT4)],
        )?;
        if self.session.column::<bool>(&row, "open")? {
            return Ok(None);
        }
        let row = self.session.query_one(
            "SELECT count(*) FILTER (WHERE NOT internal) AS shown, \
             coalesce(bool_or(checks), false) AS checks FROM @.tasks WHERE list = $1",
            &[(&self.list, Type::INT4)],
        )?;
        let shown: i64 = self.session.column(&row, "shown")?;
        let checks: bool = self.session.column(&row, "checks")?;
        Ok(Some((usize::try_from(shown).unwrap_or(0), checks)))
    }

    /// Takes in new tasks, and the other sides of their edges.
    pub(super) fn add_all(&mut self, tasks: &[Task]) {
        let new: BTreeSet<TaskId> = tasks.iter().map(|task| task.id).collect();
        for task in tasks {
            self.add(task.clone(), &new);
        }
        for task in tasks {
            for blocker in task.blocked_by.iter().filter(|id| !new.contains(id)) {
                self.name_dependent(*blocker, task.id);
            }
            for dependent in task.blocks.iter().filter(|id| !new.contains(id)) {
                self.name_blocker(*dependent, task.id);
            }
        }
    }
}
