//! What the agent is told.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde::Deserialize;

/// The first line.
#[derive(Debug, Deserialize)]
pub(super) struct Prompt {
    pub text: String,
    #[serde(default)]
    pub session: Option<String>,
}

/// A message for the model.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Message {
    pub id: String,
    pub text: String,
    #[serde(default)]
    pub now: bool,
}

/// A line of input after the first.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Input {
    Message(Message),
    Interrupt,
    Permission { id: String, allow: bool },
    Stop,
}

pub(super) fn prompt(line: &str) -> Result<Prompt, String> {
    serde_json::from_str(line).map_err(|error| format!("the first line is no prompt: {error}"))
}

/// Reads lines until there are no more; then the channel closes.
pub(super) fn listen() -> Receiver<Input> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else {
                return;
            };
            let Ok(input) = serde_json::from_str(&line) else {
                eprintln!("fake-agent: cannot understand {line}");
                continue;
            };
            if sender.send(input).is_err() {
                return;
            }
        }
    });
    receiver
}
