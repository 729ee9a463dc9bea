//! The live view: which agent works on what, what needs a person, and the keys that steer it.
//!
//! # What this room knows
//!
//! Panes, keys, dialogs and pictures; the terminal while the view has it, and how it is restored after an
//! end, a panic or a kill.
//!
//! # What it must not know (and where to go instead)
//!
//! * How a scene is read from board, mail and runs: the live scene that [`Workplace`] opens.
//! * How a decision is carried out: the same acts that the page uses.
//! * How a session is directed: `cli` implements [`Directs`] and sends [`SessionNews`].
//! * The line editor and the colours of lines: `cli/term`.
//!
//! # The way through
//!
//! 1. Threads in `effects` read scenes, transcripts and diffs; `events` reads keys and signals. All send messages.
//! 2. `update` changes the `model` for each message and returns effects. It is pure.
//! 3. `view` draws the model; only cells that changed reach the terminal.
//! 4. `effects` carries the effects out, or [`Directs`] tells the session.
//! 5. `restorer`, a process of its own, restores the terminal if the view is killed.
//!
//! # Crash points
//!
//! [`FAULT_POINTS`]: the screen is about to be drawn. Tests make that panic and fail; the terminal is
//! restored in both cases. The tests are in `tests/it/top.rs`.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change the live view | `cli/top/src/`: `model/` (what it knows; `model/lists.rs`: what is in a list), `update/` (what keys and news change; pure: `update/command.rs`, `update/typing.rs`, `update/dialogs.rs`), `keys.rs` (which key), `view/` (one file per pane), `text.rs` (text of others on its way to a cell), `effects.rs` (reads and acts on other threads); its tests and pictures are in `tests/`; in a session: `cli/src/session/live.rs` |
//! | know how the terminal is given back | `cli/top/src/terminal.rs`, `restorer.rs` (after kill -9), `events.rs` (signals), `input.rs` (keys); the tests are in `tests/it/top.rs` |

mod effects;
mod events;
mod fault;
#[doc(hidden)]
pub mod fuzz;
mod input;
mod keys;
mod model;
mod news;
mod restorer;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod update;
mod view;

use std::fmt::Debug;
use std::io::{self, BufWriter, Stdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use project::workplace::Workplace;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use store::Failure;
use store::clock::{Clock, SystemClock};

use self::effects::Hands;
use self::events::{Keys, OnEnd, SignalThread, stop_here};
pub use self::fault::FAULT_POINTS;
use self::model::{Effect, Message, Model, Role};
pub use self::model::{LandOffer, LandQuestion, LogLine, Tone};
pub use self::restorer::main as restorer_main;
use self::terminal::Screen;
pub use self::terminal::{hold_back, is_possible};
use self::update::update;

/// Maximum number of messages handled before the screen is drawn again.
const AT_ONCE: usize = 256;

/// A session's reactions to what a person decides in its view.
pub trait Directs: Send + Debug {
    /// The person wants the session to end.
    fn end(&self);
    /// The person wants agents to stop now: Ctrl-C.
    fn interrupt(&self);
    /// The view closes; the session continues as lines.
    fn go_plain(&self);
    /// The person chose the tasks that land.
    fn land(&self, tasks: Vec<taskboard::TaskId>);
}

/// The result of leaving the view.
#[derive(Debug)]
pub struct Left {
    /// Lines to print: what continues, and the command to come back.
    pub words: Vec<String>,
}

/// The owner of the view.
#[derive(Debug)]
pub enum Whose {
    /// A person who only watches.
    Watcher,
    /// A session that this process directs.
    Session {
        /// The session's team.
        team: String,
        /// Carries out what the person decides.
        directs: Box<dyn Directs>,
    },
}

/// Sends a view the events of the session it shows.
#[derive(Debug, Clone)]
pub struct SessionNews(Sender<Message>);

impl SessionNews {
    /// Shows a line about an event.
    pub fn log(&self, line: LogLine) {
        self.0.send(Message::Logged(line)).ok();
    }

    /// `directs`: true if this process directs the session, false if it follows another one.
    pub fn directs(&self, directs: bool) {
        self.0.send(Message::Directs(directs)).ok();
    }

    /// Asks which work lands; the answer goes to [`Directs::land`]. False if the view is closed.
    pub fn ask_landing(&self, question: LandQuestion) -> bool {
        self.0.send(Message::AskLanding(question)).is_ok()
    }

    /// Closes the question about landing.
    pub fn landing_over(&self) {
        self.0.send(Message::LandingOver).ok();
    }

    /// The session is over: the view closes when the person leaves it.
    pub fn session_over(&self) {
        self.0.send(Message::SessionOver).ok();
    }
}

/// The messages of a view that is not shown yet.
#[derive(Debug)]
pub struct Inbox {
    to: Sender<Message>,
    messages: Receiver<Message>,
}

/// The messages of a view, and the end that a session sends them from.
pub fn channel() -> (SessionNews, Inbox) {
    let (to, messages) = mpsc::channel();
    let news = SessionNews(to.clone());
    (news, Inbox { to, messages })
}

/// Shows the view on this thread until it is closed.
pub fn run(
    workplace: &Workplace,
    whose: Whose,
    Inbox { to, messages }: Inbox,
) -> Result<Left, Failure> {
    let (role, directs, on_end) = match whose {
        Whose::Watcher => (Role::Watcher, None, OnEnd::Die),
        Whose::Session { team, directs } => (Role::Session { team }, Some(directs), OnEnd::Session),
    };
    let failed = |error: io::Error| Failure::failed("terminal", format!("the terminal: {error}"));
    let mut model = Model::new(role, SystemClock.now_ms(), size());
    let choice = anstream::AutoStream::choice(&io::stdout());
    model.colours = choice != anstream::ColorChoice::Never;
    if workplace.team_is_explicit() {
        model.team = workplace.team().ok().map(|team| team.to_string());
    }
    let hands = Hands::start(workplace, to.clone())?;
    let screen = Screen::enter().map_err(failed)?;
    let _signals = SignalThread::listen(to.clone(), on_end).map_err(failed)?;
    let _keys = Keys::read(to).map_err(failed)?;
    let mut shown = Shown {
        terminal: Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())))
            .map_err(failed)?,
        screen: &screen,
        hands: &hands,
        directs: directs.as_deref(),
    };
    shown.show(&mut model, &messages).map_err(failed)?;
    Ok(Left {
        words: farewell(&model),
    })
}

