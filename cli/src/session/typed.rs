//! Input typed during a session. This module is the only reader of standard input.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use term::prompt::Prompt;

/// Poll interval for giving up while a question waits for its answer.
const LOOK: Duration = Duration::from_millis(100);

/// Lines that a person types.
#[derive(Debug)]
pub(super) struct Typed {
    /// The line at the bottom of the terminal; `None` if the terminal cannot show one.
    prompt: Option<Prompt>,
    lines: Option<Mutex<Receiver<String>>>,
    /// True if the person can type nothing more but answers.
    gone: Arc<AtomicBool>,
}

impl Typed {
    pub(super) fn read() -> Self {
        let prompt = Prompt::open();
        let gone = Arc::new(AtomicBool::new(false));
        let lines = match prompt {
            Some(_) => None,
            None => Some(Mutex::new(plain_lines(&gone))),
        };
        Self {
            prompt,
            lines,
            gone,
        }
    }

    /// Shows what can be typed.
    pub(super) fn hint(&self, hint: &str) {
        if let Some(prompt) = &self.prompt {
            prompt.hint(hint);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// The lines typed since the last call; the boolean is true at the end of the input.
    pub(super) fn so_far(&self) -> (Vec<String>, bool) {
        let mut ended = false;
        let typed = match (&self.prompt, &self.lines) {
            (Some(prompt), _) => {
                let typed = prompt.typed();
                let end = typed.iter().any(Option::is_none);
                ended = end && !self.gone.swap(true, Ordering::SeqCst);
                typed.into_iter().flatten().collect()
            }
            (None, Some(lines)) => {
                let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.try_iter().collect()
            }
            (None, None) => Vec::new(),
        };
        (typed, ended)
    }

    /// Asks and waits; `None` if no answer can come or `give_up` returns true. A person who has
    /// ended the input can still answer at the terminal.
    pub(super) fn ask(&self, question: &str, give_up: impl Fn() -> bool) -> Option<String> {
        if let Some(prompt) = &self.prompt {
            return prompt.ask(question, give_up);
        }
        writeln!(std::io::stderr(), "{question}").ok();
        let lines = self.lines.as_ref()?;
        let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match lines.recv_timeout(LOOK) {
                Ok(line) => return Some(line),
                Err(RecvTimeoutError::Timeout) if !give_up() => {}
                Err(_) => break,
            }
        }
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(1..) => Some(line),
            _ => None,
        }
    }

    /// Gives the terminal to another program until `run` returns.
    pub(super) fn lend<T>(&self, run: impl FnOnce() -> T) -> T {
        match &self.prompt {
            Some(prompt) => prompt.lend(run),
            None => run(),
        }
    }
}

/// Reads lines on a thread that ends with the process.
fn plain_lines(gone: &Arc<AtomicBool>) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let over = Arc::clone(gone);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else {
                break;
            };
            if sender.send(line).is_err() {
                break;
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    lines
}
