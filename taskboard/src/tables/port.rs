//! The port of a board, on tables: each change is one transaction.

use database::Type;

use crate::backend::{Backend, Feed, Poll, Whose};
use crate::caller::Caller;
use crate::error::{BoardError, Refusal};
use crate::finding::Finding;
use crate::id::{TaskId, insert};
use crate::record::Record;
use crate::rules::batch::Batch;
use crate::rules::claim::ClaimRequest;
use crate::rules::complete::{self, Completed};
use crate::rules::cycles::cycle_with;
use crate::rules::needs::{Edit, Needs};
use crate::rules::next::Next;
use crate::snapshot::Snapshot;
use crate::task::{Status, Task};

use super::Tables;
use super::list::{made_of, select};
use super::rows::{Answered, id as task_id};
use super::visit::only;

impl Backend for Tables {
    fn exists(&self) -> bool {
        let there = self.read(|session, list| {
            let sql = "SELECT EXISTS (SELECT 1 FROM @.lists WHERE name = $1) AS there";
            let row = session.query_one(sql, &[(&list, Type::TEXT)])?;
            Ok(session.column(&row, "there")?)
        });
        // If the database cannot be asked, the list counts as there: the caller meets the error
        // when it uses the list.
        there.unwrap_or(true)
    }

    fn get(&self, id: TaskId) -> Result<Task, BoardError> {
        let number = id.get().cast_signed();
        self.read(|session, list| {
            let rows = select(session, list, "id = $2", &[(&number, Type::INT8)])?;
            let task = rows.into_iter().next().map(|stored| stored.task);
            task.ok_or(BoardError::NotFound { id })
        })
    }

    fn around(&self, id: TaskId) -> Result<Snapshot, BoardError> {
        let number = id.get().cast_signed();
        self.read(|session, list| {
            let near = "id = $2 OR id IN (SELECT unnest(n.blocks || n.blocked_by) FROM @.tasks n \
                WHERE n.list = (SELECT l.id FROM @.lists l WHERE l.name = $1) AND n.id = $2)";
            let rows = select(session, list, near, &[(&number, Type::INT8)])?;
            Ok(made_of(&rows))
        })
    }

    fn snapshot(&self) -> Result<Snapshot, BoardError> {
        self.read(|session, list| Ok(made_of(&select(session, list, "true", &[])?)))
    }

