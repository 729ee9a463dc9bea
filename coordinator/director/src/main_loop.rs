//! The main loop: receives events, decides, acts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use landing::Queued;
use runs::{AgentError, Agents, KnownWorker};
use store::clock::{Clock, SystemClock};
use store::lock::FileLock;
use store::name::Name;
use swarm::run::Meta;
use taskboard::TaskId;

use super::board_changes::Watching;
use super::control::{Control, Level};
use super::crew::Seat;
use super::event::DirectorEvent;
use super::inputs::SeatView;
use super::lead_workers::Aside;
use super::mirror::Mirror;
use super::rests::Rests;
use super::schedule::{Plan, Snapshot, Stand, schedule};
use super::setup::{Closed, DirectorError, Ending, Setup};
use super::trouble::{Then, Trouble};
use super::work::{Ended, Said, WorkEnd};

/// Poll interval for changes that send no event, such as a stop request or a gate that opened.
const TICK: Duration = Duration::from_millis(100);
/// Pause before the next start after a failed one.
pub(super) const BREATHER: Duration = Duration::from_secs(1);
/// Longest time that a killed director's lock may still be held.
const AFTER_DEATH: Duration = Duration::from_secs(5);
/// Attempts to remove unneeded worktrees at the end, if some are in use.
const TIDYING: usize = 4;
/// Stack size in bytes of a work thread, which mostly waits.
const STACK: usize = 512 * 1024;

pub(super) struct Place {
    pub(super) seat: Seat,
    pub(super) at: Option<TaskId>,
    /// Its last task, until an idle event reports it.
    pub(super) did: Option<(TaskId, Option<String>)>,
    pub(super) meta: Option<Meta>,
    pub(super) asked: Level,
    /// True if it was made for an agent that the director did not start: it gets no tasks.
    pub(super) extra: bool,
}

impl Place {
    fn new(seat: Seat) -> Self {
        Self {
            seat,
            at: None,
            did: None,
            meta: None,
            asked: Level::GoOn,
            extra: false,
        }
    }
}

/// Runs a board: assigns ready tasks to agents until no task can start.
pub struct Director {
    pub(super) setup: Arc<Setup>,
    /// The runtime of each agent type that has one.
    needs: BTreeMap<String, String>,
    pub(super) control: Arc<Control>,
    pub(super) places: Vec<Place>,
    pub(super) mirror: Mirror,
    pub(super) queue: BTreeMap<TaskId, Queued>,
    /// The task whose work lands now; it is not in the queue.
    pub(super) landing: Option<Queued>,
    pub(super) proving: Option<TaskId>,
    pub(super) not_landed: BTreeMap<TaskId, String>,
    /// The workers on the same board.
    pub(super) workers: Vec<KnownWorker>,
    pub(super) stop_landing: Arc<AtomicBool>,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    pub(super) closed_until: Option<(Instant, String)>,
    pub(super) paused: bool,
    pub(super) trouble: Trouble,
    /// Backoff of tasks that an obstacle stopped.
    pub(super) rests: Rests,
    /// Backoff of landings that an obstacle stopped.
    pub(super) landing_rests: Rests,
    pub(super) spent: Option<String>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) said: Sender<Said>,
    pub(super) heard: Receiver<Said>,
    /// Held as long as this director directs the team.
    _seat_of_the_director: FileLock,
    /// The number of the board's last change before it was loaded.
    seen: u64,
    /// Distinguishes this director from those of other machines on the same board.
    spread: Option<u64>,
    /// Results of other machines that have not landed, and when this director learned of each.
    pub(super) foreign: BTreeMap<TaskId, Instant>,
    /// The time of the last retry to read unreadable tasks.
    pub(super) looked_at_stale: Instant,
}

impl fmt::Debug for Director {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Director").finish_non_exhaustive()
    }
}

impl Director {
    /// Makes a director for a team that no other process directs.
    pub fn new(setup: Setup, control: Arc<Control>) -> Result<Self, DirectorError> {
        let lock = direct(&setup.agents)?;
        let setup = Setup {
            agents: setup.agents.keeping_guards(),
            ..setup
        };
        setup.agents.reconcile()?;
        // Read before the tasks are loaded: every later change sends an event.
        let seen = setup.board().last_change()?;
        let mirror = Mirror::load(setup.board())?;
        let (said, heard) = mpsc::channel();
        let shared = setup.agents.shared().is_some();
        Ok(Self {
            spread: shared.then(|| uuid::Uuid::new_v4().as_u64_pair().0),
            foreign: BTreeMap::new(),
            looked_at_stale: Instant::now(),
            needs: setup.crew.runtimes_of_types(),
            control,
            places: setup.seats.iter().cloned().map(Place::new).collect(),
            setup: Arc::new(setup),
            mirror,
            queue: BTreeMap::new(),
            landing: None,
            proving: None,
            not_landed: BTreeMap::new(),
            workers: Vec::new(),
            stop_landing: Arc::new(AtomicBool::new(false)),
            succeeded: 0,
            failed: 0,
            closed_until: None,
            paused: false,
            trouble: Trouble::default(),
            rests: Rests::default(),
            landing_rests: Rests::default(),
            spent: None,
            threads: Vec::new(),
            said,
            heard,
            _seat_of_the_director: lock,
            seen,
        })
    }

