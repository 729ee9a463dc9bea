//! What is typed during a session. Standard input has one owner, this.

use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

use coordinator::session::Decision;
use store::Failure;

pub(super) const HELP: &str =
    "  TEXT           tell the lead; where you lead: put it on the board as a task
  @NAME TEXT     write to an agent
  /tasks         show the board
  /agents        show who is there
  /stop NAME     stop an agent; its task is free again
  /approve ID    approve a plan or a permission (the id's beginning is enough)
  /reject ID WHY the opposite
  /quit          ask everybody to stop, and end; the same command goes on later";

/// Lines that a person types.
#[derive(Debug)]
pub(super) struct Typed {
    lines: Mutex<Receiver<String>>,
    /// Nobody will type anything any more.
    gone: Arc<AtomicBool>,
}

impl Typed {
    /// Reads on a thread that ends with the process.
    pub(super) fn read() -> Self {
        let gone = Arc::new(AtomicBool::new(false));
        let (sender, lines) = mpsc::channel();
        let over = Arc::clone(&gone);
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
        Self {
            lines: Mutex::new(lines),
            gone,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// What was typed since the last call.
    pub(super) fn so_far(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.try_iter().collect()
    }

    /// The next line. Whoever has ended its input can still answer at the terminal.
    pub(super) fn next(&self) -> Result<String, Failure> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(line) = lines.recv() {
            return Ok(line);
        }
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(_) => Ok(line),
            Err(error) => {
                let message = format!("cannot read the answer: {error}");
                Err(Failure::failed("io", message))
            }
        }
    }
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
        assert_eq!(decision("/stop bob"), Some(Decision::Stop("bob".into())));
        assert_eq!(decision("/approve 12"), answer("12", true, None));
        assert_eq!(
            decision("/reject 12 too wide"),
            answer("12", false, Some("too wide"))
        );
        assert_eq!(decision("/what"), None);
    }
}
