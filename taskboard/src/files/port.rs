//! The port of a board, on files.

use std::collections::{BTreeSet, HashMap};

use store::atomic::Stamp;

use crate::backend::{Backend, Feed, Poll, Whose};
use crate::caller::Caller;
use crate::error::{BoardError, Refusal};
use crate::files::Files;
use crate::files::change::Change;
use crate::files::intent::{Intent, Step};
use crate::files::read::{self, Read, read_task};
use crate::files::section::{ListDir, Section};
use crate::files::slots::settled_whole;
use crate::finding::Finding;
use crate::id::TaskId;
use crate::record::Record;
use crate::rules::batch::Batch;
use crate::rules::claim::ClaimRequest;
use crate::rules::complete::{self, Completed};
use crate::rules::cycles::cycle_with;
use crate::rules::index::{Index, Slim};
use crate::rules::needs::{Edit, Needs};
use crate::rules::next::Next;
use crate::rules::ready::Dependencies;
use crate::snapshot::Snapshot;
use crate::task::{Status, Task};

impl Backend for Files {
    fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    fn get(&self, id: TaskId) -> Result<Task, BoardError> {
        match read_task(&self.dir, id)? {
            Read::Task(entry) => Ok(entry.task),
            Read::Absent => Err(BoardError::NotFound { id }),
            Read::Unreadable(bad) => Err(bad.error(id)),
        }
    }

    fn around(&self, id: TaskId) -> Result<Snapshot, BoardError> {
        let mtime = std::fs::metadata(&self.dir).ok();
        let mtime = mtime.map(|meta| Stamp::of(&meta).mtime_ns);
        if mtime.is_some() && mtime == settled_whole(&self.dir.join(".ccb")) {
            read::around(&self.dir, id)
        } else {
            self.snapshot()
        }
    }

    fn snapshot(&self) -> Result<Snapshot, BoardError> {
        read::load(&self.dir)
    }

    fn ready(&self) -> Result<Vec<TaskId>, BoardError> {
        self.section(|section| Ok(section.live().index.ready()))
    }

    fn record(&self, id: TaskId) -> Result<Option<Record>, BoardError> {
        self.recorded(id)
    }

    fn dispute(&self, task: &Task) -> Result<(), BoardError> {
        self.park_disputed(task)
    }

    fn reserve(&self, batch: &Batch<'_>) -> Result<Vec<TaskId>, BoardError> {
        self.reserve_for(batch)
    }

    fn publish(&self, batch: &Batch<'_>, tasks: &[Task]) -> Result<bool, BoardError> {
        self.publish_batch(batch, tasks)
    }

    fn edit(&self, id: TaskId, needs: &Needs<'_>, edit: Edit<'_>) -> Result<Task, BoardError> {
        let changed = self.change(Change {
            list: ListDir::for_needs(needs),
            choose: |section: &mut Section<'_>| Ok(Ok::<_, BoardError>(section.read(id)?)),
            edit,
            then: |_: &Index| (),
        })?;
        let (task, ()) = changed?;
        self.complete_edges(&needs.edges);
        Ok(task)
    }

    fn completable(&self, id: TaskId, caller: &Caller) -> Result<(Task, u64), BoardError> {
        self.section(|section| {
            let shown = section.read(id)?;
            complete::check(section.index(), &shown.task, caller)?;
            Ok((shown.task, shown.fingerprint))
        })
    }

