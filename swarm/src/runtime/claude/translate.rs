//! Claude Code's protocol as a state machine.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::translator::{OPEN_QUESTIONS, Step, Steps, Translator};
use super::super::{Event, Launch, Message, Order, Start, Stream, Usage};
use super::outcome::{Costs, Turn, not_logged_in, turn_end};
use crate::tools::OWN_SERVER;

/// Refusals of the login after which a turn is broken off. The first may be a token that is just
/// being renewed.
const REFUSALS: u64 = 2;

/// A conversation with Claude Code.
#[derive(Debug)]
pub(super) struct Claude {
    session: String,
    prompt: String,
    model: Option<String>,
    /// True if our tools need no permission, whatever the mode.
    own_tools: bool,
    started: bool,
    /// Messages it has not confirmed.
    unconfirmed: HashSet<Uuid>,
    /// The calls it asked about, by the id of the question.
    questions: HashMap<String, Value>,
    turn: Turn,
    /// Tools that have not answered.
    tools: HashSet<String>,
    /// True if a turn is under way, or about to be.
    busy: bool,
    /// True if it has to end when the turn is over.
    finishing: bool,
    costs: Costs,
    requests: u64,
    /// The modes that it was ordered to change to, by the id of the request.
    modes: HashMap<String, String>,
}

impl Claude {
    pub(super) fn new(launch: &Launch, session: String) -> Self {
        Self {
            session,
            prompt: launch.prompt.clone(),
            model: launch.model.clone(),
            own_tools: launch.has_own_tools(),
            started: false,
            unconfirmed: HashSet::new(),
            questions: HashMap::new(),
            turn: Turn::default(),
            tools: HashSet::new(),
            busy: false,
            finishing: false,
            costs: Costs::new(launch.start == Start::New),
            requests: 0,
            modes: HashMap::new(),
        }
    }

    fn request(&mut self, subtype: &str) -> Step {
        self.requests += 1;
        Step::Line(json!({
            "type": "control_request",
            "request_id": format!("ccb-{}-{subtype}", self.requests),
            "request": { "subtype": subtype },
        }))
    }

    fn set_mode(&mut self, mode: String) -> Step {
        self.requests += 1;
        let id = format!("ccb-{}-mode", self.requests);
        let line = json!({
            "type": "control_request",
            "request_id": id,
            "request": { "subtype": "set_permission_mode", "mode": mode },
        });
        self.modes.insert(id, mode);
        Step::Line(line)
    }

    /// Handles its answer to a request of ours; only the answer about a mode matters.
    fn answered(&mut self, message: &Map<String, Value>, steps: &mut Steps) {
        let response = message.get("response").and_then(Value::as_object);
        let Some(response) = response else {
            return;
        };
        let id = string(response, "request_id").unwrap_or_default();
        if let Some(mode) = self.modes.remove(id) {
            let failed = string(response, "subtype") == Some("error");
            let why = string(response, "error").unwrap_or("it gave no reason");
            let refused = failed.then(|| why.to_owned());
            steps.push(Step::Event(Event::Mode { mode, refused }));
        }
    }

    fn interrupt(&mut self) -> Step {
        self.turn.interrupted = true;
        self.request("interrupt")
    }

    fn send(&mut self, message: &Message) -> Steps {
        let mut steps = Steps::new();
        let mut line = user(&message.text, message.id);
        if message.now {
            line["priority"] = "now".into();
            self.turn.interrupted = true;
            // By itself it breaks off what the model says, but waits for a tool.
            if !self.tools.is_empty() {
                steps.push(self.interrupt());
            }
        }
        self.unconfirmed.insert(message.id);
        steps.push(Step::Line(line));
        steps
    }

    fn answer(&mut self, id: &str, allow: bool, reason: Option<String>) -> Option<Step> {
        // Nothing to answer: the question was taken back, or answered before.
        let input = self.questions.remove(id)?;
        let decision = if allow {
            json!({ "behavior": "allow", "updatedInput": input })
        } else {
            let reason = reason.unwrap_or_else(|| "not allowed".into());
            json!({ "behavior": "deny", "message": reason })
        };
        Some(success(id, &decision))
    }

    /// Notes that it has started.
    fn up(&mut self, steps: &mut Steps, session: Option<String>, model: Option<String>) {
        if !std::mem::replace(&mut self.started, true) {
            steps.push(Step::Event(Event::Started { session, model }));
        }
    }

    fn system(&mut self, message: &Map<String, Value>, steps: &mut Steps) {
        match string(message, "subtype") {
            Some("init") => {
                let session = string(message, "session_id").unwrap_or(&self.session);
                let session = Some(session.to_owned());
                let model = string(message, "model").map(str::to_owned);
                let first = !self.started;
                self.busy = true;
                self.up(steps, session, model.or_else(|| self.model.clone()));
                if first {
                    steps.extend(missing_servers(message));
                }
            }
            Some("api_retry") => self.retry(message, steps),
            _ => {}
        }
    }

