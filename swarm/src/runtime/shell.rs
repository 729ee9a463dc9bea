//! The runtime that needs no model: the prompt is a command for the shell.
//!
//! Its exit code is its result: 0 is success. Its output is kept, and the end of it is the result's
//! text. It takes in no messages; a script can read its mail with `ccb mail`.

use std::io;

use store::atomic::{self, Durability};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::{
    Abilities, Agent, AgentPort, EndWatch, Event, Launch, LaunchError, Messages, Runtime, Start,
    Stream, TurnEnd, TurnStatus, agent, program,
};
use crate::process::{Child, Ending, Processes};

/// The longest command that is passed as an argument; the kernel's limit is 128 KiB.
const MAX_ARGUMENT: usize = 100 * 1024;
/// Maximum bytes of one read.
const CHUNK: usize = 64 * 1024;
/// Bytes at the end of the output that are the result.
const RESULT: usize = 16 * 1024;

/// Runs commands.
#[derive(Debug, Clone)]
pub struct ShellRuntime {
    /// The program and the arguments that come before the command.
    command: Vec<String>,
}

impl ShellRuntime {
    /// Runs prompts with `command`, to which the prompt is added as the last argument.
    pub fn new(command: Vec<String>) -> Self {
        Self { command }
    }
}

impl Default for ShellRuntime {
    fn default() -> Self {
        Self::new(vec!["/bin/sh".into(), "-c".into()])
    }
}

impl Runtime for ShellRuntime {
    fn abilities(&self) -> Abilities {
        Abilities {
            messages: Messages::Never,
            interrupt: false,
            // There is nothing to remember: a resume runs the command again.
            resume: true,
            fork: false,
            read_only: false,
        }
    }

    fn launch(&self, launch: Launch, processes: &Processes) -> Result<Agent, LaunchError> {
        if let Start::Fork { .. } = launch.start {
            let why = "a shell command has no conversation to fork";
            return Err(LaunchError::Unsupported(why.into()));
        }
        if launch.prompt.contains('\0') {
            let why = "a command cannot contain NUL bytes";
            return Err(LaunchError::Unsupported(why.into()));
        }
        let mut command = program::command(&self.command, &launch)?;
        if launch.prompt.len() > MAX_ARGUMENT {
            let script = launch.scratch.join("command.sh");
            let text = launch.prompt.as_bytes();
            atomic::replace(&launch.scratch, &script, text, Durability::Relaxed)?;
            command.arg(format!(". {}", program::quoted(&script.to_string_lossy())));
        } else {
            command.arg(&launch.prompt);
        }
        let child = program::start(command, false, processes)?;
        let (agent, port) = agent();
        tokio::spawn(translate(child, port));
        Ok(agent)
    }
}

async fn translate(child: Child, port: AgentPort) {
    // Orders are not read: a command takes none.
    let AgentPort { events, orders } = port;
    drop(orders);
    let started = Event::Started {
        session: None,
        model: None,
    };
    events.send(started).await.ok();
    let mut end = EndWatch::new(child.ended);
    let (tail, errors) = tokio::join!(
        pump(child.stdout, Stream::Stdout, &events, end.clone()),
        pump(child.stderr, Stream::Stderr, &events, end.clone()),
    );
    let ending = end.ending().await;
    let turn = TurnEnd {
        status: match ending {
            Ending::Exited(0) => TurnStatus::Completed,
            _ => TurnStatus::Failed,
        },
        text: tail.text(),
        error: match ending {
            Ending::Exited(0) => None,
            other => Some(failure(other, &errors)),
        },
    };
    events.send(Event::TurnEnded(turn)).await.ok();
    events.send(Event::Ended(ending)).await.ok();
}

fn failure(ending: Ending, errors: &Tail) -> String {
    let printed = errors.text();
    let how = format!("the command {}", ending.in_words());
    match printed.trim_end() {
        "" => how,
        last => format!("{how}; it printed:\n{last}"),
    }
}

/// Passes on what comes through `pipe`; returns the end of it.
async fn pump(
    pipe: Option<pipe::Receiver>,
    stream: Stream,
    events: &mpsc::Sender<Event>,
    mut end: EndWatch,
) -> Tail {
    let mut tail = Tail::default();
    let Some(mut pipe) = pipe else {
        return tail;
    };
    loop {
        let mut bytes = Vec::with_capacity(CHUNK);
        let mut piece = (&mut pipe).take(CHUNK as u64);
        match end.read(piece.read_buf(&mut bytes)).await {
            Some(Ok(1..)) => {}
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
            _ => return tail,
        }
        tail.push(&bytes);
        bytes.shrink_to_fit();
        if events.send(Event::Output { stream, bytes }).await.is_err() {
            return tail;
        }
    }
}

/// The end of something long.
#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * RESULT + CHUNK {
            let surplus = self.bytes.len() - RESULT;
            self.bytes.drain(..surplus);
            self.cut = true;
        }
    }

    fn text(&self) -> String {
        let surplus = self.bytes.len().saturating_sub(RESULT);
        // Not in the middle of a character.
        let inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let cut = surplus > 0 || self.cut;
        let start = self.bytes[surplus..].iter().take(3).take_while(inside);
        let torn = if cut { start.count() } else { 0 };
        let text = String::from_utf8_lossy(&self.bytes[surplus + torn..]);
        let text = text.trim_end();
        if cut {
            return format!("[the beginning is in the output file]\n{text}");
        }
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_torn_wherever_the_beginning_was_cut() {
        for length in 0..4 {
            let mut tail = Tail::default();
            tail.push("ü".repeat(RESULT).as_bytes());
            tail.push(&b"x".repeat(CHUNK + 1 + length));
            let text = tail.text();
            assert!(!text.contains('\u{fffd}'), "{length}");
            assert!(text.len() <= RESULT + 50, "{}", text.len());
        }
    }
}
