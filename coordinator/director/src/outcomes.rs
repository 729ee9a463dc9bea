//! The director's reactions to events: agents that start and end, work that lands.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use landing::{Landed, is_here, next_to_land, queued, rivals};
use taskboard::TaskId;
use worktrees::{Slug, shown_branch};

use super::control::Level;
use super::event::{DirectorEvent, TaskEnd};
use super::main_loop::{BREATHER, Director};
use super::work::{Ended, Landing, Said, WorkEnd};

/// Leases to wait before taking over results a worker should land itself. The worker may have given
/// up, or not know of the result.
const LEASES_TO_LAND: u32 = 10;
/// Poll interval for tasks that could not be read.
const STALE_EVERY: Duration = Duration::from_secs(1);

impl Director {
    pub(super) fn hear(&mut self, said: Said, tell: &mut dyn FnMut(DirectorEvent)) {
        match said {
            Said::Started {
                seat,
                meta,
                attempt,
                adopted,
            } => {
                self.trouble.over();
                if let Some(place) = self.places.get_mut(seat) {
                    place.meta = Some((*meta).clone());
                }
                if let Some(task) = meta.task_id.as_ref().and_then(|id| id.parse().ok()) {
                    tell(DirectorEvent::Started {
                        task,
                        subject: meta.description.clone(),
                        agent: meta.agent_id.clone(),
                        name: meta.name.clone(),
                        attempt,
                        adopted,
                    });
                }
            }
            Said::Ended(ended) => self.ended(*ended, tell),
            Said::Changed(ids) => self.changed(&ids),
            Said::Workers(workers) => self.workers = workers,
            Said::Landed(landing) => self.landed(*landing, tell),
            Said::Proved { task, proved } => {
                self.proving = None;
                self.mirror.refresh(self.setup.board(), task);
                tell(match proved {
                    Ok(()) => DirectorEvent::Note {
                        text: format!("task {task} is done: its check passes"),
                    },
                    Err(why) => {
                        let text = format!("task {task} was said to be done, and is not: {why}");
                        DirectorEvent::Note { text }
                    }
                });
            }
        }
    }

    /// Reads again the tasks that others may have changed.
    fn changed(&mut self, ids: &[TaskId]) {
        for &id in ids {
            // The thread that waits for it reports its end.
            let ours = self.places.iter().any(|place| place.at == Some(id));
            if !ours {
                self.mirror.refresh(self.setup.board(), id);
                self.look_aside(id);
                self.look_elsewhere(id);
            }
        }
    }

    /// Reads again the tasks that could not be read, at most once per interval.
    pub(super) fn look_at_stale(&mut self) {
        if self.looked_at_stale.elapsed() >= STALE_EVERY {
            let read = self.mirror.refresh_stale(self.setup.board());
            self.looked_at_stale = Instant::now();
            for id in read {
                self.look_aside(id);
                self.look_elsewhere(id);
            }
        }
    }

    fn ended(&mut self, ended: Ended, tell: &mut dyn FnMut(DirectorEvent)) {
        let Ended {
            seat,
            task,
            agent,
            end,
            usage,
            took,
        } = ended;
        if let Some(place) = self.places.get_mut(seat) {
            place.at = None;
            place.meta = None;
            let failure = failure_of(&end);
            // A worker of the lead does not wait for work.
            place.did = (!place.extra).then_some((task, failure));
        }
        self.mirror.refresh(self.setup.board(), task);
        let end = match end {
            WorkEnd::Task(end) => end,
            WorkEnd::NotNow(why) => {
                let text = format!("task {task} has to wait: {why}");
                tell(DirectorEvent::Note { text });
                self.closed_until = Some((Instant::now() + BREATHER, why));
                return;
            }
            WorkEnd::Broken(why) => return self.is_broken(task, &why, tell),
            WorkEnd::Hindered(why) => match self.rests.again(task, Instant::now()) {
                Some(pause) => {
                    let ms = pause.as_millis();
                    let text = format!("task {task} is begun again in {ms} ms: {why}");
                    tell(DirectorEvent::Note { text });
                    return;
                }
                // Another machine may be able to begin a task that this one cannot.
                None if self.setup.patient => return self.is_broken(task, &why, tell),
                None => {
                    let end = self.setup.give_up(task, why.clone());
                    self.mirror.refresh(self.setup.board(), task);
                    match end {
                        WorkEnd::Task(end) => end,
                        _ => return self.is_broken(task, &why, tell),
                    }
                }
            },
        };
        self.rests.over(task);
        match &end {
            TaskEnd::Done { .. } => {
                self.succeeded += 1;
                self.enqueue(task);
            }
            TaskEnd::Parked { .. } => self.failed += 1,
            // Another machine was faster, which is common.
            TaskEnd::Taken if self.setup.agents.shared().is_some() => {
                // Or the task is ours after all, and the board could not be reached to say so.
                self.look_elsewhere(task);
                return;
            }
            _ => {}
        }
        tell(DirectorEvent::Ended {
            task,
            agent,
            end,
            usage,
            took,
        });
        // A message may have resumed it at once.
        self.look_aside(task);
    }

