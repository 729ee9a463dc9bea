//! "Give me something to do."

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use store::atomic::{self, Durability};
use store::clock::monotonic_ns;

use crate::error::BoardError;
use crate::files::Files;
use crate::files::log;
use crate::files::patience::Patience;
use crate::files::prepared::Prepared;
use crate::files::read::{self, Read};
use crate::files::section::{ListDir, Section, Stop};
use crate::files::serve::{OFFER_HOLDS_NS, choose};
use crate::files::slot::{Ask, Choice, Offer, Slot, Taken, fits};
use crate::format;
use crate::id::TaskId;
use crate::rules::claim::{Busy, ClaimRequest, check_claim, in_progress, pickable, start};
use crate::rules::next::{Next, why_nothing};
use crate::snapshot::Entry;
use crate::task::Task;

/// Time without an answer after which a process reads the list itself: the process that should
/// answer may be dead.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Time to let other processes with an up-to-date index go first.
const STAND_BACK_FOR: Duration = Duration::from_millis(5);

/// The progress of a request.
enum Answer {
    /// A task that is reserved for this process while it writes the new file.
    Chosen(Choice),
    /// A task that another process gave to this one.
    Taken(Taken),
    /// Taken by ourselves.
    Claimed(Box<Task>),
    /// Something else than a task.
    Other(Next),
}

impl Files {
    /// Claims the best task the agent can have.
    pub(crate) fn next_for(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        // This process has one slot to ask with.
        let _one_at_a_time = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.next_task(request);
        if answer.is_err() {
            // No process should keep answering a question that is no longer asked.
            self.peek(|live| live.slots.set_own(&Slot::Free))?;
        }
        answer
    }

    fn next_task(&self, request: &ClaimRequest) -> Result<Next, BoardError> {
        let started = monotonic_ns();
        let mut patience = Patience::new(self);
        loop {
            let (id, task) = match self.ask(request, started)? {
                Answer::Other(next) => return Ok(next),
                Answer::Claimed(task) => (task.id, Some(*task)),
                Answer::Taken(taken) => (taken.id, Some(self.look_up(&taken)?)),
                Answer::Chosen(choice) => (choice.id, self.see_through(request, choice)?),
            };
            if let Some(task) = task {
                return Ok(Next::claimed(task));
            }
            // Another process changed it in between. This rarely happens often in a row, but the
            // wait has a limit.
            patience.wait(self.task_path(id), Duration::ZERO)?;
        }
    }

    /// Gets a task for this process: by the process that has the lock, if one has it, else by
    /// itself.
    fn ask(&self, request: &ClaimRequest, started: i64) -> Result<Answer, BoardError> {
        let mut choose = |section: &mut Section<'_>| answer_own(section, request, started);
        let ask = Ask {
            seen: self.peek(|live| Ok(live.seen()))?,
            agent: request.agent.clone(),
            lease: request.lease.clone(),
            durable: self.durability() == Durability::Full,
        };
        let asked = !request.check_busy
            && fits(&ask)
            && self.peek(|live| {
                let can = live.slots.own_id().is_some();
                live.slots.set_own(&Slot::Asked(ask))?;
                Ok(can)
            })?;
        if asked && let Some(answer) = self.wait_for_answer(&mut choose)? {
            return Ok(answer);
        }
        self.section(choose)
    }