    fn retry(&mut self, message: &Map<String, Value>, steps: &mut Steps) {
        let code = message.get("error_status").and_then(Value::as_u64);
        let kind = string(message, "error").unwrap_or("unknown");
        let number = |key| message.get(key).and_then(Value::as_u64).unwrap_or(0);
        let attempt = number("attempt");
        let status = code.map_or_else(String::new, |code| format!(" (HTTP {code})"));
        steps.push(Step::Event(Event::Stalled {
            why: format!(
                "the model cannot be reached: {kind}{status}; try {attempt} of {} in {} ms",
                number("max_retries"),
                number("retry_delay_ms"),
            ),
        }));
        if not_logged_in(kind, code) && attempt >= REFUSALS && !self.turn.refused {
            // It would try for another minute, and the answer would be the same.
            self.turn.refused = true;
            self.turn.text = format!("{kind}{status}");
            let interrupt = self.interrupt();
            steps.push(interrupt);
        }
    }

    fn assistant(&mut self, message: &Map<String, Value>, steps: &mut Steps) {
        if let Some(kind) = string(message, "error") {
            // This text is not the model's; the result repeats it.
            self.turn.error = Some(kind.to_owned());
            return;
        }
        let is_helper =
            message.contains_key("agent_id") || string(message, "parent_tool_use_id").is_some();
        for block in blocks(message) {
            match string(block, "type") {
                Some("text") if !is_helper => {
                    let text = string(block, "text").unwrap_or_default();
                    if !text.is_empty() {
                        text.clone_into(&mut self.turn.text);
                        steps.push(Step::Event(Event::Text(text.to_owned())));
                    }
                }
                Some("tool_use") => {
                    let id = string(block, "id").unwrap_or_default().to_owned();
                    self.tools.insert(id.clone());
                    steps.push(Step::Event(Event::ToolUse {
                        id,
                        name: string(block, "name").unwrap_or_default().to_owned(),
                        input: block.get("input").cloned().unwrap_or_default(),
                    }));
                }
                _ => {}
            }
        }
    }

    fn user(&mut self, message: &Map<String, Value>, steps: &mut Steps) {
        if message.get("isReplay").and_then(Value::as_bool) == Some(true) {
            self.confirm(message, "uuid", steps);
            return;
        }
        for block in blocks(message) {
            if string(block, "type") == Some("tool_result") {
                let id = string(block, "tool_use_id").unwrap_or_default().to_owned();
                self.tools.remove(&id);
                steps.push(Step::Event(Event::ToolResult {
                    id,
                    output: block.get("content").map(flatten).unwrap_or_default(),
                    is_error: block.get("is_error").and_then(Value::as_bool) == Some(true),
                }));
            }
        }
    }

    /// A message has arrived in the conversation, as one of two kinds of line says.
    fn confirm(&mut self, message: &Map<String, Value>, key: &str, steps: &mut Steps) {
        let id = string(message, key).and_then(|id| id.parse().ok());
        if let Some(id) = id
            && self.unconfirmed.remove(&id)
        {
            self.busy = true;
            steps.push(Step::Event(Event::Accepted { message: id }));
        }
    }

    /// Handles a question.
    fn asked(&mut self, message: &Map<String, Value>, steps: &mut Steps) {
        let none = Map::new();
        let id = string(message, "request_id").unwrap_or_default();
        let request = message.get("request").and_then(Value::as_object);
        let request = request.unwrap_or(&none);
        if string(request, "subtype") != Some("can_use_tool") {
            let what = string(request, "subtype").unwrap_or("nothing");
            steps.push(failure(id, &format!("ccb does not do {what}")));
            return;
        }
        let tool = string(request, "tool_name").unwrap_or_default();
        let input = request.get("input").cloned().unwrap_or_default();
        if self.own_tools && is_ours(tool) {
            let allow = json!({ "behavior": "allow", "updatedInput": input });
            steps.push(success(id, &allow));
        } else if self.questions.len() >= OPEN_QUESTIONS {
            let deny = json!({ "behavior": "deny", "message": "too many open questions" });
            steps.push(success(id, &deny));
        } else {
            self.questions.insert(id.to_owned(), input.clone());
            let (id, tool) = (id.to_owned(), tool.to_owned());
            steps.push(Step::Event(Event::Permission { id, tool, input }));
        }
    }

    fn result(&mut self, message: &Map<String, Value>, steps: &mut Steps) {
        let usage = self.costs.usage(message);
        let turn = std::mem::take(&mut self.turn);
        self.questions.clear();
        self.tools.clear();
        if usage != Usage::default() {
            steps.push(Step::Event(Event::Usage(usage)));
        }
        steps.push(Step::Event(Event::TurnEnded(turn_end(message, turn))));
        self.busy = false;
        self.close_if_done(steps);
    }

