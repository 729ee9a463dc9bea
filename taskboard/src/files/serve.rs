//! The holder of the list's lock gives tasks to every worker that waits for one.
//!
//! Passing a lock from process to process, and learning the others' changes, costs more than a
//! claim itself. So a process that wants the next task writes that into its slot and takes the lock
//! only if it is free. If not, the holder does it before it releases the lock.
//!
//! ```text
//! worker            holder of the lock                      worker
//! Asked ──────────▶ (not durable) Taking, rename, log ────▶ Done
//!       ──────────▶ (durable)     Chosen ─────────────────▶ writes and syncs the new file
//!                   rename, log   ◀──────────────────────── Synced
//!                   Done ─────────────────────────────────▶ syncs the directory
//! ```
//!
//! A task on offer is not offered to another worker meanwhile, and tasks are given away in order of
//! rank, so that the outcome is one that a single process could have produced.
//!
//! A worker without an answer for a while takes the lock and reads the list itself. So any process
//! may die at any time: an offer of a dead worker is dropped, and one that was being carried out is
//! recognised by the file's fingerprint.

use std::collections::HashSet;

use store::atomic::{self, Staged};
use store::clock::monotonic_ns;
use store::fault::reached;

use crate::error::BoardError;
use crate::fault;
use crate::files::prepared::Prepared;
use crate::files::read::Version;
use crate::files::section::{ListDir, Section, Stop};
use crate::files::slot::{Ask, Choice, Offer, Slot, Taken};
use crate::files::slots::WorkerId;
use crate::format;
use crate::id::TaskId;
use crate::rules::claim::{ClaimRequest, in_progress, pickable, start};

/// Nanoseconds for which an offer keeps the task from others. Longer than a claim takes on a slow
/// disk; the process that writes first gets the task.
pub(crate) const OFFER_HOLDS_NS: i64 = 1_000_000_000;
/// An offer that is older than this may be a dead worker's.
const SUSPECT_NS: i64 = 50_000_000;
/// Maximum number of workers served at once; no other process can work while the holder serves.
const AT_ONCE: usize = 64;

/// Tasks on offer to workers.
#[derive(Debug, Default)]
pub(crate) struct Offered(Vec<(WorkerId, Choice)>);

impl Offered {
    pub(crate) fn ids(&self) -> HashSet<TaskId> {
        self.0.iter().map(|(_, choice)| choice.id).collect()
    }

    fn contains(&self, id: TaskId) -> bool {
        self.0.iter().any(|(_, choice)| choice.id == id)
    }

    fn drop_worker(&mut self, worker: WorkerId) {
        self.0.retain(|(other, _)| *other != worker);
    }
}

/// The outcome of an offer.
#[derive(Debug, PartialEq)]
enum Settled {
    Done,
    StartOver,
    /// A better task is on offer to another worker, which comes first.
    NotYet,
}