    fn complete(
        &self,
        id: TaskId,
        shown: Option<u64>,
        needs: &Needs<'_>,
        finish: Edit<'_>,
    ) -> Result<Completed, BoardError> {
        let completed = self.change(Change {
            list: ListDir::for_needs(needs),
            choose: |section: &mut Section<'_>| {
                let before = section.read(id)?;
                if shown.is_some_and(|shown| shown != before.fingerprint) {
                    return Ok(Err(BoardError::ChangedMeanwhile { id }));
                }
                Ok(Ok(before))
            },
            edit: finish,
            then: |index: &Index| (complete::unblocked(index, id), complete::nudge(index)),
        })?;
        let (task, (unblocked, nudge)) = completed?;
        self.complete_edges(&needs.edges);
        Ok(Completed {
            task,
            unblocked,
            nudge,
        })
    }

    fn block(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.section(|section| {
            let from = section.read(blocker)?.task;
            let to = section.read(dependent)?.task;
            if !(from.blocks.contains(&dependent) && to.blocked_by.contains(&blocker)) {
                let edges = section.index().edges();
                if let Some(path) = cycle_with(&edges, blocker, dependent) {
                    return Err(BoardError::Cycle { path }.into());
                }
                let link = |id, blocks, blocked_by| Step::Link {
                    id,
                    blocks,
                    blocked_by,
                };
                let steps = vec![
                    link(dependent, vec![], vec![blocker]),
                    link(blocker, vec![dependent], vec![]),
                ];
                section.carry_out("block", &Intent::new("block", steps))?;
            }
            Ok(section.read(dependent)?.task)
        })
    }

    fn unblock(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.section(|section| {
            section.read(dependent)?;
            if section.index().blockers(dependent).any(|id| id == blocker) {
                let unlink = |id, blocks, blocked_by| Step::Unlink {
                    id,
                    blocks,
                    blocked_by,
                };
                let steps = vec![
                    unlink(dependent, vec![], vec![blocker]),
                    unlink(blocker, vec![dependent], vec![]),
                ];
                section.carry_out("unblock", &Intent::new("unblock", steps))?;
            }
            Ok(section.read(dependent)?.task)
        })
    }

    fn delete(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        self.section(|section| {
            let task = section.read(id)?.task;
            caller.check_delete(&task)?;
            section.remove("delete", &BTreeSet::from([id]))?;
            Ok(task)
        })
    }

    fn reset(&self, force: bool) -> Result<usize, BoardError> {
        self.section(|section| {
            // All tasks are about to be deleted: read every file first.
            section.scan(&HashMap::new())?;
            if !force {
                let busy = section
                    .index()
                    .iter()
                    .find(|(_, s)| s.status == Status::InProgress);
                if let Some((id, _)) = busy {
                    let task = &section.read(id)?.task;
                    let owner = task.owner.clone().unwrap_or_else(|| "nobody".into());
                    return Err(BoardError::refused(task, Refusal::AlreadyClaimed { owner }).into());
                }
                if let Some(id) = section.index().unreadable().keys().next().copied() {
                    section.read(id)?;
                }
            }
            let unreadable: Vec<TaskId> = section.index().unreadable().keys().copied().collect();
            let ids: BTreeSet<TaskId> = section.index().iter().map(|(id, _)| id).collect();
            if !ids.is_empty() || !unreadable.is_empty() {
                section.remove("reset", &ids)?;
            }
            // Last: while there are tasks, an unreadable one holds up what waits for it.
            for id in unreadable {
                self.set_aside(id)?;
                section.note_changed("reset", id)?;
            }
            Ok(ids.len())
        })
    }

    fn claim_next(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        self.next_for(request)
    }

    fn give_back(&self, whose: Whose<'_>) -> Result<Vec<Task>, BoardError> {
        // Kept across attempts: what an interrupted attempt returned is returned.
        let mut returned = Vec::new();
        self.section(|section| {
            if !matches!(whose, Whose::ClaimedBy(_)) {
                // The agent or run will not come back: none of its tasks may be overlooked.
                section.scan(&HashMap::new())?;
            }
            let index = section.index().iter();
            let ids: Vec<TaskId> = index
                .filter(|(_, slim)| whose.holds(slim))
                .map(|(id, _)| id)
                .collect();
            for id in ids {
                let before = section.read(id)?;
                // The file says whether it is so.
                if !section
                    .index()
                    .get(id)
                    .is_some_and(|slim| whose.holds(slim))
                {
                    continue;
                }
                let mut task = before.task.clone();
                task.make_pending();
                section.stage_and_write("unassign", &before, task.clone(), ListDir::Leave)?;
                returned.push(task);
            }
            Ok(())
        })?;
        Ok(returned)
    }

    fn renew(&self, run: &str, milliseconds: i64) -> Result<Vec<(TaskId, u64)>, BoardError> {
        let mut held = Vec::new();
        self.section(|section| {
            held.clear();
            let until = self.now_ms().saturating_add(milliseconds);
            let of_run = |slim: &Slim| slim.run.as_deref() == Some(run) && slim.lease_end.is_some();
            let index = section.index().iter();
            let ids: Vec<TaskId> = index
                .filter(|(_, slim)| of_run(slim))
                .map(|(id, _)| id)
                .collect();
            for id in ids {
                let before = section.read(id)?;
                let mut task = before.task.clone();
                let lease = task
                    .lease()
                    .filter(|lease| lease.run.as_deref() == Some(run));
                let Some(mut lease) = lease else { continue };
                lease.expires_at = lease.expires_at.map(|end| end.max(until));
                task.set_lease(&lease);
                section.stage_and_write("renew", &before, task, ListDir::Leave)?;
                held.push((id, lease.token));
            }
            Ok(())
        })?;
        Ok(held)
    }

    fn watch(&self, since: Option<u64>) -> Result<Box<dyn Feed + '_>, BoardError> {
        self.follow(since)
    }

    fn last_change(&self) -> Result<u64, BoardError> {
        self.number_foreign_changes()
    }

    fn glance(&self) -> Box<dyn Poll> {
        self.seen()
    }

    fn doctor(&self, fix: bool) -> Result<Vec<Finding>, BoardError> {
        self.examine_and_treat(fix)
    }
}

