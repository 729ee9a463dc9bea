//! Changing one task, with the slow part outside the lock.
//!
//! The new file has to be on disk before it takes the old one's place, and a lock held meanwhile
//! would make every process wait for every other's disk. So a durable change has two short
//! sections: in the first the task is chosen and the rules are checked; then the new file is
//! written and synced; in the second the rules are checked again, and the file takes its place if
//! the task is still the same. If not, it starts over.
//!
//! If nothing is synced there is nothing to wait for, and one section does it all. One section also
//! does it if the task had changed before the second section: otherwise a process that changes it
//! without a pause would win every time.

use std::time::Duration;

use store::atomic::Durability;

use crate::error::BoardError;
use crate::files::Files;
use crate::files::patience::Patience;
use crate::files::prepared::Prepared;
use crate::files::section::{ListDir, Section, Stop};
use crate::rules::index::Index;
use crate::rules::needs::Edited;
use crate::snapshot::Entry;
use crate::task::Task;

/// The steps of a change of one task.
pub(crate) struct Change<Choose, Edit, Then> {
    /// Finds and reads the task, in a section; the inner error ends the change.
    pub(crate) choose: Choose,
    /// Checks the rules and says what the task is to be. Called again before the change is
    /// made, so it must depend on nothing but its arguments.
    pub(crate) edit: Edit,
    /// Reads the board right after the change, in the same section.
    pub(crate) then: Then,
    pub(crate) list: ListDir,
}

enum First<R> {
    Done(Box<Task>, R),
    Prepare(Box<(Edited, Entry)>),
}

impl Files {
    /// Carries out a change and returns the task as it is now, with what `then` said.
    pub(crate) fn change<X, R, Choose, Edit, Then>(
        &self,
        mut change: Change<Choose, Edit, Then>,
    ) -> Result<Result<(Task, R), X>, BoardError>
    where
        Choose: FnMut(&mut Section<'_>) -> Result<Result<Entry, X>, Stop>,
        Edit: FnMut(&Index, &Task, i64) -> Result<Edited, BoardError>,
        Then: FnMut(&Index) -> R,
    {
        // One time for all rounds, so that they have the same result.
        let now = self.now_ms();
        let mut patience = Patience::new(self);
        // An earlier round failed because another process changed the task.
        let mut lost = false;
        loop {
            let first = self.section(|section| {
                let insist = std::mem::replace(&mut lost, true);
                let mut before = match (change.choose)(section)? {
                    Ok(before) => before,
                    Err(end) => return Ok(Err(end)),
                };
                if before.task.lease_expired(self.now_ms()) {
                    // Only its file said so, not the index: a hand edit.
                    section.repair()?;
                    before = section.read(before.task.id)?;
                }
                let edited = (change.edit)(section.index(), &before.task, now)?;
                let changes = edited.task != before.task;
                if self.durability() == Durability::Full && changes && !insist {
                    return Ok(Ok(First::Prepare(Box::new((edited, before)))));
                }
                let task = if changes && insist {
                    let edit = |index: &Index, before: &Task| (change.edit)(index, before, now);
                    section.write_at_once(before.task.id, change.list, edit)?
                } else {
                    let task = edited.task.clone();
                    section.stage_and_write(edited.op, &before, edited.task, change.list)?;
                    task
                };
                let task = Box::new(task);
                Ok(Ok(First::Done(task, (change.then)(section.index()))))
            })?;
            let (edited, before) = match first {
                Err(end) => return Ok(Err(end)),
                Ok(First::Done(task, answer)) => return Ok(Ok((*task, answer))),
                Ok(First::Prepare(both)) => *both,
            };
            if let Some(answer) = self.commit(&mut change, &edited, &before, now)? {
                return Ok(Ok((edited.task, answer)));
            }
            // Another process changed it in between. This rarely happens often in a row, but the
            // wait has a limit.
            patience.wait(self.task_path(edited.task.id), Duration::ZERO)?;
        }
    }

    /// The second section; `None` if the task has changed since the first one.
    fn commit<R, Choose, Edit, Then>(
        &self,
        change: &mut Change<Choose, Edit, Then>,
        edited: &Edited,
        before: &Entry,
        now_ms: i64,
    ) -> Result<Option<R>, BoardError>
    where
        Edit: FnMut(&Index, &Task, i64) -> Result<Edited, BoardError>,
        Then: FnMut(&Index) -> R,
    {
        let prepared = Prepared::new(self, edited.task.clone());
        let (mut prepared, failed) = match prepared {
            Ok(prepared) => (Some(prepared), None),
            Err(error) => (None, Some(error)),
        };
        let done = self.section(|section| {
            // Gone if this is run again because another tool was in the way.
            let Some(ready) = prepared.take() else {
                return Ok(None);
            };
            let now = section
                .index()
                .get(before.task.id)
                .map(|slim| slim.fingerprint);
            if now != Some(before.fingerprint) {
                return Ok(None);
            }
            // The first section of the next round explains a rule that no longer holds.
            match (change.edit)(section.index(), &before.task, now_ms) {
                Ok(again) if again.task == edited.task => {}
                _ => return Ok(None),
            }
            section.write_change(edited.op, before, ready, change.list)?;
            Ok(Some((change.then)(section.index())))
        })?;
        match failed {
            Some(error) => Err(error),
            None => Ok(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use store::home::Home;
    use store::name::Name;

    use super::*;
    use crate::board::Board;
    use crate::options::BoardOptions;
    use crate::rules::batch::NewTask;

    /// A tool that respects lock directories and changes the task whenever it can.
    #[test]
    fn somebody_who_never_pauses_is_kept_out_after_the_first_try() {
        for durability in [Durability::Full, Durability::Relaxed] {
            let dir = tempfile::tempdir().unwrap();
            let home = Home::new(dir.path().to_owned()).unwrap();
            let options = BoardOptions {
                durability,
                ..BoardOptions::default()
            };
            let board = Board::new(&home, Name::new("list", "l").unwrap(), options);
            let new = NewTask {
                subject: "job".into(),
                ..NewTask::default()
            };
            let id = board.create(&[new], None).unwrap()[0].id;
            let path = board.files().task_path(id);
            let lock = path.with_extension("json.lock");
            let mut turns = 0;
            let change = Change {
                choose: |section: &mut Section<'_>| Ok(Ok::<_, BoardError>(section.read(id)?)),
                edit: |_: &Index, before: &Task, _: i64| {
                    if !lock.exists() {
                        turns += 1;
                        let mut theirs = before.clone();
                        theirs.description = format!("change {turns}");
                        let bytes = crate::format::to_bytes(&theirs);
                        let tmp = board.files().tmp_dir();
                        store::atomic::replace(&tmp, &path, &bytes, Default::default()).unwrap();
                    }
                    let mut task = before.clone();
                    task.subject = "ours".into();
                    Ok(Edited { op: "update", task })
                },
                then: |_: &Index| (),
                list: ListDir::Leave,
            };
            let (task, ()) = board.files().change(change).unwrap().unwrap();
            // Nothing of theirs is lost, and they came in between a few times, not for ever.
            assert_eq!(task.description, format!("change {turns}"));
            assert_eq!(board.get(id).unwrap(), task);
            assert!(turns <= 4, "{turns}");
        }
    }
}