    /// Resumes where the last director ended; returns when nothing can start or a caller ends it.
    pub fn run(&mut self, tell: &mut dyn FnMut(DirectorEvent)) -> Result<Ending, DirectorError> {
        self.adopt()?;
        self.find_unlanded();
        self.workers = self.setup.agents.workers().unwrap_or_default();
        let watching = Watching::start(&self.setup, self.seen, self.said.clone());
        let ending = self.go(tell);
        drop(watching);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
        self.put_away(tell)?;
        Ok(ending)
    }

    /// Removes worktrees that are not needed any more, and reports those it could not remove.
    /// Another process may use one for a moment, or kill a git command, so ccb tries several times.
    fn put_away(&self, tell: &mut dyn FnMut(DirectorEvent)) -> Result<(), DirectorError> {
        let Some(landings) = &self.setup.landings else {
            return Ok(());
        };
        let mut stay = self.setup.lander().put_away_landed(&landings.into)?;
        for _ in 1..TIDYING {
            if stay.is_empty() {
                break;
            }
            thread::sleep(TICK);
            stay = self.setup.lander().put_away_landed(&landings.into)?;
        }
        for stays in stay {
            tell(DirectorEvent::Note { text: stays });
        }
        Ok(())
    }

    fn go(&mut self, tell: &mut dyn FnMut(DirectorEvent)) -> Ending {
        let mut said_at_rest = None;
        let mut looked_again = false;
        loop {
            while let Ok(said) = self.heard.try_recv() {
                self.hear(said, tell);
            }
            let level = self.control.level();
            if level >= Level::Stop {
                self.ask_to_stop(level);
            }
            self.look_at_stale();
            self.take_foreign();
            self.start_landing();
            let plan = self.plan(level, tell);
            // Results that wait for a moment still land, unless everything is to end at once.
            let landing = self.landing.is_some()
                || (!self.queue.is_empty()
                    && self.setup.landings.is_some()
                    && level < Level::Force);
            let working = plan.stand == Stand::Working || landing;
            for (task, seat) in plan.start {
                self.begin(task, seat);
            }
            for task in plan.prove {
                self.prove(task);
            }
            self.tell_idle(tell);
            if !working {
                let over = level > Level::GoOn || (!self.setup.linger && !self.waits(&plan.stand));
                if over && !std::mem::replace(&mut looked_again, true) && self.look_once_more() {
                    continue;
                }
                if over {
                    return self.ending(plan.stand, level);
                }
                // Other machines may begin a task that this one cannot, and give it back.
                let elsewhere = plan.stand == Stand::Elsewhere;
                if self.setup.linger && said_at_rest.replace(elsewhere) != Some(elsewhere) {
                    tell(DirectorEvent::AtRest { stand: plan.stand });
                }
            } else {
                said_at_rest = None;
            }
            match self.heard.recv_timeout(TICK) {
                Ok(said) => self.hear(said, tell),
                // The director holds a sender itself: this does not happen.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.setup.agents.rest_guards();
                    tell(DirectorEvent::Tick);
                }
            }
        }
    }

    /// True if a director that does not linger waits for more work. A director that only lands
    /// chosen tasks ignores the work of others.
    fn waits(&self, stand: &Stand) -> bool {
        let landings = self.setup.landings.as_ref();
        let chosen = landings.is_some_and(|landings| landings.only.is_some());
        match stand {
            Stand::Waiting(_) => true,
            Stand::Elsewhere => !chosen,
            _ => false,
        }
    }

    /// Reloads the whole board before the director ends: a result of another machine may have sent
    /// no event yet, and is to land. True if that is possible.
    fn look_once_more(&mut self) -> bool {
        if self.setup.agents.shared().is_none() || self.setup.landings.is_none() {
            return false;
        }
        if let Ok(mirror) = Mirror::load(self.setup.board()) {
            self.mirror = mirror;
        }
        self.find_unlanded();
        true
    }

    /// Handles something that cannot be read or written.
    pub(super) fn is_broken(
        &mut self,
        task: TaskId,
        why: &str,
        tell: &mut dyn FnMut(DirectorEvent),
    ) {
        let now = Instant::now();
        self.closed_until = Some((now + BREATHER, why.to_owned()));
        match self.trouble.again(now) {
            Then::Say => tell(DirectorEvent::Note {
                text: format!("task {task} has to wait: {why}"),
            }),
            Then::GiveUp if self.setup.patient => {}
            Then::GiveUp if self.places.iter().all(|place| place.at.is_none()) => {
                let why = format!("nothing could be begun for two minutes: {why}");
                self.control.want(Level::Finish, &why);
            }
            Then::Wait | Then::GiveUp => {}
        }
    }

    /// Reports each slot that has just become idle, once.
    fn tell_idle(&mut self, tell: &mut dyn FnMut(DirectorEvent)) {
        for place in &mut self.places {
            if place.at.is_some() {
                place.did = None;
                continue;
            }
            if let (Some((task, failure)), Some(name)) = (place.did.take(), &place.seat.name) {
                tell(DirectorEvent::Idle {
                    name: name.to_string(),
                    task,
                    failure,
                });
            }
        }
    }

    fn ending(&self, stand: Stand, level: Level) -> Ending {
        Ending {
            stand,
            spent: self.spent.clone(),
            stopped: (level > Level::GoOn).then(|| self.control.why()),
            not_landed: self.not_landed.keys().copied().collect(),
        }
    }

    /// Decides what happens next.
    fn plan(&mut self, level: Level, tell: &mut dyn FnMut(DirectorEvent)) -> Plan {
        let closed = if level > Level::GoOn {
            Some(self.control.why())
        } else {
            self.closed(tell)
        };
        let seats: Vec<SeatView> = self
            .places
            .iter()
            .map(|place| SeatView {
                name: place.seat.name.as_ref().map(ToString::to_string),
                at: place.at,
                commands_only: place.seat.commands_only,
                runtime: place.seat.runtime.clone(),
                available: !place.extra,
            })
            .collect();
        let waiting = self.queue.values().chain(&self.landing);
        let held: Vec<Vec<String>> = waiting.map(|queued| queued.paths.clone()).collect();
        let resting = self.resting();
        schedule(&Snapshot {
            tasks: &self.mirror.tasks,
            held: &held,
            resting: &resting,
            unreadable: &self.mirror.unreadable,
            seats: &seats,
            needs: &self.needs,
            labels: &self.setup.labels,
            workers: &self.workers,
            spread: self.spread,
            limits: self.setup.limits,
            closed: closed.as_deref(),
            succeeded: self.succeeded,
            failed: self.failed,
        })
    }

    /// The tasks that are not to start now.
    fn resting(&self) -> BTreeSet<TaskId> {
        let now = SystemClock.now_ms();
        let mut resting = self.rests.now(Instant::now());
        let lost = self.mirror.rests.iter().filter(|(_, until)| **until > now);
        resting.extend(lost.map(|(id, _)| *id));
        resting
    }

    /// The reason why nothing may start now; reported when it changes.
    fn closed(&mut self, tell: &mut dyn FnMut(DirectorEvent)) -> Option<String> {
        if let Some((until, why)) = &self.closed_until {
            if Instant::now() < *until {
                return Some(why.clone());
            }
            self.closed_until = None;
        }
        let closed = match self.setup.gate.as_ref().and_then(|gate| gate()) {
            None => None,
            Some(Closed::ForNow(why)) => Some(why),
            Some(Closed::ForGood(why)) => {
                self.spent = Some(why.clone());
                self.control.want(Level::Finish, &why);
                Some(why)
            }
        };
        match (&closed, self.paused) {
            (Some(why), false) => tell(DirectorEvent::Paused { why: why.clone() }),
            (None, true) => tell(DirectorEvent::Resumed),
            _ => {}
        }
        self.paused = closed.is_some();
        closed
    }

    fn begin(&mut self, task: TaskId, number: usize) {
        let Some(place) = self.places.get_mut(number) else {
            return;
        };
        place.at = Some(task);
        place.meta = None;
        place.asked = Level::GoOn;
        if let Some(view) = self.mirror.tasks.get_mut(&task) {
            view.status = taskboard::Status::InProgress;
        }
        let (setup, control) = (Arc::clone(&self.setup), Arc::clone(&self.control));
        let (seat, said) = (place.seat.clone(), self.said.clone());
        let work = move || setup.work(task, number, &seat, &control, &said);
        self.on_a_thread(number, task, work);
    }

    /// Runs the check of a task that is marked done; one at a time.
    fn prove(&mut self, task: TaskId) {
        if self.proving.is_some() {
            return;
        }
        self.proving = Some(task);
        let (setup, said) = (Arc::clone(&self.setup), self.said.clone());
        self.threads.push(thread::spawn(move || {
            let proved = setup.prove_reported(task);
            said.send(Said::Proved { task, proved }).ok();
        }));
    }

    fn on_a_thread(&mut self, seat: usize, task: TaskId, work: impl FnOnce() + Send + 'static) {
        self.threads.retain(|thread| !thread.is_finished());
        let started = thread::Builder::new()
            .name(format!("task-{task}"))
            .stack_size(STACK)
            .spawn(work);
        match started {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                let ended = Ended {
                    seat,
                    task,
                    agent: None,
                    end: WorkEnd::Broken(format!("no thread could be started: {error}")),
                    usage: Default::default(),
                    took: Duration::ZERO,
                };
                self.said.send(Said::Ended(Box::new(ended))).ok();
            }
        }
    }

    /// Takes over the agents of a director that has exited.
    fn adopt(&mut self) -> Result<(), DirectorError> {
        for id in swarm::run::active(self.setup.agents.runs_dir()).map_err(AgentError::from)? {
            let run = self.setup.agents.run(&id);
            let Ok(meta) = run.meta() else {
                continue;
            };
            let task = meta.task_id.as_ref().and_then(|id| id.parse().ok());
            let proved = meta.launch.prove.is_some();
            let Some(task) = task.filter(|_| proved && !meta.teammate) else {
                continue;
            };
            if !run.is_alive().map_err(AgentError::from)? {
                continue;
            }
            self.take_over(task, meta, true);
        }
        Ok(())
    }

    /// Waits for an agent that another process started, as for one of its own.
    fn take_over(&mut self, task: TaskId, meta: Meta, adopted: bool) {
        // The task may be newer than the mirror.
        self.mirror.refresh(self.setup.board(), task);
        let number = self.seat_for(&meta);
        let place = &mut self.places[number];
        place.at = Some(task);
        place.meta = Some(meta.clone());
        place.asked = Level::GoOn;
        let (setup, said) = (Arc::clone(&self.setup), self.said.clone());
        self.on_a_thread(number, task, move || {
            setup.adopt(task, number, &meta, adopted, &said);
        });
    }

    /// Handles a change of a lead worker's task: the director waits for the worker, and its result
    /// lands.
    pub(super) fn look_aside(&mut self, id: TaskId) {
        match self.setup.aside(id) {
            Aside::AtWork(_) if self.places.iter().any(|place| place.at == Some(id)) => {}
            Aside::AtWork(meta) => self.take_over(id, *meta, false),
            Aside::Done if !self.lands(id) && !self.not_landed.contains_key(&id) => {
                self.enqueue(id);
            }
            Aside::Done | Aside::Nothing => {}
        }
    }

    /// True if the task's work lands now.
    pub(super) fn lands(&self, id: TaskId) -> bool {
        self.landing
            .as_ref()
            .is_some_and(|queued| queued.task == id)
    }

    /// The slot of an agent that was found; makes an extra one if no slot fits.
    fn seat_for(&mut self, meta: &Meta) -> usize {
        let named = |place: &Place| {
            let name = place.seat.name.as_ref().map(Name::as_str);
            place.at.is_none() && name == meta.name.as_deref()
        };
        if let Some(found) = self.places.iter().position(named) {
            return found;
        }
        let name = meta.name.as_deref();
        let seat = Seat {
            name: name.and_then(|name| Name::new("agent", name).ok()),
            commands_only: !meta.runtime.kind.has_model(),
            runtime: None,
        };
        self.places.push(Place {
            extra: true,
            ..Place::new(seat)
        });
        self.places.len() - 1
    }

    fn ask_to_stop(&mut self, level: Level) {
        self.stop_landing
            .store(level == Level::Force, Ordering::SeqCst);
        for place in &mut self.places {
            let Some(meta) = place.meta.clone().filter(|_| place.asked < level) else {
                continue;
            };
            place.asked = level;
            let (setup, control) = (Arc::clone(&self.setup), Arc::clone(&self.control));
            // It blocks until the agent has ended; the thread that waits for the agent reports
            // that.
            thread::spawn(move || setup.stop(&meta, &control));
        }
    }
}

/// Takes the lock that allows one director per team.
fn direct(agents: &Agents) -> Result<FileLock, DirectorError> {
    let path = agents.director_lock();
    if let Some(dir) = path.parent() {
        store::home::create_private_dir(dir)?;
    }
    match FileLock::try_exclusive_after_death(&path, AFTER_DEATH)? {
        Some(lock) => Ok(lock),
        None => Err(DirectorError::Taken {
            team: agents.team_name().to_string(),
            who: FileLock::describe_holder(&path),
        }),
    }
}
