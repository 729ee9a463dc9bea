//! Changing one task, with the slow part outside the lock.
//!
//! The new file has to be on disk before it takes the old one's place, and a lock held
//! meanwhile would make every process wait for every other's disk. So a durable change has
//! two short sections: in the first the task is chosen and the rules are checked; then the
//! new file is written and synced; in the second the rules are checked again, and the file
//! takes its place if the task is still the one that was seen. If not, it starts over.
//!
//! Where nothing is synced there is nothing to wait for, and one section does it all.

use std::time::{Duration, Instant};

use store::atomic::Durability;

use crate::board::Board;
use crate::error::BoardError;
use crate::id::TaskId;
use crate::index::Index;
use crate::live::Loaded;
use crate::patience::Patience;
use crate::section::{ListDir, Prepared, Section, Stop};
use crate::snapshot::Entry;
use crate::task::Task;

/// About as long as one change in front of us takes to be made, once it is on the disk.
const EACH_TAKES: Duration = Duration::from_micros(60);
/// Longer than this the queue is not trusted: somebody in it may have died.
const QUEUE_LIMIT: Duration = Duration::from_millis(50);

/// What a change makes of a task.
pub(crate) struct Edited {
    /// For the history.
    pub(crate) op: &'static str,
    pub(crate) task: Task,
}

/// What is done to one task.
pub(crate) struct Change<Choose, Edit, Then> {
    /// Finds and reads the task, in a section; the inner error ends the change.
    pub(crate) choose: Choose,
    /// Checks the rules and says what the task is to be. Called again before the change is
    /// made, so it must depend on nothing but its arguments.
    pub(crate) edit: Edit,
    /// Looks at the board right after the change, in the same section.
    pub(crate) then: Then,
    /// Says whether a change that is prepared may be made now.
    pub(crate) turn: fn(&mut Section<'_>, &Edited, Duration) -> Result<Turn, Stop>,
    /// Says, without a lock and so perhaps wrongly, how many others come first.
    pub(crate) queue: fn(&mut Loaded, TaskId) -> Result<usize, BoardError>,
    pub(crate) list: ListDir,
}

/// Whether it is a prepared change's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Make it.
    Now,
    /// Others have to make theirs first.
    Later,
    /// It is no longer what should be done.
    Never,
}

/// For changes that depend on nobody else's.
pub(crate) fn no_queue(_: &mut Loaded, _: TaskId) -> Result<usize, BoardError> {
    Ok(0)
}

/// For changes that depend on nobody else's.
pub(crate) fn at_once(_: &mut Section<'_>, _: &Edited, _: Duration) -> Result<Turn, Stop> {
    Ok(Turn::Now)
}

enum First<R> {
    Done(Box<Task>, R),
    Prepare(Box<(Edited, Entry)>),
}

impl Board {
    /// Carries out a change and returns the task as it is now, with what `then` said.
    pub(crate) fn change<X, R, Choose, Edit, Then>(
        &self,
        mut change: Change<Choose, Edit, Then>,
    ) -> Result<Result<(Task, R), X>, BoardError>
    where
        Choose: FnMut(&mut Section<'_>) -> Result<Result<Entry, X>, Stop>,
        Edit: FnMut(&Index, &Task) -> Result<Edited, BoardError>,
        Then: FnMut(&Index) -> R,
    {
        let mut patience = Patience::new(self);
        loop {
            let first = self.section(|section| {
                let mut before = match (change.choose)(section)? {
                    Ok(before) => before,
                    Err(end) => return Ok(Err(end)),
                };
                if before.task.lease_expired(self.now_ms()) {
                    // Only its file said so, not the index: a hand edit.
                    section.repair()?;
                    before = section.read(before.task.id)?;
                }
                let edited = (change.edit)(section.index(), &before.task)?;
                if self.durability() == Durability::Full && edited.task != before.task {
                    return Ok(Ok(First::Prepare(Box::new((edited, before)))));
                }
                let task = Box::new(edited.task.clone());
                section.stage_and_write(edited.op, &before, edited.task, change.list)?;
                Ok(Ok(First::Done(task, (change.then)(section.index()))))
            })?;
            let (edited, before) = match first {
                Err(end) => return Ok(Err(end)),
                Ok(First::Done(task, answer)) => return Ok(Ok((*task, answer))),
                Ok(First::Prepare(both)) => *both,
            };
            if let Some(answer) = self.commit(&mut change, &edited, &before)? {
                return Ok(Ok((edited.task, answer)));
            }
            // Somebody else changed it in between. Rarely often in a row, but not for ever.
            patience.wait(self.task_path(edited.task.id), Duration::ZERO)?;
        }
    }

    /// The second section; `None` if the task was not the one that was seen.
    fn commit<R, Choose, Edit, Then>(
        &self,
        change: &mut Change<Choose, Edit, Then>,
        edited: &Edited,
        before: &Entry,
    ) -> Result<Option<R>, BoardError>
    where
        Edit: FnMut(&Index, &Task) -> Result<Edited, BoardError>,
        Then: FnMut(&Index) -> R,
    {
        let prepared = Prepared::new(self, edited.task.clone());
        let (mut prepared, failed) = match prepared {
            Ok(prepared) => (Some(prepared), None),
            Err(error) => (None, Some(error)),
        };
        let started = Instant::now();
        let done = loop {
            // Asking in a section would keep those who come first from getting done.
            while started.elapsed() < QUEUE_LIMIT {
                match self.peek(|live| (change.queue)(live, before.task.id))? {
                    0 => break,
                    first => std::thread::sleep(EACH_TAKES * u32::try_from(first).unwrap_or(1)),
                }
            }
            let step = self.section(|section| {
                let turn = match &prepared {
                    Some(_) => (change.turn)(section, edited, started.elapsed())?,
                    // Gone if this is run again because another tool was in the way.
                    None => Turn::Never,
                };
                if turn == Turn::Later {
                    return Ok(None);
                }
                section.live().slots.clear()?;
                let now = section
                    .index()
                    .get(before.task.id)
                    .map(|slim| slim.fingerprint);
                let (Turn::Now, Some(ready)) = (turn, prepared.take()) else {
                    return Ok(Some(None));
                };
                if now != Some(before.fingerprint) {
                    return Ok(Some(None));
                }
                // What no longer holds is explained by the first section of the next round.
                match (change.edit)(section.index(), &before.task) {
                    Ok(again) if again.task == edited.task => {}
                    _ => return Ok(Some(None)),
                }
                section.write(edited.op, before, ready, change.list)?;
                Ok(Some(Some((change.then)(section.index()))))
            })?;
            match step {
                Some(done) => break done,
                None => std::thread::sleep(EACH_TAKES),
            }
        };
        match failed {
            Some(error) => Err(error),
            None => Ok(done),
        }
    }
}
