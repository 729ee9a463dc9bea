//! The changes of a board, each one transaction.

use std::collections::BTreeSet;

use database::Type;

use crate::board::{Board, Caller};
use crate::claim::Whose;
use crate::complete::{self, Completed};
use crate::cycles::cycle_with;
use crate::edit::Update;
use crate::error::{BoardError, Refusal};
use crate::facts::TaskResult;
use crate::id::TaskId;
use crate::index::Index;
use crate::needs::Needs;
use crate::prepared::Edited;
use crate::remove::check_delete;
use crate::section::insert;
use crate::snapshot::Entry;
use crate::task::{Status, Task};

use super::rows::{Answered, ids, numbers};
use super::visit::{Visit, only};

/// Refuses new tasks with these ids, given what is loaded of the board.
type Check<'a> = &'a dyn Fn(&Index, &[TaskId]) -> Result<(), BoardError>;

impl Visit<'_> {
    /// Loads what an edit has to know besides the task and its blockers.
    fn load_for(&mut self, needs: &Needs<'_>) -> Result<(), BoardError> {
        if let Some(agent) = needs.agent {
            let held = "owner = $2 AND owner IS NOT NULL AND status < 2";
            self.find(held, &[(&agent, Type::TEXT)])?;
        }
        let ends = needs.edges.iter().flat_map(|(from, to)| [*from, *to]);
        self.load(ends)?;
        let dependents: Vec<TaskId> = needs.edges.iter().map(|(_, to)| *to).collect();
        self.load_below(&dependents)
    }

    /// What of these can start now, lowest first.
    fn startable(&self, ids_: &[TaskId]) -> Result<Vec<TaskId>, BoardError> {
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

    /// How many tasks are shown, and whether one of all checks something; nothing while one that
    /// is shown is open.
    fn finished(&self) -> Result<Option<(usize, bool)>, BoardError> {
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
}

impl Board {
    /// Changes task `id` as `edit` says.
    pub(crate) fn edit_in_tables(
        &self,
        id: TaskId,
        needs: &Needs<'_>,
        mut edit: impl FnMut(&Index, &Task, i64) -> Result<Edited, BoardError>,
    ) -> Option<Result<Task, BoardError>> {
        self.one_in_tables(|visit| {
            let before = visit.with_blockers(id)?;
            visit.load_for(needs)?;
            let edited = self.edited(&mut edit, &visit.index(), &before, visit.now_ms)?;
            visit.put(edited.op, edited.task.clone())?;
            Ok(edited.task)
        })
    }

    /// The task and its version, if the rules allow `caller` to complete it now.
    pub(crate) fn completable_in_tables(
        &self,
        id: TaskId,
        caller: &Caller,
    ) -> Option<Result<Entry, BoardError>> {
        let mut entry = None;
        let done = self.in_tables(|visit| {
            let task = visit.with_blockers(id)?;
            complete::check(&visit.index(), &task, caller)?;
            entry = Some(visit.stored(id)?.entry());
            Ok(Answered::default())
        })?;
        Some(done.and_then(|_| entry.ok_or(BoardError::NotFound { id })))
    }

    pub(crate) fn complete_in_tables(
        &self,
        id: TaskId,
        caller: &Caller,
        update: &Update,
        shown: Option<u64>,
        result: Option<&TaskResult>,
    ) -> Option<Result<Completed, BoardError>> {
        let done = self.in_tables(|visit| {
            let version = visit.stored(id)?.version.cast_unsigned();
            if shown.is_some_and(|shown| shown != version) {
                return Err(BoardError::ChangedMeanwhile { id });
            }
            let before = visit.with_blockers(id)?;
            visit.load_for(&Needs::edges(update.edges(id)))?;
            let mut finish = |index: &Index, task: &Task, _: i64| {
                complete::finish(index, task, caller, update, result)
            };
            let edited = self.edited(&mut finish, &visit.index(), &before, visit.now_ms)?;
            visit.put(edited.op, edited.task.clone())?;
            visit.flush()?;
            let finished = visit.finished()?;
            Ok(Answered {
                ids: visit.startable(&edited.task.blocks)?,
                text: finished.and_then(|(shown, checks)| complete::nudge_for(shown, checks)),
                tasks: vec![edited.task],
            })
        })?;
        Some(done.and_then(|answer| {
            Ok(Completed {
                task: only(answer.tasks)?,
                unblocked: answer.ids,
                nudge: answer.text,
            })
        }))
    }

    pub(crate) fn block_in_tables(
        &self,
        blocker: TaskId,
        dependent: TaskId,
    ) -> Option<Result<Task, BoardError>> {
        self.one_in_tables(|visit| {
            visit.task(blocker)?;
            let mut task = visit.task(dependent)?.clone();
            if !task.blocked_by.contains(&blocker) {
                visit.load_below(&[dependent])?;
                let edges = visit.index().edges();
                if let Some(path) = cycle_with(&edges, blocker, dependent) {
                    return Err(BoardError::Cycle { path });
                }
                insert(&mut task.blocked_by, blocker);
                visit.put("block", task.clone())?;
            }
            Ok(task)
        })
    }

    pub(crate) fn unblock_in_tables(
        &self,
        blocker: TaskId,
        dependent: TaskId,
    ) -> Option<Result<Task, BoardError>> {
        self.one_in_tables(|visit| {
            let mut task = visit.task(dependent)?.clone();
            task.blocked_by.retain(|id| *id != blocker);
            visit.put("unblock", task.clone())?;
            Ok(task)
        })
    }

    pub(crate) fn delete_in_tables(
        &self,
        id: TaskId,
        caller: &Caller,
    ) -> Option<Result<Task, BoardError>> {
        self.one_in_tables(|visit| {
            let task = visit.task(id)?.clone();
            check_delete(&task, caller)?;
            let mut alone = task.clone();
            (alone.blocks, alone.blocked_by) = (Vec::new(), Vec::new());
            visit.put("delete", alone)?;
            visit.remove("delete", &[id])?;
            Ok(task)
        })
    }

    pub(crate) fn reset_in_tables(&self, force: bool) -> Option<Result<usize, BoardError>> {
        let done = self.in_tables(|visit| {
            let all = visit.find("true", &[])?;
            for id in all.iter().filter(|_| !force) {
                let task = visit.task(*id)?;
                if task.status == Status::InProgress {
                    let owner = task.owner.clone().unwrap_or_else(|| "nobody".into());
                    return Err(BoardError::refused(task, Refusal::AlreadyClaimed { owner }));
                }
            }
            visit.remove("reset", &all)?;
            Ok(Answered {
                ids: all,
                ..Answered::default()
            })
        })?;
        Some(done.map(|answer| answer.ids.len()))
    }

    pub(crate) fn return_in_tables(
        &self,
        whose: Whose<'_>,
    ) -> Option<Result<Vec<Task>, BoardError>> {
        let done = self.in_tables(|visit| {
            let found = match whose {
                Whose::Agent(agent) => {
                    let held = "owner = $2 AND owner IS NOT NULL AND status < 2";
                    visit.find(held, &[(&agent, Type::TEXT)])?
                }
                Whose::Run(run) => visit.find("lease_run = $2", &[(&run, Type::TEXT)])?,
            };
            let mut returned = Vec::new();
            for id in found {
                let mut task = visit.task(id)?.clone();
                task.make_pending();
                visit.put("unassign", task.clone())?;
                returned.push(task);
            }
            Ok(Answered::many(returned))
        })?;
        Some(done.map(|answer| answer.tasks))
    }

    /// Extends the leases of `run` that have not run out, without a line in the history: they
    /// would drown everything else.
    pub(crate) fn renew_in_tables(
        &self,
        run: &str,
        milliseconds: i64,
    ) -> Option<Result<Vec<(TaskId, u64)>, BoardError>> {
        self.read_tables(|session, list| {
            // By the row's lock a lease is either extended or returned. Twice does no harm.
            let rows = session.query(
                "UPDATE @.tasks SET lease_until = greatest(lease_until, @.clock_ms() + $3) \
                 WHERE list = (SELECT l.id FROM @.lists l WHERE l.name = $1) AND lease_run = $2 \
                 AND lease_until > @.clock_ms() RETURNING id, lease_token",
                &[
                    (&list, Type::TEXT),
                    (&run, Type::TEXT),
                    (&milliseconds, Type::INT8),
                ],
            )?;
            let mut held = Vec::new();
            for row in &rows {
                let token: i64 = session.column(row, "lease_token")?;
                let id = super::rows::id(session, session.column(row, "id")?)?;
                held.push((id, token.cast_unsigned()));
            }
            held.sort_unstable();
            Ok(held)
        })
    }

    /// Reserves ids for tasks that are to be created, if `check` finds nothing wrong with them.
    pub(crate) fn reserve_in_tables(
        &self,
        count: usize,
        near: &[TaskId],
        below: &[TaskId],
        check: Check<'_>,
    ) -> Option<Result<Vec<TaskId>, BoardError>> {
        let done = self.in_tables(|visit| {
            visit.load(near.iter().copied())?;
            visit.load_below(below)?;
            let session = visit.session;
            let row = session.query_one(
                "UPDATE @.lists SET high_water = high_water + $2 WHERE id = $1 \
                 RETURNING high_water - $2 AS last",
                &[
                    (&visit.list, Type::INT4),
                    (&i64::try_from(count).unwrap_or(i64::MAX), Type::INT8),
                ],
            )?;
            let last: i64 = session.column(&row, "last")?;
            let given: Option<Vec<TaskId>> = (1..=count as u64)
                .map(|n| TaskId::new(last.cast_unsigned().saturating_add(n)))
                .collect();
            let ids =
                given.ok_or_else(|| BoardError::invalid("task ids", "there are none left"))?;
            check(&visit.index(), &ids)?;
            Ok(Answered {
                ids,
                ..Answered::default()
            })
        })?;
        Some(done.map(|answer| answer.ids))
    }

    /// Puts new tasks on the board, with both sides of their edges.
    pub(crate) fn publish_in_tables(
        &self,
        tasks: &[Task],
        near: &[TaskId],
        below: &[TaskId],
        check: Check<'_>,
    ) -> Option<Result<(), BoardError>> {
        let new: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        let done = self.in_tables(|visit| {
            visit.load(near.iter().copied())?;
            visit.load_below(below)?;
            check(&visit.index(), &new)?;
            visit.add_all(tasks);
            Ok(Answered::default())
        })?;
        Some(done.map(drop))
    }
}

impl Visit<'_> {
    /// Takes in new tasks, and the other sides of their edges.
    fn add_all(&mut self, tasks: &[Task]) {
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