impl Files {
    /// Writes the other sides of new edges. They are made already, so whatever stops this is no
    /// failure of the change.
    fn complete_edges(&self, edges: &[(TaskId, TaskId)]) {
        for (blocker, dependent) in edges {
            if let Err(error) = self.block(*blocker, *dependent) {
                tracing::warn!(%blocker, %dependent, %error, "the next change completes this edge");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::clock::monotonic_ns;
    use store::home::Home;
    use store::name::Name;

    use super::*;
    use crate::board::Board;
    use crate::facts::LeaseTerm;
    use crate::options::BoardOptions;
    use crate::rules::batch::NewTask;

    #[test]
    fn a_run_gives_back_what_it_claimed_without_a_look_at_every_file() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let name = Name::new("list", "l").unwrap();
        let board = Board::new(&home, name, BoardOptions::default());
        let new = NewTask {
            subject: "x".into(),
            ..NewTask::default()
        };
        let made = board
            .create(&[new.clone(), new.clone(), new], None)
            .unwrap();
        let request = |agent: &str| ClaimRequest {
            lease: Some(LeaseTerm::Run("r1".into())),
            check_busy: false,
            ..ClaimRequest::new(agent)
        };
        for task in &made[..2] {
            board.claim(task.id, &request("a")).unwrap();
        }
        // A person took it over, with an editor.
        let mut taken = board.get(made[1].id).unwrap();
        taken.end_lease();
        taken.owner = Some("b".into());
        let bytes = crate::format::to_bytes(&taken);
        let path = board.files().task_path(taken.id);
        let mut file = std::fs::File::options()
            .write(true)
            .truncate(true)
            .open(path)
            .unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        board.ready().unwrap();
        let start = monotonic_ns();
        let returned = board.release_run("r1").unwrap();
        let looked = board
            .files()
            .peek(|loaded| loaded.slots.scanned_since(start))
            .unwrap();
        assert!(!looked, "it does not take longer, the longer the list is");
        let ids: Vec<TaskId> = returned.iter().map(|task| task.id).collect();
        assert_eq!(ids, [made[0].id], "what is another's stays with it");
        assert_eq!(board.get(taken.id).unwrap().owner.as_deref(), Some("b"));
    }
}
