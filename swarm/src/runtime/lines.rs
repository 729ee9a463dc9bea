//! The runtime for programs that speak ccb's own small protocol: one JSON object per line.
//!
//! Any program, in any language, becomes an agent with it. The program reads:
//!
//! ```text
//! {"type":"prompt","text":…,"system"?:…,"model"?:…,"session"?:…,"mcpServers"?:[{"name","command","args","env"}]}     always the first line
//! {"type":"message","id":…,"text":…,"now"?:true}                  a message for the model; `now` breaks off the turn for it
//! {"type":"interrupt"}                                          break off the turn
//! {"type":"permission","id":…,"allow":bool,"reason"?:…}         the answer to a question
//! {"type":"mode","mode":…}                                      it may do this without asking from now on
//! {"type":"stop"}                                               end now
//! ```
//!
//! and the end of its input, which comes between two turns, says: end. It prints:
//!
//! ```text
//! {"type":"ready","session"?:…,"model"?:…}                      it is up
//! {"type":"text","text":…}                                      the model said something
//! {"type":"tool","id":…,"name":…,"input"?:…}                    it begins to use a tool
//! {"type":"tool_result","id":…,"output"?:…,"error"?:bool}       the tool has answered
//! {"type":"accepted","id":…}                                    a message was taken in
//! {"type":"usage","inputTokens"?:n,"outputTokens"?:n,"costUsd"?:x}   since the last such line
//! {"type":"permission","id":…,"tool":…,"input"?:…}              may it?
//! {"type":"mode","mode":…,"error"?:…}                           it does so, or not
//! {"type":"stalled","why":…}                                    alive, but it gets nowhere
//! {"type":"result","status":"completed|failed|interrupted|limit|quota","text"?:…,"error"?:…}     the turn is over
//! ```
//!
//! Everything else it prints is kept as output.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::translator::{Step, Steps, Translator, drive};
use super::{
    Abilities, Agent, Event, Launch, LaunchError, Messages, Order, Runtime, Start, TurnEnd,
    TurnStatus, Usage, program,
};
use crate::process::{Child, Processes};

/// Runs programs that speak the protocol.
#[derive(Debug, Clone)]
pub struct LinesRuntime {
    command: Vec<String>,
}

impl LinesRuntime {
    /// Runs `command`: a program and its arguments.
    pub fn new(command: Vec<String>) -> Self {
        Self { command }
    }
}

impl Runtime for LinesRuntime {
    fn abilities(&self) -> Abilities {
        Abilities {
            messages: Messages::AtToolBoundary,
            interrupt: true,
            resume: true,
            fork: false,
            read_only: false,
        }
    }

    fn launch(&self, launch: Launch, processes: &Processes) -> Result<Agent, LaunchError> {
        let session = match &launch.start {
            Start::New => None,
            Start::Resume { session } => Some(session.clone()),
            Start::Fork { .. } => {
                let why = "a program that speaks in lines has no conversation to fork";
                return Err(LaunchError::Unsupported(why.into()));
            }
        };
        let command = program::command(&self.command, &launch)?;
        let child = program::start(command, true, processes)?;
        Ok(drive(child, LinesTranslator::new(launch, session)))
    }
}

/// Lets the host talk to a program of ours that was started with a pipe for its input, and whose first
/// line is `opening`. Called within a tokio runtime.
pub fn drive_lines(child: Child, opening: Value) -> Agent {
    drive(child, LinesTranslator::opening(opening))
}

/// The protocol as a state machine.
#[derive(Debug)]
pub(crate) struct LinesTranslator {
    /// The first line.
    prompt: Value,
    /// True if the host knows that the program has started.
    started: bool,
    /// True if a turn is over and no other has begun.
    at_rest: bool,
    /// True if the program has to end after its turn.
    finishing: bool,
    /// Messages that were sent and not yet taken in.
    unconfirmed: HashSet<Uuid>,
}

impl LinesTranslator {
    fn new(launch: Launch, session: Option<String>) -> Self {
        let mut prompt = json!({ "type": "prompt", "text": launch.prompt });
        for (key, value) in [
            ("system", launch.system_prompt),
            ("model", launch.model),
            ("session", session),
        ] {
            if let Some(value) = value {
                prompt[key] = value.into();
            }
        }
        if !launch.mcp_servers.is_empty() {
            prompt["mcpServers"] = json!(launch.mcp_servers);
        }
        Self::opening(prompt)
    }

