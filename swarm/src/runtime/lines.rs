//! The runtime for programs that speak ccb's own small protocol: one JSON object per line.
//!
//! Any program, in any language, becomes an agent with it. What the program reads:
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
//! and the end of its input, which comes between two turns, says: end. What it prints:
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::{
    Abilities, Agent, AgentPort, EndWatch, Event, Launch, LaunchError, Line, LineReader, Messages,
    Order, Runtime, Start, Stream, TurnEnd, TurnStatus, Usage, agent, post, program,
};
use crate::process::Processes;

/// The longest line that is read as a message.
const MAX_LINE: usize = 4 * 1024 * 1024;

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
        let mut first = json!({ "type": "prompt", "text": launch.prompt });
        for (key, value) in [
            ("system", launch.system_prompt),
            ("model", launch.model),
            ("session", session),
        ] {
            if let Some(value) = value {
                first[key] = value.into();
            }
        }
        if !launch.mcp_servers.is_empty() {
            first["mcpServers"] = serde_json::to_value(&launch.mcp_servers).unwrap_or_default();
        }
        let (agent, port) = agent();
        let AgentPort { events, orders } = port;
        let mut end = EndWatch::new(child.ended);
        let (turn, at_rest) = watch::channel(false);
        let turn = Turn {
            at_rest: turn,
            unconfirmed: Arc::default(),
        };
        let told = Told {
            at_rest,
            unconfirmed: Arc::clone(&turn.unconfirmed),
            orders,
        };
        if let Some(stdin) = child.stdin {
            let mut end = end.clone();
            tokio::spawn(async move {
                // A full pipe must not keep orders waiting when nobody reads it any more.
                tokio::select! {
                    () = tell(stdin, first, told) => {}
                    _ = end.ending() => {}
                }
            });
        }
        tokio::spawn(async move {
            let stderr = child.stderr.map(|pipe| LineReader::new(pipe, 64 * 1024));
            let stdout = child.stdout.map(|pipe| LineReader::new(pipe, MAX_LINE));
            tokio::join!(
                pass_on(stderr, &events, end.clone()),
                listen(stdout, &events, end.clone(), turn),
            );
            let ending = end.ending().await;
            events.send(Event::Ended(ending)).await.ok();
        });
        Ok(agent)
    }
}

/// What the one who listens to the program knows about its turn.
#[derive(Debug)]
struct Turn {
    /// Whether a turn is over and no other has begun.
    at_rest: watch::Sender<bool>,
    /// Messages that were sent and not yet taken in.
    unconfirmed: Arc<Mutex<HashSet<Uuid>>>,
}

/// What the one who talks to it needs.
#[derive(Debug)]
struct Told {
    at_rest: watch::Receiver<bool>,
    unconfirmed: Arc<Mutex<HashSet<Uuid>>>,
    orders: mpsc::Receiver<Order>,
}

fn ids(set: &Mutex<HashSet<Uuid>>) -> MutexGuard<'_, HashSet<Uuid>> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes orders to the program until there are no more.
async fn tell(mut stdin: pipe::Sender, first: Value, told: Told) {
    let Told {
        mut at_rest,
        unconfirmed,
        mut orders,
    } = told;
    let mut next = Some(first);
    let mut finishing = false;
    loop {
        if let Some(value) = next.take() {
            let mut line = value.to_string();
            line.push('\n');
            if stdin.write_all(line.as_bytes()).await.is_err() {
                // It does not listen any more; its end will tell why.
                return;
            }
        }
        // Its input stays open until the turn is over: it may ask something before that.
        let order = tokio::select! {
            biased;
            order = orders.recv() => order,
            _ = at_rest.wait_for(|&rests| rests), if finishing => return,
        };
        next = match order {
            Some(Order::Send(message)) => {
                ids(&unconfirmed).insert(message.id);
                let mut line = json!({ "type": "message", "id": message.id, "text": message.text });
                if message.now {
                    line["now"] = true.into();
                }
                Some(line)
            }
            Some(Order::Interrupt) => Some(json!({ "type": "interrupt" })),
            Some(Order::Answer { id, allow, reason }) => {
                let mut answer = json!({ "type": "permission", "id": id, "allow": allow });
                if let Some(reason) = reason {
                    answer["reason"] = reason.into();
                }
                Some(answer)
            }
            Some(Order::SetMode { mode }) => Some(json!({ "type": "mode", "mode": mode })),
            Some(Order::Stop) => Some(json!({ "type": "stop" })),
            Some(Order::Finish) => {
                finishing = true;
                None
            }
            None => return,
        };
    }
}

/// What a program may say.
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

/// Translates what the program prints until it prints no more.
async fn listen(
    lines: Option<LineReader>,
    events: &mpsc::Sender<Event>,
    mut end: EndWatch,
    turn: Turn,
) {
    let Some(mut lines) = lines else {
        return;
    };
    // A program may begin to work without saying that it is up.
    let mut started = false;
    while let Some(Ok(Some(line))) = end.read(lines.next()).await {
        let (Line::Whole(bytes) | Line::Piece(bytes)) = &line;
        let length = bytes.len();
        let event = understand(line, &turn.unconfirmed);
        match event {
            Event::TurnEnded(_) => drop(turn.at_rest.send_replace(true)),
            Event::Accepted { .. } => drop(turn.at_rest.send_replace(false)),
            _ => {}
        }
        let early = matches!(event, Event::Output { .. } | Event::Mode { .. });
        if !started && !early && !matches!(event, Event::Started { .. }) {
            let up = Event::Started {
                session: None,
                model: None,
            };
            events.send(up).await.ok();
        }
        started |= !early;
        if !post(events, event, length).await {
            return;
        }
    }
}

/// What a line means; one that means nothing is output.
fn understand(line: Line, unconfirmed: &Mutex<HashSet<Uuid>>) -> Event {
    let bytes = match line {
        Line::Whole(mut bytes) => {
            let object = serde_json::from_slice::<Map<String, Value>>(&bytes).ok();
            match object.and_then(|object| serde_json::from_value(Value::Object(object)).ok()) {
                // Nobody sent that, or it was confirmed already.
                Some(Said::Accepted { id }) if !ids(unconfirmed).remove(&id) => {}
                Some(said) => return event(said),
                None => {}
            }
            with_end(&mut bytes)
        }
        Line::Piece(bytes) => bytes,
    };
    Event::Output {
        stream: Stream::Stdout,
        bytes,
    }
}

fn with_end(bytes: &mut Vec<u8>) -> Vec<u8> {
    bytes.push(b'\n');
    std::mem::take(bytes)
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
        Said::Usage(usage) => Event::Usage(usage),
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
            // Not knowing what it means is not success.
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

/// Passes on what it prints as errors.
pub(super) async fn pass_on(
    lines: Option<LineReader>,
    events: &mpsc::Sender<Event>,
    mut end: EndWatch,
) {
    let Some(mut lines) = lines else {
        return;
    };
    while let Some(Ok(Some(line))) = end.read(lines.next()).await {
        let bytes = match line {
            Line::Whole(mut bytes) => with_end(&mut bytes),
            Line::Piece(bytes) => bytes,
        };
        let stream = Stream::Stderr;
        if events.send(Event::Output { stream, bytes }).await.is_err() {
            return;
        }
    }
}
