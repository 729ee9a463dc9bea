//! A session in the live view: passes events to the view, and the person's decisions to the
//! session.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use coordinator::session::{Decision, Offer, Session};
use signal_hook::consts::SIGINT;
use store::clock::{Clock, SystemClock};
use store::{Failure, counted};
use taskboard::TaskId;
use top::{Directs, LandOffer, LandQuestion, LogLine, SessionNews, Tone, Whose};

/// Poll interval for giving up while the view asks a person.
const LOOK: Duration = Duration::from_millis(100);

/// The view of a session, on a thread of its own.
#[derive(Debug)]
pub(super) struct LiveView {
    team: String,
    news: SessionNews,
    decided: Arc<Decided>,
    thread: Mutex<Option<JoinHandle<Result<(), Failure>>>>,
}

/// The decisions made in the view that the session has not carried out yet.
#[derive(Debug, Default)]
struct Decided {
    decisions: Mutex<Vec<Decision>>,
    signal: AtomicU8,
    /// True if the person wants lines instead.
    plain: AtomicBool,
    /// True if the view is closed.
    closed: AtomicBool,
    /// Receives the tasks to land; `None` if the session does not wait for them.
    landing: Mutex<Option<Sender<Vec<TaskId>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Hand(Arc<Decided>);

impl Directs for Hand {
    fn end(&self) {
        lock(&self.0.decisions).push(Decision::Quit);
    }

    fn interrupt(&self) {
        let number = u8::try_from(SIGINT).unwrap_or_default();
        self.0.signal.store(number, Ordering::SeqCst);
    }

    fn go_plain(&self) {
        self.0.plain.store(true, Ordering::SeqCst);
    }

    fn land(&self, tasks: Vec<TaskId>) {
        if let Some(asked) = lock(&self.0.landing).take() {
            asked.send(tasks).ok();
        }
    }
}

/// Reports on drop that the view is closed, for whatever reason.
struct Closes(Arc<Decided>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
        lock(&self.0.landing).take();
    }
}

impl LiveView {
    /// Opens the view of a session that has begun.
    pub(super) fn open(session: &Session) -> Self {
        let decided = Arc::new(Decided::default());
        let (news, inbox) = top::channel();
        let team = session.team.to_string();
        let whose = Whose::Session {
            team: team.clone(),
            directs: Box::new(Hand(Arc::clone(&decided))),
        };
        let workplace = session.workplace.in_team(&session.team);
        let closes = Closes(Arc::clone(&decided));
        let thread = std::thread::spawn(move || {
            let _closes = closes;
            top::run(&workplace, whose, inbox).map(|_| ())
        });
        Self {
            team,
            news,
            decided,
            thread: Mutex::new(Some(thread)),
        }
    }

    /// True if the view is on the screen.
    pub(super) fn is_open(&self) -> bool {
        !self.decided.closed.load(Ordering::SeqCst)
    }

    /// True if the person has closed the view to see lines instead.
    pub(super) fn wants_lines(&self) -> bool {
        self.decided.plain.load(Ordering::SeqCst)
    }

    /// Shows a line about an event; `text` has the colours of lines.
    pub(super) fn log(&self, text: &str) {
        let text = anstream::adapter::strip_str(text).to_string();
        let tone = tone_of(&text);
        let at_ms = SystemClock.now_ms();
        self.news.log(LogLine { at_ms, text, tone });
    }

    /// True if this process directs the session, or follows another one.
    pub(super) fn directs(&self, directs: bool) {
        self.news.directs(directs);
    }

    pub(super) fn decisions(&self) -> Vec<Decision> {
        std::mem::take(&mut *lock(&self.decided.decisions))
    }

    pub(super) fn signal(&self) -> Option<u8> {
        match self.decided.signal.swap(0, Ordering::SeqCst) {
            0 => None,
            number => Some(number),
        }
    }

    /// Asks which work lands; `None` if the view closes before there is an answer, or `give_up`
    /// returns true.
    pub(super) fn choose_to_land(
        &self,
        into: &str,
        offers: &[Offer],
        give_up: &dyn Fn() -> bool,
    ) -> Option<Vec<TaskId>> {
        let (answer, answered): (_, Receiver<Vec<TaskId>>) = channel();
        *lock(&self.decided.landing) = Some(answer);
        let question = LandQuestion {
            team: self.team.clone(),
            into: into.to_owned(),
            offers: offers.iter().map(land_offer).collect(),
        };
        if !self.news.ask_landing(question) || !self.is_open() {
            return None;
        }
        let chosen = loop {
            let interrupted = || self.decided.signal.load(Ordering::SeqCst) != 0;
            match answered.recv_timeout(LOOK) {
                Ok(chosen) => break Some(chosen),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) if give_up() || interrupted() => {
                    break Some(Vec::new());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        self.news.landing_over();
        chosen
    }

    /// Closes the view when the person has left what they look at; returns the error if the view
    /// could not be shown.
    pub(super) fn close(&self) -> Option<Failure> {
        self.news.session_over();
        let thread = lock(&self.thread).take()?;
        match thread.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some(Failure::internal("the view has failed")),
        }
    }
}

fn land_offer(offer: &Offer) -> LandOffer {
    let known = |count: Option<u64>| count.unwrap_or_default();
    let added: u64 = offer.files.iter().map(|file| known(file.added)).sum();
    let deleted: u64 = offer.files.iter().map(|file| known(file.deleted)).sum();
    LandOffer {
        task: offer.task,
        subject: offer.subject.clone(),
        size: match offer.files.len() {
            0 => String::new(),
            files => format!("{} +{added} -{deleted}", counted(files, "file")),
        },
        unchecked: offer.unchecked.clone(),
    }
}

/// The tone for the glyph at a line's beginning.
fn tone_of(text: &str) -> Tone {
    match text.chars().next() {
        Some('✔' | '⇥') => Tone::Good,
        Some('✘' | '⚠' | '⊘' | '?' | '!') => Tone::Warn,
        Some('‖') => Tone::Bad,
        _ => Tone::Plain,
    }
}
