//! What is typed during a session. Standard input has one owner, this.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coordinator::session::Decision;

use crate::prompt::Prompt;

pub(super) const HELP: &str =
    "  TEXT             message the lead; if you lead: add a task for an agent
  @NAME TEXT       message an agent
  /task TEXT       add a task for an agent
  /run CMD         add a task that runs a command
  /tasks           show the board
  /agents          show who is working
  /stop NAME       stop an agent; its task goes back on the board
  /approve ID      approve a plan or permission (the start of the ID will do)
  /reject ID WHY   deny it
  /quit            stop the agents, decide what lands, and end
The session ends by itself when the work is done (not with --stay).
Ctrl-C stops the agents; the same command resumes the session.";

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

/// What a line means; none for one that asks for help.
pub(super) fn decision(line: &str) -> Option<Decision> {
    if let Some(rest) = line.strip_prefix('@') {
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        return Some(Decision::Write {
            to: name.to_owned(),
            text: text.trim().to_owned(),
        });
    }
    let Some(command) = line.strip_prefix('/') else {
        return Some(Decision::Say(line.to_owned()));
    };
    let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
    let rest = rest.trim();
    let answer = |approve| {
        let (request, why) = rest.split_once(' ').unwrap_or((rest, ""));
        Decision::Answer {
            request: request.to_owned(),
            approve,
            why: (!why.trim().is_empty()).then(|| why.trim().to_owned()),
        }
    };
    match verb {
        "quit" | "exit" | "q" => Some(Decision::Quit),
        "tasks" => Some(Decision::ShowTasks),
        "agents" => Some(Decision::ShowAgents),
        "task" => Some(Decision::AddTask(rest.to_owned())),
        "run" => Some(Decision::AddCommand(rest.to_owned())),
        "stop" => Some(Decision::Stop(rest.to_owned())),
        "approve" => Some(answer(true)),
        "reject" => Some(answer(false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_a_message_or_a_word_to_the_lead() {
        let answer = |request: &str, approve, why: Option<&str>| {
            Some(Decision::Answer {
                request: request.into(),
                approve,
                why: why.map(str::to_owned),
            })
        };
        assert_eq!(decision("do it"), Some(Decision::Say("do it".into())));
        let to_ann = Decision::Write {
            to: "ann".into(),
            text: "hello you".into(),
        };
        assert_eq!(decision("@ann  hello you"), Some(to_ann));
        assert_eq!(decision("/q"), Some(Decision::Quit));
        let test = Decision::AddCommand("make test".into());
        assert_eq!(decision("/run make test"), Some(test));
        assert_eq!(decision("/stop bob"), Some(Decision::Stop("bob".into())));
        assert_eq!(decision("/approve 12"), answer("12", true, None));
        assert_eq!(
            decision("/reject 12 too wide"),
            answer("12", false, Some("too wide"))
        );
        assert_eq!(decision("/what"), None);
    }
}
