//! The input of the agent.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;

use super::acp::Acp;

/// The first line.
#[derive(Debug, Deserialize)]
pub(super) struct Prompt {
    pub text: String,
    #[serde(default)]
    pub session: Option<String>,
    #[serde(default, rename = "mcpServers")]
    pub servers: Vec<Server>,
}

/// A server of tools it may use.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Server {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    pub env: std::collections::BTreeMap<String, String>,
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
    Mode { mode: String },
    Stop,
}

/// Reads standard input, without a thread: input written before another event is also read before
/// it.
#[derive(Debug, Default)]
pub(super) struct Listener {
    buffer: Vec<u8>,
    lines: VecDeque<String>,
    /// The parser of the input, if it is not ccb's own protocol.
    acp: Option<Arc<Acp>>,
    /// True at the end of the input.
    pub ended: bool,
}

impl Listener {
    /// The first line, which is the prompt.
    pub(super) fn prompt(&mut self) -> io::Result<Prompt> {
        while self.lines.is_empty() && !self.ended {
            self.fill(Duration::MAX)?;
        }
        let line = self.lines.pop_front().unwrap_or_default();
        let bad = |error| io::Error::other(format!("the first line is no prompt: {error}"));
        serde_json::from_str(&line).map_err(bad)
    }

    /// Reads input in this protocol, until the first prompt.
    pub(super) fn acp(acp: Arc<Acp>) -> io::Result<(Self, Message)> {
        let mut input = Self {
            acp: Some(acp),
            ..Self::default()
        };
        loop {
            match input.next(Duration::MAX)? {
                Some(Input::Message(first)) => return Ok((input, first)),
                _ if input.ended => return Err(io::Error::other("it was never asked anything")),
                _ => {}
            }
        }
    }

    /// The next input, within this time.
    pub(super) fn next(&mut self, wait: Duration) -> io::Result<Option<Input>> {
        if self.lines.is_empty() && !self.ended {
            self.fill(wait)?;
        }
        while let Some(line) = self.lines.pop_front() {
            let heard = match &self.acp {
                Some(acp) => match acp.heard(&line) {
                    Ok(None) => continue,
                    Ok(Some(input)) => Ok(input),
                    Err(error) => Err(error.to_string()),
                },
                None => serde_json::from_str(&line).map_err(|error| error.to_string()),
            };
            match heard {
                Ok(input) => return Ok(Some(input)),
                Err(error) => eprintln!("fake-agent: cannot understand {line}: {error}"),
            }
        }
        Ok(None)
    }

    /// Reads once, if there is input within this time.
    fn fill(&mut self, wait: Duration) -> io::Result<()> {
        let stdin = io::stdin();
        let limit = Timespec::try_from(wait).ok();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut polled, limit.as_ref()) {
            // A signal that is ignored ends the wait, too.
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = vec![0; 64 * 1024];
        let count = rustix::io::read(&stdin, &mut bytes)?;
        self.ended = count == 0;
        self.buffer.extend_from_slice(&bytes[..count]);
        while let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            self.lines.push_back(line);
        }
        Ok(())
    }
}
