//! The line at the bottom of the terminal in which a person types while ccb prints.
//!
//! The terminal itself echoes nothing: each print first removes the line and draws it again below,
//! so that neither tears the other apart. A process has one such line, as it has one terminal.

mod edit;
mod mode;

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstyle::Style;
use crossterm::event::{Event, KeyEventKind};
use unicode_width::UnicodeWidthStr;

pub use self::edit::{Edit, Typed};
use crate::style::{BOLD, DIM, clean_line};

/// Erases the line: the cursor goes to its beginning, and the rest is cleared.
const ERASE: &str = "\r\x1b[K";
const SIGN: &str = "› ";

/// The current line; `None` if no person types.
static LINE: Mutex<Option<Line>> = Mutex::new(None);

/// Held by the thread that reads keys.
static READING: Mutex<()> = Mutex::new(());

/// Maximum time that another program may have to wait for the keys.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct Line {
    edit: Edit,
    /// The question; empty if there is none.
    question: String,
    /// The text shown as long as nothing is typed.
    hint: String,
    colours: bool,
}

fn line() -> MutexGuard<'static, Option<Line>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints something above the line in which a person types, if there is one.
pub fn above<T>(print: impl FnOnce() -> T) -> T {
    let line = line();
    if line.is_some() {
        raw(ERASE);
    }
    let printed = print();
    if let Some(line) = line.as_ref() {
        line.draw();
    }
    printed
}

fn raw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // A terminal that is gone shows nothing.
    stderr.write_all(text.as_bytes()).ok();
    stderr.flush().ok();
}

impl Line {
    fn draw(&self) {
        let columns = crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns));
        let asked = match self.question.is_empty() {
            true => String::new(),
            false => format!("{} ", self.question),
        };
        let room = columns.saturating_sub(SIGN.width());
        let asked = crate::table::fit(&asked, room.saturating_sub(8));
        let width = room.saturating_sub(asked.width());
        let (text, cursor) = self.edit.view(width);
        let (bold, dim) = match self.colours {
            true => (BOLD, DIM),
            false => (Style::new(), Style::new()),
        };
        let shown = match self.edit.is_empty() && self.question.is_empty() {
            true => {
                let hint = crate::table::fit(&self.hint, width.saturating_sub(1));
                format!("{dim}{hint}{dim:#}")
            }
            false => text,
        };
        let to = asked.width() + SIGN.width() + cursor;
        raw(&format!(
            "{ERASE}{bold}{asked}{bold:#}{bold}{SIGN}{bold:#}{shown}\r\x1b[{to}C"
        ));
    }
}

/// Lets a person type. Dropping it restores the terminal.
#[derive(Debug)]
pub struct Prompt {
    lines: Mutex<Receiver<Option<String>>>,
    mode: mode::Mode,
}

impl Prompt {
    /// Opens the line at a terminal that can do more than print; `None` elsewhere.
    pub fn open() -> Option<Self> {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        if !terminal || dumb {
            return None;
        }
        let mode = mode::Mode::enter()?;
        let choice = anstream::AutoStream::choice(&std::io::stderr());
        *line() = Some(Line {
            edit: Edit::default(),
            question: String::new(),
            hint: String::new(),
            colours: choice != anstream::ColorChoice::Never,
        });
        let (sender, lines) = mpsc::channel();
        // The thread ends with the process: a read from a terminal cannot be cancelled.
        std::thread::spawn(move || read(&sender));
        Some(Self {
            lines: Mutex::new(lines),
            mode,
        })
    }

    /// Sets the text shown as long as nothing is typed.
    pub fn hint(&self, hint: &str) {
        if let Some(line) = line().as_mut() {
            line.hint = clean_line(hint);
            line.draw();
        }
    }

    /// The lines typed since the last call; `None` marks the end of the input.
    pub fn typed(&self) -> Vec<Option<String>> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.try_iter().collect()
    }

    /// Asks, and waits for the answer; `None` if `give_up` returns true or the input has ended.
    pub fn ask(&self, question: &str, give_up: impl Fn() -> bool) -> Option<String> {
        let show = |question: &str| {
            if let Some(line) = line().as_mut() {
                line.question = clean_line(question);
                line.draw();
            }
        };
        show(question);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = loop {
            match lines.recv_timeout(LOOK / 2) {
                Ok(line) => break line,
                Err(mpsc::RecvTimeoutError::Timeout) if !give_up() => {}
                Err(_) => break None,
            }
        };
        show("");
        // The question remains readable where it was asked.
        let said = answer.as_deref().unwrap_or_default();
        above(|| {
            let text = format!(
                "{BOLD}{}{BOLD:#} {}",
                clean_line(question),
                clean_line(said)
            );
            writeln!(anstream::stderr(), "{text}").ok()
        });
        answer
    }

    /// Gives the terminal to another program until `run` returns.
    pub fn lend<T>(&self, run: impl FnOnce() -> T) -> T {
        // Without the lock, the reading thread would take the other program's keys.
        let _nobody_reads = READING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = line();
        raw(ERASE);
        self.mode.leave();
        let result = run();
        self.mode.again();
        if let Some(line) = line.as_mut() {
            line.draw();
        }
        result
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        if line().take().is_some() {
            raw(ERASE);
        }
        self.mode.leave();
    }
}

/// Passes on the typed lines until the input ends.
fn read(lines: &Sender<Option<String>>) {
    loop {
        let event = {
            let _reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
            match crossterm::event::poll(LOOK) {
                Ok(true) => crossterm::event::read(),
                Ok(false) => continue,
                Err(error) => Err(error),
            }
        };
        let Ok(event) = event else {
            break;
        };
        let mut line = line();
        let Some(line) = line.as_mut() else {
            break;
        };
        let typed = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => line.edit.key(key),
            Event::Paste(text) => {
                line.edit.paste(&text);
                Typed::Changed
            }
            Event::Resize(..) => Typed::Changed,
            _ => Typed::Nothing,
        };
        let sent = match typed {
            Typed::Line(text) => lines.send(Some(text)),
            Typed::End => lines.send(None),
            Typed::Changed => Ok(()),
            Typed::Nothing => continue,
        };
        line.draw();
        if sent.is_err() {
            return;
        }
    }
    lines.send(None).ok();
}
