//! What is typed during a session. Standard input has one owner, this.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use term::prompt::Prompt;

/// How long one wait for an answer takes at most before it is looked whether to give up.
const LOOK: Duration = Duration::from_millis(100);

/// Lines that a person types.
#[derive(Debug)]
pub(super) struct Typed {
    /// Where the terminal can show it while other things are printed.
    prompt: Option<Prompt>,
    lines: Option<Mutex<Receiver<String>>>,
    /// Nobody will type anything any more, but answers.
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

    /// Says what can be typed.
    pub(super) fn hint(&self, hint: &str) {
        if let Some(prompt) = &self.prompt {
            prompt.hint(hint);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// What was typed since the last call; and whether that was the end of it.
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

    /// Asks and waits; none if nobody answers any more or `give_up` says so. Whoever has ended
    /// the input can still answer at the terminal.
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

    /// Lets another program have the terminal.
    pub(super) fn lend<T>(&self, run: impl FnOnce() -> T) -> T {
        match &self.prompt {
            Some(prompt) => prompt.lend(run),
            None => run(),
        }
    }
}

/// Reads on a thread that ends with the process.
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
