//! The fake agent: carries out a [`Script`].

mod acp;
mod children;
mod input;
mod output;
mod steps;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use crate::script::Script;

use acp::Acp;
use input::{Listener, Message, Server};
use output::Output;

pub use acp::{Persona, WhileBusy};
pub use children::{Pids, child};

/// Maximum life of anything a test starts, whatever happens to the test.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(600);

/// The flow after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// The turn was interrupted.
    Interrupted,
    Exit(i32),
}

/// A fake agent.
#[derive(Debug)]
pub struct Player {
    script: Script,
    prompt: String,
    out: Output,
    input: Listener,
    pending: VecDeque<Message>,
    answers: HashMap<String, bool>,
    session: String,
    in_turn: bool,
    servers: Vec<Server>,
    /// The connection to ccb's own tools, once one was used.
    tools: Option<crate::mcp::McpClient>,
    /// The last mode it was given.
    mode: Option<String>,
}

impl Player {
    /// Carries out `script` as any command would: no protocol, no input.
    pub fn plain(script: Script) -> Self {
        let mut input = Listener::default();
        input.ended = true;
        Self {
            script,
            prompt: String::new(),
            out: Output::Plain,
            input,
            pending: VecDeque::new(),
            answers: HashMap::new(),
            session: String::new(),
            in_turn: true,
            servers: Vec::new(),
            tools: None,
            mode: None,
        }
    }

    /// Speaks the protocol: the first line of input is the prompt, which carries the script
    /// unless one is given.
    pub fn lines(given: Option<Script>) -> io::Result<Self> {
        let mut input = Listener::default();
        let first = input.prompt()?;
        let found = given.map(Ok).or_else(|| Script::find(&first.text));
        let script = match found {
            Some(script) => script.map_err(io::Error::other)?,
            // A prompt without a script: it repeats the prompt, and lives on.
            None => Script::new()
                .done(&format!("heard: {}", first.text))
                .serve(),
        };
        let own = || format!("session-{}", std::process::id());
        let session = script.session.clone().or(first.session).unwrap_or_else(own);
        Ok(Self {
            script,
            prompt: first.text,
            out: Output::Lines,
            input,
            pending: VecDeque::new(),
            answers: HashMap::new(),
            session,
            in_turn: true,
            servers: first.servers,
            tools: None,
            mode: None,
        })
    }

    /// Speaks the Agent Client Protocol: the first prompt carries the script.
    pub fn acp(persona: Persona) -> io::Result<Self> {
        let acp = Arc::new(Acp::new(persona));
        let (input, first) = Listener::acp(Arc::clone(&acp))?;
        let script = match Script::find(&first.text) {
            Some(script) => script.map_err(io::Error::other)?,
            None => Script::new()
                .done(&format!("heard: {}", first.text))
                .serve(),
        };
        acp.accepted(&first.id)?;
        Ok(Self {
            script,
            prompt: first.text,
            session: acp.session(),
            out: Output::Acp(acp),
            input,
            pending: VecDeque::new(),
            answers: HashMap::new(),
            in_turn: true,
            mode: None,
            servers: Vec::new(),
            tools: None,
        })
    }

    /// Carries out the script; returns the exit code.
    pub fn play(mut self) -> io::Result<i32> {
        if let Some(dir) = &self.script.pids {
            Pids::new(dir).record_self("agent")?;
        }
        if !self.script.silent {
            self.out.ready(&self.session)?;
        }
        let steps = std::mem::take(&mut self.script.steps);
        self.play_all(steps)
    }
}