struct Shown<'a> {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    screen: &'a Screen,
    hands: &'a Hands,
    directs: Option<&'a dyn Directs>,
}

impl Shown<'_> {
    fn show(&mut self, model: &mut Model, messages: &Receiver<Message>) -> io::Result<()> {
        loop {
            self.draw(model)?;
            let tick = model.next_tick().and_then(|ms| u64::try_from(ms).ok());
            let first = match tick {
                None => messages.recv().ok(),
                Some(ms) => match messages.recv_timeout(Duration::from_millis(ms)) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => Some(Message::Tick),
                    Err(RecvTimeoutError::Disconnected) => None,
                },
            };
            // All senders have gone.
            let Some(first) = first else {
                return Ok(());
            };
            for message in std::iter::once(first).chain(messages.try_iter().take(AT_ONCE)) {
                model.now = SystemClock.now_ms();
                (model.columns, model.rows) = size();
                for effect in update(model, message) {
                    if effect == Effect::Close {
                        return Ok(());
                    }
                    self.carry_out(effect)?;
                }
            }
        }
    }

    fn draw(&mut self, model: &mut Model) -> io::Result<()> {
        // Only where a test asks for it: a read-only file system stands for a panic.
        if let Err(error) = store::fault::pass(fault::DRAW) {
            assert_ne!(error.kind(), io::ErrorKind::ReadOnlyFilesystem, "asked for");
            return Err(error);
        }
        (model.columns, model.rows) = size();
        let terminal = &mut self.terminal;
        self.screen
            .while_ours(|| terminal.draw(|frame| view::draw(frame, model)).map(|_| ()))
    }

    fn carry_out(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Act { team, act } => self.hands.act(team, act),
            Effect::Follow(agent) => self.hands.follow(agent),
            Effect::ReadChanges(of) => self.hands.read_changes(of),
            Effect::Suspend => {
                self.screen.leave();
                stop_here();
                self.screen.again()?;
                self.forget_screen()?;
            }
            Effect::Redraw => {
                // The program that drew over it, or the shell that continued us, may have changed
                // the terminal.
                self.screen.again()?;
                self.forget_screen()?;
            }
            Effect::AnswerLanding(tasks) => self.tell(|it| it.land(tasks)),
            Effect::EndSession => self.tell(|it| it.end()),
            Effect::Interrupt => self.tell(|it| it.interrupt()),
            Effect::GoPlain => self.tell(|it| it.go_plain()),
            Effect::Close => {}
        }
        Ok(())
    }

    /// Draws the whole screen again; `clear` would ask the terminal where its cursor is.
    fn forget_screen(&mut self) -> io::Result<()> {
        let area = self.terminal.size()?.into();
        self.terminal.resize(area)
    }

    fn tell(&self, what: impl FnOnce(&dyn Directs)) {
        if let Some(directs) = self.directs {
            what(directs);
        }
    }
}

/// The lines about what continues without the view.
fn farewell(model: &Model) -> Vec<String> {
    use observe::live::TeamLife;
    let running = model
        .scene
        .teams
        .iter()
        .filter(|team| team.life == TeamLife::Running);
    let mut words: Vec<String> = running
        .map(|team| {
            let who = team
                .director
                .as_ref()
                .map(|director| text::line(&director.who));
            let by = who.map(|who| format!(" ({who})")).unwrap_or_default();
            format!("Team {} continues{by}.", text::line(&team.name))
        })
        .collect();
    let needs = model.scene.attention.len();
    if needs > 0 {
        let things = store::counted(needs, "thing");
        let verb = if needs == 1 { "needs" } else { "need" };
        words.push(format!("{things} {verb} you: ccb status"));
    }
    if !words.is_empty() {
        words.push("Come back: ccb top".into());
    }
    words
}

fn size() -> (u16, u16) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}