    /// A translator whose first line is this.
    pub(crate) fn opening(prompt: Value) -> Self {
        Self {
            started: false,
            // A program with an empty prompt waits.
            at_rest: prompt["text"] == "",
            prompt,
            finishing: false,
            unconfirmed: HashSet::new(),
        }
    }
}

impl Translator for LinesTranslator {
    const MAX_LINE: usize = 4 * 1024 * 1024;

    fn begin(&mut self) -> Steps {
        vec![Step::Line(self.prompt.take())]
    }

    fn heard(&mut self, message: &Map<String, Value>) -> Option<Steps> {
        let said = Said::deserialize(message).ok()?;
        if let Said::Accepted { id } = said
            && !self.unconfirmed.remove(&id)
        {
            // That was never sent, or it was confirmed already.
            return None;
        }
        let event = event(said);
        let mut steps = Vec::new();
        let early = matches!(event, Event::Mode { .. });
        if !self.started && !early && !matches!(event, Event::Started { .. }) {
            // A program may begin to work without saying that it is up.
            steps.push(Step::Event(Event::Started {
                session: None,
                model: None,
            }));
        }
        self.started |= !early;
        match event {
            Event::TurnEnded(_) => self.at_rest = true,
            Event::Accepted { .. } => self.at_rest = false,
            _ => {}
        }
        steps.push(Step::Event(event));
        steps.extend(self.close_at_rest());
        Some(steps)
    }

    fn told(&mut self, order: Order) -> Steps {
        let line = match order {
            Order::Send(message) => {
                self.unconfirmed.insert(message.id);
                let mut line = json!({ "type": "message", "id": message.id, "text": message.text });
                if message.now {
                    line["now"] = true.into();
                }
                line
            }
            Order::Interrupt => json!({ "type": "interrupt" }),
            Order::Answer { id, allow, reason } => {
                let mut answer = json!({ "type": "permission", "id": id, "allow": allow });
                if let Some(reason) = reason {
                    answer["reason"] = reason.into();
                }
                answer
            }
            Order::SetMode { mode } => json!({ "type": "mode", "mode": mode }),
            Order::Stop => json!({ "type": "stop" }),
            Order::Finish => {
                self.finishing = true;
                return self.close_at_rest().into_iter().collect();
            }
        };
        vec![Step::Line(line)]
    }
}

impl LinesTranslator {
    /// Its input stays open until the turn is over: it may ask something before that.
    fn close_at_rest(&self) -> Option<Step> {
        (self.finishing && self.at_rest).then_some(Step::Close)
    }
}

/// A line of the program.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said {
    Ready {
        session: Option<String>,
        model: Option<String>,
    },
    Text {
        text: String,
    },
    Tool {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        id: String,
        #[serde(default)]
        output: String,
        #[serde(default)]
        error: bool,
    },
    Accepted {
        id: Uuid,
    },
    Usage(Usage),
    Permission {
        id: String,
        tool: String,
        #[serde(default)]
        input: Value,
    },
    Mode {
        mode: String,
        error: Option<String>,
    },
    Stalled {
        why: String,
    },
    Result {
        status: String,
        #[serde(default)]
        text: String,
        error: Option<String>,
    },
}

fn event(said: Said) -> Event {
    match said {
        Said::Ready { session, model } => Event::Started { session, model },
        Said::Text { text } => Event::Text(text),
        Said::Tool { id, name, input } => Event::ToolUse { id, name, input },
        Said::ToolResult { id, output, error } => Event::ToolResult {
            id,
            output,
            is_error: error,
        },
        Said::Accepted { id } => Event::Accepted { message: id },
        Said::Usage(usage) => Event::Usage(usage.plausible()),
        Said::Permission { id, tool, input } => Event::Permission { id, tool, input },
        Said::Mode { mode, error } => Event::Mode {
            mode,
            refused: error,
        },
        Said::Stalled { why } => Event::Stalled { why },
        Said::Result {
            status,
            text,
            error,
        } => Event::TurnEnded(turn(&status, text, error)),
    }
}

fn turn(status: &str, text: String, error: Option<String>) -> TurnEnd {
    let (status, error) = match status {
        "completed" => (TurnStatus::Completed, error),
        "interrupted" => (TurnStatus::Interrupted, error),
        "limit" => (TurnStatus::LimitReached, error),
        "quota" => (TurnStatus::Quota, error),
        "failed" => (TurnStatus::Failed, error),
        other => {
            // An unknown status is not a success.
            let why = format!("it reported the unknown status {other:?}");
            (TurnStatus::Failed, Some(error.unwrap_or(why)))
        }
    };
    TurnEnd {
        status,
        text,
        error,
    }
}