impl Section<'_> {
    /// Does for waiting workers what can be done now.
    pub(crate) fn serve(&mut self) {
        if let Err(error) = self.serve_all() {
            // They read the list themselves if no answer comes.
            tracing::debug!(%error, "others could not be served");
        }
    }

    fn serve_all(&mut self) -> Result<(), BoardError> {
        let mut asks = Vec::new();
        let mut synced = Vec::new();
        let mut offered = Offered::default();
        for (worker, slot) in self.live().slots.waiting()? {
            // Until its answer is written, its slot shows its earlier question.
            if self.served.iter().any(|(other, _)| *other == worker) {
                continue;
            }
            match slot {
                Slot::Asked(ask) => asks.push((worker, ask)),
                Slot::Chosen(choice) => self.note_choice(worker, choice, None, &mut offered)?,
                Slot::Synced(offer) => {
                    let (choice, file) = (offer.choice, offer.file.clone());
                    self.note_choice(worker, choice, Some(&file), &mut offered)?;
                    synced.push((worker, offer));
                }
                _ => {}
            }
        }
        let mut left = Vec::new();
        self.settle_all(synced, &mut offered, &mut left)?;
        for (worker, ask) in asks.into_iter().take(AT_ONCE) {
            let Some(slot) = self.answer(worker, &ask, &mut offered)? else {
                left.push(worker);
                continue;
            };
            if matches!(slot, Slot::Done(_)) {
                self.served.push((worker, slot));
            } else {
                self.live().slots.answer(worker, &slot)?;
            }
        }
        self.live().slots.leave_waiting(left);
        Ok(())
    }

    /// The offers to workers that live.
    pub(crate) fn offered(&mut self) -> Result<Offered, BoardError> {
        let mut offered = Offered::default();
        let own = self.live().slots.own_id();
        for (worker, slot) in self.live().slots.waiting()? {
            if Some(worker) == own {
                continue;
            }
            match slot {
                Slot::Chosen(choice) => self.note_choice(worker, choice, None, &mut offered)?,
                Slot::Synced(offer) => {
                    self.note_choice(worker, offer.choice, Some(&offer.file), &mut offered)?;
                }
                _ => {}
            }
        }
        Ok(offered)
    }

    fn note_choice(
        &mut self,
        worker: WorkerId,
        choice: Choice,
        file: Option<&str>,
        offered: &mut Offered,
    ) -> Result<(), BoardError> {
        let age = monotonic_ns() - choice.since;
        // Times of before a reboot may lie in the future.
        let suspect = !(0..SUSPECT_NS).contains(&age);
        if suspect && !self.live().slots.is_alive(worker)? {
            self.forget(worker, file)?;
        } else if age < OFFER_HOLDS_NS {
            offered.0.push((worker, choice));
        }
        Ok(())
    }

    /// Removes what a dead worker left.
    fn forget(&mut self, worker: WorkerId, file: Option<&str>) -> Result<(), BoardError> {
        if let Some(path) = file.and_then(|name| self.files.staged_path(name)) {
            atomic::remove(&path)?;
        }
        self.live().slots.set(worker, &Slot::Free)
    }

    /// Carries out the offers that are on the disk, best first.
    fn settle_all(
        &mut self,
        mut synced: Vec<(WorkerId, Offer)>,
        offered: &mut Offered,
        left_waiting: &mut Vec<WorkerId>,
    ) -> Result<(), BoardError> {
        if synced.is_empty() {
            // Ranking reads every task, which is most of the work of a command on a large board.
            return Ok(());
        }
        self.live().index.rank_all();
        synced.sort_by_key(|(_, offer)| std::cmp::Reverse(self.index().rank(offer.choice.id)));
        // Another worker may have waited for one that has to start over.
        loop {
            let left = synced.len();
            let mut waiting = Vec::new();
            for (worker, offer) in synced {
                if !self.live().slots.is_alive(worker)? {
                    self.forget(worker, Some(&offer.file))?;
                    offered.drop_worker(worker);
                    continue;
                }
                let slot = match self.settle(worker, &offer, offered) {
                    Ok(Settled::Done) => Slot::Done(taken(&offer)),
                    Ok(Settled::NotYet) | Err(Stop::Retry { .. }) => {
                        waiting.push((worker, offer));
                        continue;
                    }
                    Ok(Settled::StartOver) => Slot::StartOver,
                    Err(Stop::Error(error)) => {
                        // Others start over, and meet it themselves if it is still there.
                        if self.live().slots.own_id() == Some(worker) {
                            self.live().own_error = Some(error);
                        }
                        Slot::StartOver
                    }
                };
                offered.drop_worker(worker);
                self.served.push((worker, slot));
            }
            synced = waiting;
            if synced.is_empty() || synced.len() == left {
                break;
            }
        }
        left_waiting.extend(synced.iter().map(|(worker, _)| *worker));
        Ok(())
    }

    /// Carries out this process's own offer, if it is the next one. An error that `serve` would
    /// skip is this process's own here.
    pub(crate) fn settle_own(&mut self) -> Result<(), Stop> {
        let Some(worker) = self.live().slots.own_id() else {
            return Ok(());
        };
        if self.served.iter().any(|(other, _)| *other == worker) {
            return Ok(());
        }
        let Slot::Synced(offer) = self.live().slots.own()? else {
            return Ok(());
        };
        let offered = self.offered()?;
        let slot = match self.settle(worker, &offer, &offered)? {
            Settled::Done => Slot::Done(taken(&offer)),
            Settled::StartOver => Slot::StartOver,
            Settled::NotYet => return Ok(()),
        };
        self.served.push((worker, slot));
        Ok(())
    }

    /// Puts the offer's file in its place if everything is still as it was.
    fn settle(
        &mut self,
        worker: WorkerId,
        offer: &Offer,
        offered: &Offered,
    ) -> Result<Settled, Stop> {
        let id = offer.choice.id;
        self.check_blockers(id)?;
        let Some(slim) = self.index().get(id) else {
            return Ok(Settled::StartOver);
        };
        let (now, stamp) = (slim.fingerprint, slim.stamp);
        if now == offer.after {
            // The process that did it died before it could say so.
            return Ok(Settled::Done);
        }
        let path = self.files.staged_path(&offer.file);
        let Some((path, (bytes, new_stamp))) = path
            .filter(|_| now == offer.choice.before)
            .map(|path| Ok::<_, BoardError>((path.clone(), atomic::read_stamped(&path)?)))
            .transpose()?
            .and_then(|(path, read)| Some((path, read?)))
        else {
            return Ok(Settled::StartOver);
        };
        let task = match format::parse(id, &bytes) {
            Ok(task) if store::fingerprint(&bytes) == offer.after => task,
            _ => return Ok(Settled::StartOver),
        };
        let agent = task.owner.clone().unwrap_or_default();
        let best = self.live().index.pick(&agent, &HashSet::new());
        if best != Some(id) {
            let others = best.is_some_and(|best| offered.contains(best));
            return Ok(if others {
                Settled::NotYet
            } else {
                Settled::StartOver
            });
        }
        let busy = offer.check_busy && !in_progress(self.index(), &agent, Some(id)).is_empty();
        if busy || !pickable(self.index(), id, &agent) {
            return Ok(Settled::StartOver);
        }
        let list = ListDir::if_all(offer.check_busy);
        let before = Version {
            id,
            fingerprint: now,
            stamp,
        };
        let prepared = Prepared::adopt(task, Staged::adopt(path, new_stamp), offer.after);
        let sync_ourselves = self.dirty || self.live().slots.own_id() == Some(worker);
        self.write("claim", before, prepared, list)?;
        self.dirty = sync_ourselves;
        Ok(Settled::Done)
    }

    /// Chooses a task for a worker; `None` leaves it waiting.
    fn answer(
        &mut self,
        worker: WorkerId,
        ask: &Ask,
        offered: &mut Offered,
    ) -> Result<Option<Slot>, BoardError> {
        if !self.live().slots.is_alive(worker)? {
            return Ok(Some(Slot::Free));
        }
        // A process that writes at once needs no order among the slow ones: it simply comes first.
        let reserved = if ask.durable {
            offered.ids()
        } else {
            HashSet::new()
        };
        let Some(id) = self.live().index.pick(&ask.agent, &reserved) else {
            // No tasks are left, or the remaining ones are on offer to others: the worker finds out
            // which, and decides how long to wait.
            return Ok(offered.0.is_empty().then_some(Slot::StartOver));
        };
        if ask.durable {
            // The worker reads the file, outside the lock.
            let before = self.index().get(id).map(|slim| slim.fingerprint);
            let choice = choose(id, before.unwrap_or_default(), ask.seen);
            offered.0.push((worker, choice));
            return Ok(Some(Slot::Chosen(choice)));
        }
        let now = self.files.now_ms();
        let Ok(Some(before)) = self.picked(id, &ask.agent) else {
            return Ok(Some(Slot::StartOver));
        };
        if before.task.lease_expired(now) {
            return Ok(Some(Slot::StartOver));
        }
        let mut task = before.task.clone();
        let request = ClaimRequest {
            agent: ask.agent.clone(),
            check_busy: false,
            lease: ask.lease.clone(),
        };
        start(&mut task, &request, now);
        let version = Version::of(&before);
        let prepared = Prepared::unsynced(self.files, task)?;
        let taken = Taken {
            id,
            after: prepared.fingerprint(),
        };
        self.live()
            .slots
            .set(worker, &Slot::Taking(taken.clone()))?;
        reached(fault::SERVE_TAKING);
        let sync_ourselves = self.dirty;
        let written = self.write("claim", version, prepared, ListDir::Leave);
        self.dirty = sync_ourselves;
        Ok(Some(match written {
            Ok(()) => Slot::Done(taken),
            Err(_) => Slot::StartOver,
        }))
    }

    /// Answers the served workers, after their changes are in the log.
    pub(crate) fn tell_served(&mut self) {
        for (worker, slot) in std::mem::take(&mut self.served) {
            reached(fault::SERVE_LOGGED);
            if let Err(error) = self.live().slots.answer(worker, &slot) {
                tracing::debug!(%error, "a worker has to find out by itself");
            }
        }
    }
}

/// Marks the task with this file as chosen now, for a worker that has read the log up to `seen`.
pub(crate) fn choose(id: TaskId, before: u64, seen: u64) -> Choice {
    Choice {
        seen,
        since: monotonic_ns(),
        id,
        before,
    }
}

fn taken(offer: &Offer) -> Taken {
    Taken {
        id: offer.choice.id,
        after: offer.after,
    }
}