    /// Queues work of an earlier director that is done and not on the branch.
    pub(super) fn find_unlanded(&mut self) {
        if self.setup.landings.is_none() {
            return;
        }
        // Including those of lead workers, which are in no list.
        let board = self.setup.board();
        let snapshot = match board.exists().then(|| board.snapshot()) {
            Some(Ok(snapshot)) => snapshot,
            _ => return,
        };
        let done: Vec<&taskboard::Task> = snapshot
            .tasks()
            .filter(|task| task.status == taskboard::Status::Completed)
            .collect();
        let shared = self.setup.agents.shared().is_some();
        let trees = self.setup.agents.trees();
        for task in done {
            if !shared || trees.as_ref().is_ok_and(|trees| is_here(task, trees)) {
                self.enqueue(task.id);
            }
            self.look_elsewhere(task.id);
        }
    }

    /// Records a task that is done and has not landed: done by another machine, or by this one
    /// while the board could not be reached.
    fn look_elsewhere(&mut self, id: TaskId) {
        if self.setup.landings.is_none() || self.setup.agents.shared().is_none() {
            return;
        }
        let task = self.mirror.tasks.get(&id);
        let waits = task.is_some_and(|task| task.is_done() && !task.landed);
        if waits && !self.queue.contains_key(&id) && !self.lands(id) {
            self.foreign.entry(id).or_insert_with(Instant::now);
        } else {
            self.foreign.remove(&id);
        }
    }

    /// Queues results of other machines: at once where they land only on this machine, else if the
    /// owner has exited or has not landed the result for a while. This includes results of this
    /// machine that could not be queued when they were done.
    pub(super) fn take_foreign(&mut self) {
        let (Some(landings), Some(place)) = (&self.setup.landings, self.setup.agents.shared())
        else {
            return;
        };
        let everywhere = landings.into.starts_with("refs/remotes/");
        let patience = match everywhere {
            true => place.lease(),
            false => Duration::ZERO,
        };
        let shown = worktrees::shown_branch(&landings.into);
        let branch = shown.split_once('/').map_or(shown, |(_, branch)| branch);
        let ours = |owner: &str| {
            let mut seats = self.places.iter().filter_map(|it| it.seat.name.as_ref());
            seats.any(|name| name.as_str() == owner)
        };
        let lands_itself = |id: &TaskId| {
            let task = self.mirror.tasks.get(id);
            let owner = task.and_then(|task| task.owner.as_deref());
            let mut workers = self.workers.iter();
            owner.is_some_and(|owner| {
                !ours(owner) && workers.any(|worker| worker.lands_for(owner, branch))
            })
        };
        let due = |(id, since): &(&TaskId, &Instant)| {
            let waited = since.elapsed();
            let others = everywhere && waited < patience * LEASES_TO_LAND && lands_itself(id);
            waited >= patience && !others
        };
        let due: Vec<TaskId> = self.foreign.iter().filter(due).map(|(id, _)| *id).collect();
        for id in due {
            let Ok(task) = self.setup.board().get(id) else {
                // The board is asked again later.
                self.foreign.insert(id, Instant::now());
                return;
            };
            self.foreign.remove(&id);
            let Ok(trees) = self.setup.agents.trees() else {
                return;
            };
            let clear = task.trouble().is_none();
            if let Some(queued) = queued(&task, &trees, true).filter(|_| clear && !self.lands(id)) {
                self.queue.entry(id).or_insert(queued);
            }
        }
    }

    pub(super) fn enqueue(&mut self, id: TaskId) {
        let Some(landings) = &self.setup.landings else {
            return;
        };
        if landings
            .only
            .as_ref()
            .is_some_and(|only| !only.contains(&id))
        {
            return;
        }
        let shared = self.setup.agents.shared().is_some();
        let (task, trees) = (self.setup.board().get(id), self.setup.agents.trees());
        match (task, trees) {
            // The metadata of this task was not confirmed.
            (Ok(task), _) if landings.only.is_none() && task.trouble().is_some() => {}
            (Ok(task), Ok(trees)) => {
                if let Some(queued) = queued(&task, &trees, shared) {
                    self.foreign.remove(&id);
                    self.queue.insert(id, queued);
                }
            }
            // The board is asked again later.
            _ if shared => drop(self.foreign.insert(id, Instant::now())),
            _ => {}
        }
    }