    fn ready(&self) -> Result<Vec<TaskId>, BoardError> {
        self.return_expired()?;
        self.read(|session, list| {
            let rows = session.query(
                "SELECT id FROM @.tasks \
                 WHERE list = (SELECT l.id FROM @.lists l WHERE l.name = $1) AND status = 0 \
                 AND owner IS NULL AND open_blockers = 0 AND NOT parked AND NOT internal \
                 ORDER BY priority DESC, chain DESC, id",
                &[(&list, Type::TEXT)],
            )?;
            let ids = rows
                .iter()
                .map(|row| task_id(session, session.column(row, "id")?));
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    fn record(&self, id: TaskId) -> Result<Option<Record>, BoardError> {
        // Only the board writes here, so the row itself is the record.
        match self.get(id) {
            Ok(task) => Ok(Some(Record::of(&task))),
            Err(BoardError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn reserve(&self, batch: &Batch<'_>) -> Result<Vec<TaskId>, BoardError> {
        let count = i64::try_from(batch.len()).unwrap_or(i64::MAX);
        let done = self.change(|visit| {
            visit.load_around(batch)?;
            let session = visit.session;
            let row = session.query_one(
                "UPDATE @.lists SET high_water = high_water + $2 WHERE id = $1 \
                 RETURNING high_water - $2 AS last",
                &[(&visit.list, Type::INT4), (&count, Type::INT8)],
            )?;
            let last: i64 = session.column(&row, "last")?;
            let ids = batch.ids_after(last.cast_unsigned());
            batch.check(&visit.index(), &ids)?;
            Ok(Answered {
                ids,
                ..Answered::default()
            })
        })?;
        Ok(done.ids)
    }

    fn publish(&self, batch: &Batch<'_>, tasks: &[Task]) -> Result<bool, BoardError> {
        let new: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        self.change(|visit| {
            visit.load_around(batch)?;
            batch.check(&visit.index(), &new)?;
            visit.add_all(tasks);
            Ok(Answered::default())
        })?;
        Ok(true)
    }

    fn edit(&self, id: TaskId, needs: &Needs<'_>, edit: Edit<'_>) -> Result<Task, BoardError> {
        self.change_one(|visit| {
            let before = visit.with_blockers(id)?;
            visit.load_for(needs)?;
            let edited = edit(&visit.index(), &before, visit.now_ms)?;
            visit.put(edited.op, edited.task.clone())?;
            Ok(edited.task)
        })
    }

    fn completable(&self, id: TaskId, caller: &Caller) -> Result<(Task, u64), BoardError> {
        let mut shown = None;
        self.change(|visit| {
            let task = visit.with_blockers(id)?;
            complete::check(&visit.index(), &task, caller)?;
            shown = Some((task, visit.stored(id)?.version.cast_unsigned()));
            Ok(Answered::default())
        })?;
        shown.ok_or(BoardError::NotFound { id })
    }

    fn complete(
        &self,
        id: TaskId,
        shown: Option<u64>,
        needs: &Needs<'_>,
        finish: Edit<'_>,
    ) -> Result<Completed, BoardError> {
        let answer = self.change(|visit| {
            let version = visit.stored(id)?.version.cast_unsigned();
            if shown.is_some_and(|shown| shown != version) {
                return Err(BoardError::ChangedMeanwhile { id });
            }
            let before = visit.with_blockers(id)?;
            visit.load_for(needs)?;
            let edited = finish(&visit.index(), &before, visit.now_ms)?;
            visit.put(edited.op, edited.task.clone())?;
            visit.flush()?;
            let finished = visit.finished()?;
            Ok(Answered {
                ids: visit.startable(&edited.task.blocks)?,
                text: finished.and_then(|(shown, checks)| complete::nudge_for(shown, checks)),
                tasks: vec![edited.task],
            })
        })?;
        Ok(Completed {
            task: only(answer.tasks)?,
            unblocked: answer.ids,
            nudge: answer.text,
        })
    }

    fn block(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.change_one(|visit| {
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

    fn unblock(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.change_one(|visit| {
            let mut task = visit.task(dependent)?.clone();
            task.blocked_by.retain(|id| *id != blocker);
            visit.put("unblock", task.clone())?;
            Ok(task)
        })
    }

    fn delete(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        self.change_one(|visit| {
            let task = visit.task(id)?.clone();
            caller.check_delete(&task)?;
            let mut alone = task.clone();
            (alone.blocks, alone.blocked_by) = (Vec::new(), Vec::new());
            visit.put("delete", alone)?;
            visit.remove("delete", &[id])?;
            Ok(task)
        })
    }

    fn reset(&self, force: bool) -> Result<usize, BoardError> {
        let done = self.change(|visit| {
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
        Ok(done.ids.len())
    }

    fn claim_next(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        self.next_for(request)
    }

    fn give_back(&self, whose: Whose<'_>) -> Result<Vec<Task>, BoardError> {
        let (condition, holder) = match whose {
            Whose::Agent(agent) => ("owner = $2 AND owner IS NOT NULL AND status < 2", agent),
            Whose::Run(run) | Whose::ClaimedBy(run) => ("lease_run = $2", run),
        };
        let done = self.change(|visit| {
            let mut returned = Vec::new();
            for id in visit.find(condition, &[(&holder, Type::TEXT)])? {
                let mut task = visit.task(id)?.clone();
                task.make_pending();
                visit.put("unassign", task.clone())?;
                returned.push(task);
            }
            Ok(Answered::many(returned))
        })?;
        Ok(done.tasks)
    }

    fn return_overdue(&self) -> Result<bool, BoardError> {
        let overdue = self.read(|session, list| {
            let row = session.query_one(
                "SELECT coalesce((SELECT t.lease_until FROM @.tasks t \
                 WHERE t.list = (SELECT l.id FROM @.lists l WHERE l.name = $1) \
                 AND t.lease_until IS NOT NULL ORDER BY t.lease_until LIMIT 1) \
                 <= @.clock_ms(), false) AS overdue",
                &[(&list, Type::TEXT)],
            )?;
            Ok(session.column(&row, "overdue")?)
        })?;
        if overdue {
            self.return_expired()?;
        }
        Ok(overdue)
    }

    /// Without a line in the history: they would drown everything else.
    fn renew(&self, run: &str, milliseconds: i64) -> Result<Vec<(TaskId, u64)>, BoardError> {
        self.read(|session, list| {
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
                let id = task_id(session, session.column(row, "id")?)?;
                held.push((id, token.cast_unsigned()));
            }
            held.sort_unstable();
            Ok(held)
        })
    }

    fn watch(&self, since: Option<u64>) -> Result<Box<dyn Feed + '_>, BoardError> {
        self.follow(since)
    }

    fn last_change(&self) -> Result<u64, BoardError> {
        self.last()
    }

    fn glance(&self) -> Box<dyn Poll> {
        Box::new(super::glance::Seen::new(self.again()))
    }

    fn doctor(&self, fix: bool) -> Result<Vec<Finding>, BoardError> {
        self.examine(fix)
    }
}