    /// Its input stays open until the turn is over, and those of the messages it has not taken
    /// in: it may ask something before that.
    fn close_if_done(&self, steps: &mut Steps) {
        if self.finishing && !self.busy && self.unconfirmed.is_empty() {
            steps.push(Step::Close);
        }
    }
}

impl Translator for Claude {
    fn begin(&mut self) -> Steps {
        let mut steps = vec![self.request("initialize")];
        if !self.prompt.is_empty() {
            let prompt = std::mem::take(&mut self.prompt);
            self.busy = true;
            steps.push(Step::Line(user(&prompt, Uuid::new_v4())));
        } else {
            // Without a turn it does not introduce itself.
            let (session, model) = (Some(self.session.clone()), self.model.clone());
            self.up(&mut steps, session, model);
        }
        steps
    }

    fn heard(&mut self, message: &Map<String, Value>) -> Option<Steps> {
        let mut steps = Steps::new();
        match string(message, "type")? {
            "system" => self.system(message, &mut steps),
            "assistant" => self.assistant(message, &mut steps),
            "user" => self.user(message, &mut steps),
            "result" => self.result(message, &mut steps),
            "command_lifecycle" => {
                if string(message, "state") == Some("started") {
                    self.confirm(message, "command_uuid", &mut steps);
                }
            }
            "control_request" => self.asked(message, &mut steps),
            "control_cancel_request" => {
                self.questions
                    .remove(string(message, "request_id").unwrap_or_default());
            }
            "control_response" => self.answered(message, &mut steps),
            "stream_event" | "keep_alive" => {}
            _ => return None,
        }
        // An answer of its own says nothing about its conversation.
        let is_event = |step: &Step| match step {
            Step::Event(event) => !matches!(event, Event::Mode { .. }),
            _ => false,
        };
        if !self.started && steps.iter().any(is_event) {
            // It failed before its first turn: there is no session to resume.
            let mut first = Steps::new();
            self.up(&mut first, None, None);
            first.append(&mut steps);
            steps = first;
        }
        Some(steps)
    }

    fn told(&mut self, order: Order) -> Steps {
        match order {
            Order::Send(message) => self.send(&message),
            Order::Interrupt => vec![self.interrupt()],
            Order::SetMode { mode } => vec![self.set_mode(mode)],
            Order::Answer { id, allow, reason } => {
                self.answer(&id, allow, reason).into_iter().collect()
            }
            Order::Finish => {
                let mut steps = Steps::new();
                self.finishing = true;
                self.close_if_done(&mut steps);
                steps
            }
            // Either alone is not enough: versions differ in what they know, and the end of its
            // input alone lets it finish the turn.
            Order::Stop => vec![self.interrupt(), self.request("end_session"), Step::Close],
        }
    }
}

/// Says which servers did not come up: the agent works on without their tools.
fn missing_servers(init: &Map<String, Value>) -> Option<Step> {
    let servers = init.get("mcp_servers").and_then(Value::as_array)?;
    let missing: Vec<String> = servers
        .iter()
        .filter_map(Value::as_object)
        .filter_map(|server| Some((string(server, "name")?, string(server, "status")?)))
        .filter(|(_, status)| !matches!(*status, "connected" | "pending"))
        .map(|(name, status)| format!("[MCP server {name}: {status}]\n"))
        .collect();
    (!missing.is_empty()).then(|| {
        Step::Event(Event::Output {
            stream: Stream::Stderr,
            bytes: missing.concat().into_bytes(),
        })
    })
}

fn is_ours(tool: &str) -> bool {
    tool.strip_prefix("mcp__")
        .and_then(|tool| tool.strip_prefix(OWN_SERVER))
        .is_some_and(|tool| tool.starts_with("__"))
}

fn user(text: &str, id: Uuid) -> Value {
    json!({
        "type": "user",
        "message": { "role": "user", "content": [{ "type": "text", "text": text }] },
        "uuid": id,
    })
}

fn success(request: &str, response: &Value) -> Step {
    Step::Line(json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": request, "response": response },
    }))
}

fn failure(request: &str, error: &str) -> Step {
    Step::Line(json!({
        "type": "control_response",
        "response": { "subtype": "error", "request_id": request, "error": error },
    }))
}

/// The content of a message, one by one.
fn blocks(message: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let content = message
        .get("message")
        .and_then(|inner| inner.get("content"));
    let content = content.and_then(Value::as_array).into_iter().flatten();
    content.filter_map(Value::as_object)
}

/// A tool's answer as text: a string, or blocks of which some may be pictures.
fn flatten(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| match block.get("text") {
                Some(Value::String(text)) => text.clone(),
                _ => {
                    let kind = block.get("type").and_then(Value::as_str);
                    format!("[{}]", kind.unwrap_or("something"))
                }
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn string<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}