    pub(super) fn start_landing(&mut self) {
        let Some(landings) = self.setup.landings.clone() else {
            return;
        };
        if self.landing.is_some() || self.control.level() == Level::Force {
            return;
        }
        let resting = self.landing_rests.now(Instant::now());
        let Some(task) = next_to_land(&self.queue, &resting) else {
            return;
        };
        // If the task is done again while this lands, the new result takes its place in the queue.
        self.landing = self.queue.remove(&task);
        let (setup, said) = (Arc::clone(&self.setup), self.said.clone());
        let stop = Arc::clone(&self.stop_landing);
        self.threads.push(thread::spawn(move || {
            let outcome = setup.lander().land(task, &landings, &stop);
            let landing = Landing { task, outcome };
            said.send(Said::Landed(Box::new(landing))).ok();
        }));
    }

    fn landed(&mut self, landing: Landing, tell: &mut dyn FnMut(DirectorEvent)) {
        let task = landing.task;
        let queued = self.landing.take();
        let mut outcome = landing.outcome;
        if let Landed::Hindered(why) = outcome {
            if let Some(pause) = self.landing_rests.again(task, Instant::now()) {
                let ms = pause.as_millis();
                let text = format!("task {task} lands in {ms} ms, once more: {why}");
                tell(DirectorEvent::Note { text });
                if let Some(queued) = queued {
                    self.queue.entry(task).or_insert(queued);
                }
                return;
            }
            outcome = Landed::Left(why);
        }
        self.landing_rests.over(task);
        if matches!(outcome, Landed::Left(_)) && !self.is_completed(task) {
            // The result was rejected meanwhile; the next result lands.
            outcome = Landed::Nothing;
        }
        let into = self.setup.landings.as_ref();
        let into = into.map_or_else(String::new, |landings| {
            shown_branch(&landings.into).to_owned()
        });
        let not_landed = |files: Vec<String>, why: String, became| DirectorEvent::NotLanded {
            task,
            files,
            why,
            became,
            worktree: None,
            rivals: Vec::new(),
        };
        match outcome {
            Landed::Hindered(_) => {}
            Landed::At(moved) => {
                let commit = moved.after;
                self.not_landed.remove(&task);
                tell(DirectorEvent::Landed { task, into, commit });
                self.look_aside(task);
            }
            Landed::Nothing => {
                self.not_landed.remove(&task);
            }
            Landed::Conflict(files, became) => {
                let why = format!("{into} has changed the same lines");
                self.not_landed.insert(task, why.clone());
                if let Some(became) = became {
                    self.mirror.refresh(self.setup.board(), became);
                }
                let (worktree, rivals) = self.sides_of_conflict(task, &files);
                tell(DirectorEvent::NotLanded {
                    task,
                    files,
                    why,
                    became,
                    worktree,
                    rivals,
                });
            }
            Landed::Rejected { why, .. } => {
                self.mirror.refresh(self.setup.board(), task);
                self.succeeded = self.succeeded.saturating_sub(1);
                tell(not_landed(Vec::new(), why, None));
            }
            Landed::Left(why) => {
                let known = self.not_landed.insert(task, why.clone());
                // A worker stays, and the board waits for this task.
                if self.setup.patient && self.setup.agents.shared().is_some() {
                    self.foreign.insert(task, Instant::now());
                }
                if known.as_ref() != Some(&why) {
                    tell(not_landed(Vec::new(), why, None));
                }
            }
        }
    }

    fn is_completed(&self, id: TaskId) -> bool {
        let task = self.setup.board().get(id);
        task.is_ok_and(|task| task.status == taskboard::Status::Completed)
    }

    /// The worktree with a task's work, and the tasks whose work conflicts with it.
    fn sides_of_conflict(&self, id: TaskId, files: &[String]) -> (Option<PathBuf>, Vec<String>) {
        let board = self.setup.board();
        let result = board.get(id).ok().and_then(|task| task.result());
        let (Some(result), Ok(trees)) = (result, self.setup.agents.trees()) else {
            return (None, Vec::new());
        };
        let rivals = match &result.base {
            Some(base) => rivals(files, base, board.name().as_str(), &trees),
            None => Vec::new(),
        };
        let slug = result.worktree.and_then(|name| Slug::new(&name).ok());
        let entry = slug.and_then(|slug| trees.get(&slug).ok());
        (entry.map(|entry| entry.path().to_owned()), rivals)
    }
}

/// The reason of the failure; `None` if the work succeeded.
fn failure_of(end: &WorkEnd) -> Option<String> {
    match end {
        WorkEnd::Task(TaskEnd::Done { .. }) => None,
        WorkEnd::Task(TaskEnd::Failed { why } | TaskEnd::Parked { why }) => Some(why.clone()),
        _ => Some("it was not done".into()),
    }
}
