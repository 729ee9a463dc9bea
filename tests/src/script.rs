//! The script of a fake agent. The tests write it, the program `fake-agent` carries it out.
//!
//! A script rides in the prompt, so that each of many agents follows its own; the rest of the
//! prompt does not matter.

mod build;
mod for_model;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::marked::last_after;

/// The mark of a script.
const MARK: &str = "<<AGENT ";

/// The steps of a fake agent from its start to its end. After the last one, it exits with 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    pub steps: Vec<Do>,
    /// The directory in which it and everything it starts write their process ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<PathBuf>,
    /// The session it reports; `None` for the one it was given, or one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// True if it does not report that it is up.
    pub silent: bool,
    /// True if it takes messages only at a step that says so; otherwise also after each tool.
    pub deaf: bool,
    /// True if it ignores orders to stop.
    pub stubborn: bool,
}

/// The stream for its output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum To {
    #[default]
    Stdout,
    Stderr,
}

/// A signal that is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ignored {
    Term,
    Int,
    Hup,
}

/// A process it starts, which lives until it is killed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Grandchild {
    /// True for a session of its own.
    pub new_session: bool,
    /// True if it ignores SIGTERM, SIGINT and SIGHUP.
    pub ignores_signals: bool,
    /// True if it does not keep the agent's output streams open.
    pub detached: bool,
    /// True if its parent ends at once, so that another process adopts it.
    pub orphaned: bool,
    /// True if it keeps nothing of the environment, no marker either.
    pub scrubbed: bool,
    /// True if it prints to the agent's output as fast as it can.
    pub noisy: bool,
    /// It starts this many of its own, and each of those, too, to this depth.
    pub width: u32,
    pub depth: u32,
    /// Its role in [`Started::role`].
    pub role: String,
    /// The directory for its id; `None` for the script's.
    pub pids: Option<PathBuf>,
}

impl Grandchild {
    /// The number of processes it is with all its own.
    pub fn count(&self) -> u64 {
        let width = u64::from(self.width);
        (0..=self.depth).map(|level| width.pow(level)).sum()
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Do {
    /// Prints `text` as it is.
    Print { text: String, to: To },
    /// Prints this many bytes of `x`, without a line end.
    PrintBytes { count: u64, to: To },
    /// Prints this many bytes that are no text, with line ends here and there.
    Garbage { count: u64, to: To },
    /// Prints this many million bytes as one line.
    LongLine { megabytes: u64, to: To },
    /// The model says something.
    Say { text: String },
    /// Writes a file, making its directories.
    Write { path: PathBuf, text: String },
    /// Adds a line to a file.
    Append { path: PathBuf, text: String },
    /// Writes this many million bytes to a file; if it cannot, it says so on stderr and continues.
    FillDisk { path: PathBuf, megabytes: u64 },
    /// Commits everything in the working directory.
    Commit { message: String },
    /// Makes an empty file.
    Touch { path: PathBuf },
    /// Waits until a file exists.
    WaitFile { path: PathBuf },
    /// Does nothing for a while. Not for waiting for something.
    Pause { ms: u64 },
    /// Begins to use a tool.
    ToolBegin {
        id: String,
        name: String,
        input: Value,
    },
    /// The tool has answered.
    ToolEnd {
        id: String,
        output: String,
        error: bool,
    },
    /// Uses a tool of ccb's through the server it was given; ends with an error if it `must` work
    /// and does not.
    Call {
        tool: String,
        input: Value,
        must: bool,
    },
    /// Waits for a message and accepts it; says it if `echo`. None comes if the input ends.
    WaitMessage { echo: bool },
    /// Waits until its mode is this.
    WaitMode { mode: String },
    /// Accepts the waiting messages, and says them.
    AcceptMessages,
    /// Reports usage.
    Usage { input: u64, output: u64, cost: f64 },
    /// Alive, but without progress.
    Stalled { why: String },
    /// Asks for permission, and takes one way or the other.
    Ask {
        id: String,
        tool: String,
        input: Value,
        allowed: Vec<Do>,
        denied: Vec<Do>,
    },
    /// Ignores signals from here on.
    Ignore { signals: Vec<Ignored> },
    /// Starts a process and waits until it is up.
    Spawn(Grandchild),
    /// Runs a command to its end, as a tool.
    Run { command: Vec<String> },
    /// Writes its arguments, environment, working directory and prompt to a file, as JSON.
    Describe { path: PathBuf },
    /// Closes a stream.
    Close { what: To },
    /// Does this over and over; for ever if no number is given.
    Repeat { times: Option<u32>, steps: Vec<Do> },
    /// The turn is over.
    Result {
        status: String,
        text: String,
        error: Option<String>,
    },
    /// Answers one message after the other, each with a turn, until the input ends. A message can
    /// carry a script for its turn.
    Serve,
    /// Does nothing more, for ever.
    Hang,
    /// Ends.
    Exit { code: i32 },
    /// Ends by a signal.
    Die { signal: i32 },
}

/// A process that was started for a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub pid: i32,
    /// The start time, in the kernel's ticks: tells it from a later one with the same id.
    pub start: u64,
    /// `agent`, `run`, or the script's word.
    pub role: String,
}

impl Script {
    /// A prompt that carries it.
    pub fn to_prompt(&self) -> String {
        format!("{MARK}{}", self.to_json())
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a script is JSON")
    }

    /// A command for a shell that carries it out with `program`, as any command would.
    pub fn to_command(&self, program: &str) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let json = quoted(&self.to_json());
        format!("exec {} --plain --json {json}", quoted(program))
    }

    /// The last script in `text` that is not part of another one.
    pub fn find(text: &str) -> Option<Result<Self, String>> {
        let found = last_after(text, MARK)?;
        Some(found.map_err(|error| error.to_string()))
    }
}