    /// Takes the lock if it is free, else waits for an answer from its holder; `None` if there is
    /// none.
    fn wait_for_answer(
        &self,
        choose: &mut impl FnMut(&mut Section<'_>) -> Result<Answer, Stop>,
    ) -> Result<Option<Answer>, BoardError> {
        let mut may_stand_back = true;
        loop {
            // A process that has been active all along does it faster.
            let stand_back = may_stand_back && self.peek(|live| live.should_stand_back())?;
            if !stand_back && let Some(answer) = self.section_if_free(&mut *choose)? {
                return Ok(Some(answer));
            }
            let woken = self.sleep(if stand_back {
                STAND_BACK_FOR
            } else {
                LOOK_AGAIN_AFTER
            })?;
            may_stand_back = false;
            match self.peek(|live| live.slots.own())? {
                Slot::Chosen(choice) => return Ok(Some(Answer::Chosen(choice))),
                Slot::Done(taken) => {
                    self.peek(|live| live.slots.set_own(&Slot::Free))?;
                    return Ok(Some(Answer::Taken(taken)));
                }
                Slot::Asked(_) | Slot::Taking(_) if woken || stand_back => {}
                _ => return Ok(None),
            }
        }
    }

    /// Writes the new file of the task that was chosen, and waits until it is in its place;
    /// `None` if that came to nothing.
    fn see_through(
        &self,
        request: &ClaimRequest,
        choice: Choice,
    ) -> Result<Option<Task>, BoardError> {
        let path = self.task_path(choice.id);
        // Open until the end: this process then deletes the old file, but not under the lock.
        let (_old, bytes) = match atomic::open_and_read(&path)? {
            Some((file, bytes)) if store::fingerprint(&bytes) == choice.before => (file, bytes),
            // Not what the index says: to be seen to under the lock.
            _ => return self.section(|section| Ok(forget_choice(section, choice)?)),
        };
        let Ok(mut task) = format::parse(choice.id, &bytes) else {
            return self.section(|section| Ok(forget_choice(section, choice)?));
        };
        start(&mut task, request, self.now_ms());
        let prepared = Prepared::new(self, task.clone())?;
        let offer = Offer {
            choice,
            check_busy: request.check_busy,
            after: prepared.fingerprint(),
            file: prepared.keep(),
        };
        let settled = self.wait_until_settled(&offer);
        if !matches!(settled, Ok(true))
            && let Some(path) = self.staged_path(&offer.file)
        {
            atomic::remove(&path)?;
        }
        if settled? {
            atomic::sync_dir(&self.dir, self.durability())
                .map_err(|source| BoardError::NotDurable { source })?;
            return Ok(Some(task));
        }
        Ok(None)
    }

    /// Waits until the lock's holder carries out this process's offer; true if it did.
    fn wait_until_settled(&self, offer: &Offer) -> Result<bool, BoardError> {
        self.peek(|live| live.slots.set_own(&Slot::Synced(offer.clone())))?;
        let (mut silent, mut may_stand_back) = (false, true);
        loop {
            let stand_back = !silent
                && (!self.peek(|live| live.slots.own_comes_first(offer.choice))?
                    || may_stand_back && self.peek(|live| live.should_stand_back())?);
            if silent {
                self.section(|section| section.settle_own())?;
            } else if !stand_back {
                // Every section serves waiting workers, this process too.
                self.section_if_free(|_| Ok(()))?;
            }
            match self.peek(|live| live.slots.own())? {
                Slot::Synced(_) if stand_back && may_stand_back => {
                    self.sleep(STAND_BACK_FOR)?;
                    may_stand_back = false;
                }
                Slot::Synced(_) => silent = !self.sleep(LOOK_AGAIN_AFTER)?,
                Slot::Done(_) => {
                    self.peek(|live| live.slots.set_own(&Slot::Free))?;
                    return Ok(true);
                }
                // `Free` if another process deleted the slots.
                _ => {
                    self.peek(|live| live.slots.set_own(&Slot::Free))?;
                    if let Some(error) = self.peek(|live| Ok(live.own_error.take()))? {
                        return Err(error);
                    }
                    let now = self.section(|section| Ok(section.read(offer.choice.id)))?;
                    return Ok(now.is_ok_and(|entry| entry.fingerprint == offer.after));
                }
            }
        }
    }

    /// The task that another process took for this one, as it was then.
    fn look_up(&self, taken: &Taken) -> Result<Task, BoardError> {
        let now = match read::read_task(&self.dir, taken.id)? {
            Read::Task(entry) if entry.fingerprint == taken.after => return Ok(entry.task),
            Read::Task(entry) => Some(entry.task),
            Read::Absent | Read::Unreadable(_) => None,
        };
        // Changed since. The history has what it was.
        let logged = log::find_logged(&self.history_paths(), taken.id, taken.after)?;
        logged.or(now).ok_or(BoardError::NotFound { id: taken.id })
    }

    fn sleep(&self, limit: Duration) -> Result<bool, BoardError> {
        let bell = self.peek(|live| Ok(live.slots.fall_asleep()))?;
        let woken = bell.is_some_and(|bell| bell.wait(limit));
        self.peek(|live| {
            live.slots.awake();
            Ok(())
        })?;
        Ok(woken)
    }
}

/// Answers this process's own question, unless another process has.
fn answer_own(
    section: &mut Section<'_>,
    request: &ClaimRequest,
    started: i64,
) -> Result<Answer, Stop> {
    match section.live().slots.own()? {
        Slot::Chosen(choice) => return Ok(Answer::Chosen(choice)),
        Slot::Done(taken) => {
            section.live().slots.set_own(&Slot::Free)?;
            return Ok(Answer::Taken(taken));
        }
        Slot::Taking(taken) => {
            // The process that did it is dead: it was not supposed to release the lock like that.
            section.live().slots.set_own(&Slot::Free)?;
            let now = section.index().get(taken.id).map(|slim| slim.fingerprint);
            if now == Some(taken.after) {
                return Ok(Answer::Taken(taken));
            }
        }
        Slot::Free | Slot::Asked(_) | Slot::Synced(_) | Slot::StartOver => {}
    }
    let registered = section.live().slots.register()?;
    let agent = &request.agent;
    let busy = if request.check_busy {
        in_progress(section.index(), agent, None)
    } else {
        Vec::new()
    };
    let chosen = if busy.is_empty() {
        choose_next(section, agent, started)?
    } else {
        Err(Next::Busy(busy))
    };
    let mut before = match chosen {
        Ok(before) => before,
        Err(next) => {
            section.live().slots.set_own(&Slot::Free)?;
            return Ok(Answer::Other(next));
        }
    };
    let now = section.files.now_ms();
    if before.task.lease_expired(now) {
        // Only its file said so, not the index: a hand edit.
        section.repair()?;
        before = section.read(before.task.id)?;
    }
    check_claim(section.index(), &before.task, request, Busy::IsWorking)?;
    if registered && section.files.durability() == Durability::Full {
        let seen = section.live().seen();
        let choice = choose(before.task.id, before.fingerprint, seen);
        section.live().slots.set_own(&Slot::Chosen(choice))?;
        return Ok(Answer::Chosen(choice));
    }
    let mut task = before.task.clone();
    start(&mut task, request, now);
    section.live().slots.set_own(&Slot::Free)?;
    let list = ListDir::if_all(request.check_busy);
    section.stage_and_write("claim", &before, task.clone(), list)?;
    Ok(Answer::Claimed(Box::new(task)))
}

/// The file of a task that was chosen for this process differs from the index: reads the file.
fn forget_choice(section: &mut Section<'_>, choice: Choice) -> Result<Option<Task>, BoardError> {
    section.live().slots.set_own(&Slot::Free)?;
    section.picked(choice.id, "").map(|_| None)
}

impl Section<'_> {
    /// The task that was picked for `agent`, from its file; `None` if the index was wrong, which
    /// this repairs.
    pub(crate) fn picked(&mut self, id: TaskId, agent: &str) -> Result<Option<Entry>, BoardError> {
        match self.read(id) {
            Ok(before) => Ok(pickable(self.index(), id, agent).then_some(before)),
            Err(BoardError::NotFound { .. } | BoardError::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Picks the best task for `agent`, and makes sure that the files agree.
fn choose_next(
    section: &mut Section<'_>,
    agent: &str,
    started: i64,
) -> Result<Result<Entry, Next>, Stop> {
    let wait_for_offers = monotonic_ns() - started < OFFER_HOLDS_NS;
    loop {
        // A process that writes at once needs no order among the slow ones: it simply comes first.
        let reserved = if wait_for_offers && section.files.durability() == Durability::Full {
            section.offered()?.ids()
        } else {
            std::collections::HashSet::new()
        };
        if let Some(id) = section.live().index.pick(agent, &reserved) {
            match section.picked(id, agent)? {
                Some(before) => return Ok(Ok(before)),
                None => continue,
            }
        }
        let all = std::collections::HashSet::new();
        if !reserved.is_empty() && section.live().index.pick(agent, &all).is_some() {
            // All remaining tasks are on offer to other workers. The outcome will be known soon.
            let path = section.files.dir.join(".ccb/slots");
            return Err(Stop::Retry {
                path,
                age: Duration::ZERO,
            });
        } else if !section.live().slots.scanned_since(started)? {
            // Before saying that there is nothing, check if a hand edit changed that, unless
            // another process has checked since the question was asked.
            section.scan(&HashMap::new())?;
        } else {
            return Ok(Err(Next::Nothing(why_nothing(section.index()))));
        }
    }
}
