//! One change: a transaction that has its list for itself.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use database::{Operation, Session, Type};
use store::StoreError;
use store::atomic::Stamp;

use crate::error::BoardError;
use crate::id::TaskId;
use crate::rules::index::{Index, Slim};
use crate::task::{Status, Task};

use super::rows::{Answered, COLUMNS, Columns, Stored, id, ids, numbers, stored};
use super::{Tables, channel, ranks, require};

/// A change under way.
pub(crate) struct Visit<'s> {
    pub(crate) session: &'s Session<'s>,
    pub(crate) list: i32,
    pub(crate) now_ms: i64,
    /// Tasks that were loaded, as they are to be.
    pub(super) known: BTreeMap<TaskId, Stored>,
    /// The facts about other tasks that the rules need.
    slims: BTreeMap<TaskId, Slim>,
    /// The tasks to write, and their operations in the history; `None` if only a derived column
    /// changed.
    dirty: BTreeMap<TaskId, Option<&'static str>>,
    /// The order in which tasks were changed.
    order: Vec<TaskId>,
    pub(crate) ranks: ranks::Stale,
    /// True if this visit wrote a change, and waiting processes must be notified.
    wrote: bool,
}

impl Tables {
    /// Carries out a change.
    ///
    /// Tasks whose lease ran out are returned first, in a transaction of its own: that stays done
    /// if the change is refused.
    pub(super) fn change(
        &self,
        mut body: impl FnMut(&mut Visit<'_>) -> Result<Answered, BoardError>,
    ) -> Result<Answered, BoardError> {
        require(&self.database)?;
        loop {
            let expired = Cell::new(false);
            let done = self.database.change(Operation::new(), |session| {
                let (mut visit, late) = Visit::enter(session, &self.name)?;
                expired.set(late);
                let answer = if late {
                    visit.expire()?
                } else {
                    body(&mut visit)?
                };
                visit.leave()?;
                Ok::<_, BoardError>(answer)
            })?;
            if !expired.get() {
                return Ok(done);
            }
        }
    }

    /// The same for a change of one task that exists.
    pub(super) fn change_one(
        &self,
        mut body: impl FnMut(&mut Visit<'_>) -> Result<Task, BoardError>,
    ) -> Result<Task, BoardError> {
        let done = self.change(|visit| body(visit).map(Answered::one))?;
        only(done.tasks)
    }

    /// Returns the tasks whose lease ran out; every change does that first.
    pub(super) fn return_expired(&self) -> Result<(), BoardError> {
        self.change(|_| Ok(Answered::default())).map(drop)
    }
}

/// The task of an answer that has one.
pub(crate) fn only(tasks: Vec<Task>) -> Result<Task, BoardError> {
    let task = tasks.into_iter().next();
    task.ok_or_else(|| BoardError::invalid("answer", "it names no task"))
}

impl<'s> Visit<'s> {
    /// Begins a change; the second value says that leases ran out.
    fn enter(session: &'s Session<'s>, name: &str) -> Result<(Self, bool), BoardError> {
        let row = session.query_one("SELECT * FROM @.enter($1)", &[(&name, Type::TEXT)])?;
        let existing: String = session.column(&row, "exact")?;
        if existing != name {
            return Err(StoreError::NameClash {
                what: "list",
                given: name.to_owned(),
                existing,
            }
            .into());
        }
        let visit = Self {
            list: session.column(&row, "list")?,
            now_ms: session.column(&row, "now_ms")?,
            session,
            known: BTreeMap::new(),
            slims: BTreeMap::new(),
            dirty: BTreeMap::new(),
            order: Vec::new(),
            ranks: ranks::Stale::default(),
            wrote: false,
        };
        Ok((visit, session.column(&row, "expired")?))
    }

    /// Returns the tasks whose lease ran out.
    fn expire(&mut self) -> Result<Answered, BoardError> {
        let now = self.now_ms;
        for id in self.find("lease_until <= $2", &[(&now, Type::INT8)])? {
            let mut task = self.task(id)?.clone();
            task.make_pending();
            self.put("expire", task)?;
        }
        Ok(Answered::default())
    }

    /// Loads the tasks of the list for which `condition` holds, whose parameters start at `$2`.
    pub(crate) fn find(
        &mut self,
        condition: &str,
        more: &[database::Parameter<'_>],
    ) -> Result<Vec<TaskId>, BoardError> {
        let sql = format!(
            "SELECT {COLUMNS}, version, chain, open_blockers FROM @.tasks \
             WHERE list = $1 AND ({condition}) ORDER BY id"
        );
        let mut params: Vec<database::Parameter<'_>> = vec![(&self.list, Type::INT4)];
        params.extend(more.iter().cloned());
        let rows = self.session.query(&sql, &params)?;
        let mut found = Vec::new();
        for row in &rows {
            let stored = stored(self.session, row)?;
            found.push(stored.task.id);
            // A task that this visit changed already stays as it is.
            self.known.entry(stored.task.id).or_insert(stored);
        }
        Ok(found)
    }

    /// Loads these tasks, as far as they are there.
    pub(crate) fn load(&mut self, ids: impl IntoIterator<Item = TaskId>) -> Result<(), BoardError> {
        let wanted: BTreeSet<TaskId> = ids.into_iter().collect();
        let missing = numbers(wanted.iter().filter(|id| !self.known.contains_key(id)));
        if !missing.is_empty() {
            self.find("id = ANY($2)", &[(&missing, Type::INT8_ARRAY)])?;
        }
        Ok(())
    }

    /// A task, as it is to be.
    pub(crate) fn task(&mut self, id: TaskId) -> Result<&Task, BoardError> {
        self.stored(id).map(|stored| &stored.task)
    }

    pub(crate) fn stored(&mut self, id: TaskId) -> Result<&Stored, BoardError> {
        self.load([id])?;
        self.get(id).ok_or(BoardError::NotFound { id })
    }

    /// A task that is loaded.
    pub(crate) fn get(&self, id: TaskId) -> Option<&Stored> {
        self.known.get(&id)
    }

    /// A task with those it waits for.
    pub(crate) fn with_blockers(&mut self, id: TaskId) -> Result<Task, BoardError> {
        let task = self.task(id)?.clone();
        self.load(task.blocked_by.iter().copied())?;
        Ok(task)
    }

    /// Loads the tasks that wait for these tasks, and the tasks that wait for those, as far as the
    /// rules read them.
    pub(crate) fn load_below(&mut self, from: &[TaskId]) -> Result<(), BoardError> {
        let from = numbers(from);
        if from.is_empty() {
            return Ok(());
        }
        let rows = self.session.query(
            "WITH RECURSIVE below(id) AS (SELECT unnest($2::bigint[]) UNION \
             SELECT unnest(t.blocks) FROM below b JOIN @.tasks t ON t.list = $1 AND t.id = b.id) \
             SELECT t.id, t.status, t.blocked_by, t.blocks FROM below b \
             JOIN @.tasks t ON t.list = $1 AND t.id = b.id",
            &[(&self.list, Type::INT4), (&from, Type::INT8_ARRAY)],
        )?;
        for row in &rows {
            let session = self.session;
            let status: i16 = session.column(row, "status")?;
            let slim = Slim {
                status: Status::from_code(status.cast_unsigned().into()).unwrap_or_default(),
                blocked_by: ids(session, session.column(row, "blocked_by")?)?.into(),
                blocks: ids(session, session.column(row, "blocks")?)?.into(),
                ..Slim::default()
            };
            self.slims
                .insert(id(session, session.column(row, "id")?)?, slim);
        }
        Ok(())
    }

    /// The loaded tasks, as the rules read them. A task that is not loaded counts as missing, so
    /// the caller loads it first.
    pub(crate) fn index(&self) -> Index {
        let known = self.known.iter().map(|(id, stored)| {
            let version = stored.version.cast_unsigned();
            (*id, Slim::of(&stored.task, version, Stamp::default()))
        });
        let others = self
            .slims
            .iter()
            .filter(|(id, _)| !self.known.contains_key(id));
        let others = others.map(|(id, slim)| (*id, slim.clone()));
        Index::build(known.chain(others), BTreeMap::new())
    }

    /// Makes `task` the task to write, without reading others.
    pub(crate) fn set(&mut self, op: &'static str, task: Task) {
        let id = task.id;
        if let Some(stored) = self.known.get_mut(&id) {
            stored.task = task;
            self.mark(id, Some(op));
        }
    }

    pub(crate) fn set_chain(&mut self, id: TaskId, chain: i32) {
        if let Some(stored) = self.known.get_mut(&id) {
            stored.chain = chain;
            self.mark(id, None);
        }
    }

    /// Deletes these tasks, which no other task names any more.
    pub(crate) fn remove(&mut self, op: &'static str, ids: &[TaskId]) -> Result<(), BoardError> {
        for id in ids {
            // Its last changes before the deletion need not be stored.
            if self.dirty.remove(id).is_some() {
                self.order.retain(|it| it != id);
            }
        }
        self.flush()?;
        self.wrote |= !ids.is_empty();
        let gone = numbers(ids);
        self.session.execute(
            "WITH gone AS (DELETE FROM @.tasks WHERE list = $1 AND id = ANY($2) RETURNING id) \
             INSERT INTO @.changes (list, at, op, id) SELECT $1, $3, $4, id FROM gone ORDER BY id",
            &[
                (&self.list, Type::INT4),
                (&gone, Type::INT8_ARRAY),
                (&self.now_ms, Type::INT8),
                (&op, Type::TEXT),
            ],
        )?;
        for id in ids {
            self.known.remove(id);
        }
        Ok(())
    }

    pub(super) fn mark(&mut self, id: TaskId, op: Option<&'static str>) {
        let noted = self.dirty.entry(id).or_insert_with(|| {
            self.order.push(id);
            op
        });
        // One change of a task is one line of its history.
        *noted = noted.or(op);
    }

    /// Writes everything that was changed so far.
    pub(crate) fn flush(&mut self) -> Result<(), BoardError> {
        ranks::settle(self)?;
        let mut columns = Columns::default();
        for id in std::mem::take(&mut self.order) {
            if let (Some(op), Some(stored)) = (self.dirty.get(&id), self.known.get(&id)) {
                columns.push(stored, *op);
            }
        }
        self.dirty.clear();
        if !columns.ids.is_empty() {
            self.wrote = true;
            super::changes::write(self, &columns)?;
        }
        Ok(())
    }

    fn leave(mut self) -> Result<(), BoardError> {
        self.flush()?;
        if !self.wrote {
            return Ok(());
        }
        // Numbered here, while no claim is in progress, so that a woken process only has to read.
        let channel = channel(self.session.schema());
        self.session.query(
            "SELECT @.number_changes($1), pg_notify($2, '')",
            &[(&self.list, Type::INT4), (&channel, Type::TEXT)],
        )?;
        Ok(())
    }
}
