//! Carries out the effects that [`mod@super::update`] returns, on its own threads: reads the scene,
//! transcripts and diffs, and performs the person's decisions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use coordinator::perform;
use observe::live::{self, Act, Live, Scene, TranscriptReader, WaiterBell, Woken};
use project::workplace::Workplace;
use store::Failure;
use store::clock::{Clock, SystemClock};
use store::name::Name;

use super::model::{AgentKey, ChangesOf, Message};
use crate::model::transcript::TranscriptNews;

/// Maximum wait before a thread checks whether it is still wanted.
const LONG: Duration = Duration::from_secs(600);
/// Number of last entries that are sent again, because one of them may have a result by now.
const AGAIN: usize = 256;

/// The threads that read and act.
#[derive(Debug)]
pub(super) struct Hands {
    workplace: Workplace,
    to: Sender<Message>,
    orders: Sender<Option<AgentKey>>,
    bell: WaiterBell,
    /// True when the view is closed: no thread waits for results any more.
    stop: Arc<AtomicBool>,
    reads_changes: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hands {
    pub(super) fn start(workplace: &Workplace, to: Sender<Message>) -> Result<Self, Failure> {
        let live = Live::open(workplace)?;
        let (orders, ordered) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let waiter = live.waiter();
        let bell = waiter.bell();
        let mut eye = Eye {
            live,
            waiter,
            ordered,
            to: to.clone(),
            stop: Arc::clone(&stop),
            followed: None,
        };
        let thread = std::thread::spawn(move || eye.look());
        Ok(Self {
            workplace: workplace.clone(),
            to,
            orders,
            bell,
            stop,
            reads_changes: Arc::default(),
            thread: Some(thread),
        })
    }

    /// Reads the transcript of this agent from now on.
    pub(super) fn follow(&self, agent: Option<AgentKey>) {
        self.orders.send(agent).ok();
        self.bell.ring();
    }

    pub(super) fn act(&self, team: String, act: Act) {
        let (workplace, to) = (self.workplace.clone(), self.to.clone());
        let (bell, stop) = (self.bell.clone(), Arc::clone(&self.stop));
        std::thread::spawn(move || {
            let done = perform::act(&act, &team, &workplace, &stop);
            to.send(Message::Done(done.map_err(|error| words(&error))))
                .ok();
            bell.ring();
        });
    }

    pub(super) fn read_changes(&self, of: ChangesOf) {
        // Git may be slow; a second one beside it would only make both slower.
        if self.reads_changes.swap(true, Ordering::SeqCst) {
            return;
        }
        let (workplace, to) = (self.workplace.clone(), self.to.clone());
        let reads = Arc::clone(&self.reads_changes);
        std::thread::spawn(move || {
            let found = Name::new("team", &of.team)
                .map_err(Failure::from)
                .and_then(|team| live::changes(&of.what, &workplace.in_team(&team)));
            reads.store(false, Ordering::SeqCst);
            let result = found.map_err(|error| words(&error));
            to.send(Message::Changes { of, result }).ok();
        });
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A failure and its hint on one line.
fn words(error: &Failure) -> String {
    match error.hint() {
        Some(hint) => format!("{}. {hint}", error.message()),
        None => error.message().to_owned(),
    }
}

/// Reads again whenever something may have changed.
struct Eye {
    live: Live,
    waiter: live::Waiter,
    ordered: Receiver<Option<AgentKey>>,
    to: Sender<Message>,
    stop: Arc<AtomicBool>,
    followed: Option<Followed>,
}

struct Followed {
    agent: AgentKey,
    reader: Result<TranscriptReader, String>,
    /// True if entries were sent.
    sent: bool,
}

impl Eye {
    fn look(&mut self) {
        let mut before: Option<Arc<Scene>> = None;
        while !self.stop.load(Ordering::SeqCst) {
            let scene = Arc::new(self.live.look(SystemClock.now_ms()));
            let same = before
                .as_ref()
                .is_some_and(|before| is_same(before, &scene));
            if !same {
                before = Some(Arc::clone(&scene));
            }
            self.take_orders();
            // Together, so that the screen is drawn once for both.
            let scene = (!same).then_some(Message::Scene(scene));
            for message in scene.into_iter().chain(self.read()) {
                if self.to.send(message).is_err() {
                    return;
                }
            }
            while self.waiter.wait(LONG) == Woken::TimeUp {
                if self.stop.load(Ordering::SeqCst) {
                    return;
                }
            }
        }
    }

    fn take_orders(&mut self) {
        let Some(order) = self.ordered.try_iter().last() else {
            return;
        };
        self.followed = order.map(|agent| Followed {
            reader: self
                .live
                .transcript(&agent.team, &agent.id)
                .map_err(|error| words(&error)),
            agent,
            sent: false,
        });
    }

    /// Reads the new part of the followed transcript; `None` if there is nothing new.
    fn read(&mut self) -> Option<Message> {
        let followed = self.followed.as_mut()?;
        let news = match &mut followed.reader {
            Err(_) if followed.sent => return None,
            Err(why) => TranscriptNews {
                trouble: Some(why.clone()),
                ..TranscriptNews::default()
            },
            Ok(reader) => {
                let new = reader.poll();
                if !new && followed.sent {
                    return None;
                }
                let all = reader.entries();
                let skipped = match followed.sent {
                    true => all.len().saturating_sub(AGAIN),
                    false => 0,
                };
                TranscriptNews {
                    first: all.front().map_or(0, |entry| entry.number),
                    entries: all.iter().skip(skipped).cloned().collect(),
                    earlier: reader.has_earlier(),
                    trouble: reader.trouble().map(str::to_owned),
                }
            }
        };
        followed.sent = true;
        let agent = followed.agent.clone();
        Some(Message::Transcript { agent, news })
    }
}

/// True if two scenes look the same, apart from the time of reading.
fn is_same(a: &Scene, b: &Scene) -> bool {
    a.teams == b.teams && a.attention == b.attention && a.troubles == b.troubles
}
