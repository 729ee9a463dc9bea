//! The two pipes between the loop and its host.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;

use serde_json::Value;
use swarm::runtime::{Line, LineReader};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::Opening;
use super::protocol::{Say, Told};

/// The longest line that is read: a prompt may be a whole book.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// The longest text that is said at once. The host reads lines of 4 MB.
const MAX_SAID: usize = 512 * 1024;
/// Maximum lines that wait for the host.
const UNREAD: usize = 64;

/// The host closed the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// The loop's output to its host.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    lines: mpsc::Sender<Vec<u8>>,
}

impl Outbox {
    /// Writes to `pipe`. The task ends when every sender is dropped and everything is written; it
    /// gives the pipe back unless the host has closed it.
    pub(super) fn new(pipe: OwnedFd) -> io::Result<(Self, JoinHandle<Option<OwnedFd>>)> {
        let mut pipe = pipe::Sender::from_owned_fd(pipe)?;
        let (lines, mut said) = mpsc::channel::<Vec<u8>>(UNREAD);
        let writer = tokio::spawn(async move {
            while let Some(line) = said.recv().await {
                if pipe.write_all(&line).await.is_err() {
                    return None;
                }
            }
            pipe.into_nonblocking_fd().ok()
        });
        Ok((Self { lines }, writer))
    }

    /// Says something; waits while the host has enough to read.
    pub(super) async fn say(&self, said: &Say) -> Result<(), Gone> {
        self.lines.send(line(said)).await.map_err(|_| Gone)
    }

    /// Sends a line that may be dropped if the host has many to read.
    pub(super) fn mention(&self, said: &Say) {
        self.lines.try_send(line(said)).ok();
    }
}

fn line(said: &Say) -> Vec<u8> {
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The part of a long text that the host gets: its beginning.
pub(super) fn excerpt(text: &str) -> String {
    match text.len() > MAX_SAID {
        false => text.to_owned(),
        true => {
            let start = &text[..text.floor_char_boundary(MAX_SAID)];
            format!("{start}\n[… {} bytes more …]", text.len() - start.len())
        }
    }
}

/// The same of every text in `value`.
pub(super) fn excerpts(value: &Value, budget: &mut usize) -> Value {
    match value {
        Value::String(text) => {
            let most = text.floor_char_boundary((*budget).min(text.len()));
            *budget = budget.saturating_sub(text.len());
            match most == text.len() {
                true => value.clone(),
                false => Value::String(format!(
                    "{}[… {} bytes more …]",
                    &text[..most],
                    text.len() - most
                )),
            }
        }
        Value::Array(values) => values.iter().map(|value| excerpts(value, budget)).collect(),
        Value::Object(map) => {
            let entries = map.iter();
            let entries = entries.map(|(key, value)| (key.clone(), excerpts(value, budget)));
            Value::Object(entries.collect())
        }
        other => other.clone(),
    }
}

/// The part of a call's input that the host gets.
pub(super) fn shown(input: &Value) -> Value {
    excerpts(input, &mut MAX_SAID.clone())
}

/// A message for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mail {
    pub id: Uuid,
    pub text: String,
}

/// The lines from the host that cannot wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// A message; it waits in the inbox.
    Mail,
    /// A message for which the current step is broken off; it waits in the inbox.
    Urgent,
    /// The turn is to be broken off.
    Interrupt,
    /// A question has its answer; it waits in the inbox.
    Answer,
    /// Another mode is to hold.
    Mode(String),
    /// It has to end now.
    Stop,
    /// The host has closed the pipe.
    Closed,
}

/// The lines from the host.
#[derive(Debug)]
pub(super) struct Inbox {
    lines: LineReader,
    /// If the process is its alone, SIGTERM is the same as an order to stop.
    terminate: Option<Signal>,
    /// Messages that the model has not seen.
    pub mail: VecDeque<Mail>,
    /// Answers to questions, by their ids.
    pub answers: HashMap<String, (bool, Option<String>)>,
    /// True if the host has closed the pipe.
    pub closed: bool,
}

impl Inbox {
    /// Reads from `pipe`: the first line now, everything else as it comes. `alone`: signals to this
    /// process are for it.
    pub(super) async fn new(pipe: OwnedFd, alone: bool) -> io::Result<(Opening, Self)> {
        let mut inbox = Self::again(pipe)?;
        let first = match inbox.lines.next().await? {
            Some(Line::Whole(first)) => first,
            _ => return Err(io::Error::other("nobody says who the agent is")),
        };
        let opening: Opening = serde_json::from_slice(&first)
            .map_err(|error| io::Error::other(format!("the first line is wrong: {error}")))?;
        if alone {
            inbox.terminate = Some(signal(SignalKind::terminate())?);
        }
        Ok((opening, inbox))
    }

    /// Reads on from a pipe whose first line was read before.
    pub(super) fn again(pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            lines: LineReader::new(pipe::Receiver::from_owned_fd(pipe)?, MAX_LINE),
            terminate: None,
            mail: VecDeque::new(),
            answers: HashMap::new(),
            closed: false,
        })
    }

    /// True if every line that came through the pipe was handled.
    pub(super) fn is_quiet(&self) -> bool {
        self.mail.is_empty() && !self.closed && self.lines.is_between_lines()
    }

    /// Gives the pipe back.
    pub(super) fn into_pipe(self) -> io::Result<OwnedFd> {
        self.lines.into_pipe().into_nonblocking_fd()
    }

    /// The next line from the host. Nothing is lost if this is dropped.
    pub(super) async fn hear(&mut self) -> Heard {
        match self.told().await {
            Some(Told::Message { id, text, now }) => {
                let mail = Mail { id, text };
                self.mail.push_back(mail);
                if now { Heard::Urgent } else { Heard::Mail }
            }
            Some(Told::Interrupt) => Heard::Interrupt,
            Some(Told::Permission { id, allow, reason }) => {
                self.answers.insert(id, (allow, reason));
                Heard::Answer
            }
            Some(Told::Mode { mode }) => Heard::Mode(mode),
            Some(Told::Stop) => Heard::Stop,
            None => {
                self.closed = true;
                Heard::Closed
            }
        }
    }

    /// The next thing that is understood; none at the end, and only once.
    async fn told(&mut self) -> Option<Told> {
        loop {
            if self.closed {
                return signalled(self.terminate.as_mut()).await;
            }
            let line = tokio::select! {
                told = signalled(self.terminate.as_mut()) => return told,
                line = self.lines.next() => line,
            };
            match line {
                Ok(Some(Line::Whole(line))) => match serde_json::from_slice(&line) {
                    Ok(told) => return Some(told),
                    Err(error) => tracing::warn!(%error, "a line of the host is not understood"),
                },
                Ok(Some(Line::Piece(_))) => {}
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

/// Waits for SIGTERM, if it is for this agent.
async fn signalled(terminate: Option<&mut Signal>) -> Option<Told> {
    if let Some(terminate) = terminate
        && terminate.recv().await.is_some()
    {
        return Some(Told::Stop);
    }
    std::future::pending().await
}
