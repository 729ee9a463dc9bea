//! Codex's app server as a state machine.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::refusal::failed_turn;
use super::super::rpc::{Calls, Incoming, read};
use super::super::translator::{OPEN_QUESTIONS, Step, Steps, Translator};
use super::super::{Event, Launch, Message, Order, TurnEnd, TurnStatus, Usage};
use super::approvals::{Asked, Question, asked};
use super::items::Items;
use super::options::{not_possible, opening, turn_permissions};

/// The way to log in.
const LOGIN: &str = "run `codex login`, or set the key its provider wants";

/// The purpose of a request.
#[derive(Debug)]
enum Call {
    Initialize,
    Open,
    Begin,
    Steer,
    Interrupt,
}

/// An input for the model.
#[derive(Debug)]
struct Input {
    text: String,
    /// The message it came from.
    message: Option<Uuid>,
    /// True if it was sent into a turn that was under way.
    steered: bool,
}

/// Its present activity.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// It has not started yet.
    Opening,
    /// It did not start.
    Failed,
    Idle,
    /// The order to begin a turn is sent; the turn has no name yet.
    Beginning,
    /// In the turn of this name.
    Busy(String),
}

/// A conversation with Codex.
#[derive(Debug)]
pub(super) struct Codex {
    launch: Launch,
    calls: Calls<Call>,
    state: Phase,
    thread: String,
    /// The inputs that wait until they can be sent.
    queue: VecDeque<Input>,
    /// The inputs that were sent and not confirmed.
    unconfirmed: Vec<Input>,
    questions: HashMap<String, Question>,
    items: Items,
    /// True if we asked for the turn to be broken off.
    interrupted: bool,
    /// True if the interrupt could not be sent yet.
    interrupt_later: bool,
    /// The total usage of the thread.
    total: Option<Usage>,
    finishing: bool,
    /// True if its permission mode has changed since its thread was opened.
    mode_changed: bool,
}

impl Codex {
    pub(super) fn new(launch: Launch) -> Self {
        Self {
            launch,
            calls: Calls::new(false),
            state: Phase::Opening,
            thread: String::new(),
            queue: VecDeque::new(),
            unconfirmed: Vec::new(),
            questions: HashMap::new(),
            items: Items::default(),
            interrupted: false,
            interrupt_later: false,
            total: None,
            finishing: false,
            mode_changed: false,
        }
    }

    fn answered(&mut self, call: Call, result: Result<&Value, &Value>, steps: &mut Steps) {
        match (call, result) {
            (Call::Initialize, Ok(_)) => {
                steps.push(self.calls.notify("initialized", &json!({})));
                let (method, params) = opening(&self.launch);
                steps.push(self.calls.call(method, &params, Call::Open));
            }
            (Call::Open, Ok(result)) => self.opened(result, steps),
            (Call::Initialize | Call::Open, Err(error)) => {
                self.state = Phase::Failed;
                let (session, model) = (None, None);
                steps.push(Step::Event(Event::Started { session, model }));
                let end = failed_turn(None, &words(error), String::new(), LOGIN);
                steps.push(Step::Event(Event::TurnEnded(end)));
                steps.push(Step::Close);
            }
            (Call::Begin, Ok(result)) => {
                if let Some(turn) = result["turn"]["id"].as_str() {
                    self.begun(turn, steps);
                }
            }
            (Call::Begin, Err(error)) => {
                let end = failed_turn(None, &words(error), String::new(), LOGIN);
                self.ended(end, steps);
            }
            // An input that a turn does not take becomes part of the next one when it ends.
            (Call::Steer | Call::Interrupt, _) => {}
        }
    }

    fn opened(&mut self, result: &Value, steps: &mut Steps) {
        let thread = result["thread"]["id"].as_str().unwrap_or_default();
        thread.clone_into(&mut self.thread);
        self.state = Phase::Idle;
        let model = result["model"].as_str().map(str::to_owned);
        steps.push(Step::Event(Event::Started {
            session: Some(self.thread.clone()),
            model: model.or_else(|| self.launch.model.clone()),
        }));
        if let Some(what) = not_possible(&self.launch) {
            steps.push(Step::note(&what));
        }
        let text = std::mem::take(&mut self.launch.prompt);
        if std::mem::take(&mut self.interrupt_later) {
            let end = TurnEnd {
                status: TurnStatus::Interrupted,
                text: String::new(),
                error: None,
            };
            steps.push(Step::Event(Event::TurnEnded(end)));
        } else if !text.is_empty() {
            let (message, steered) = (None, false);
            self.queue.push_front(Input {
                text,
                message,
                steered,
            });
        }
        self.go_on(steps);
    }

    /// Sends what can be sent now.
    fn go_on(&mut self, steps: &mut Steps) {
        match &self.state {
            Phase::Idle => {
                if let Some(input) = self.queue.pop_front() {
                    self.state = Phase::Beginning;
                    let mut params = self.input(&input);
                    if let Some(effort) = &self.launch.effort {
                        params["effort"] = effort.as_str().into();
                    }
                    if std::mem::take(&mut self.mode_changed) {
                        // They hold for the turns after this one, too.
                        let (approval, sandbox) = turn_permissions(&self.launch);
                        params["approvalPolicy"] = approval.into();
                        params["sandboxPolicy"] = sandbox;
                    }
                    self.unconfirmed.push(input);
                    steps.push(self.calls.call("turn/start", &params, Call::Begin));
                } else if self.finishing {
                    steps.push(Step::Close);
                }
            }
            Phase::Busy(turn) if !self.interrupted => {
                let turn = turn.clone();
                while let Some(mut input) = self.queue.pop_front() {
                    let mut params = self.input(&input);
                    params["expectedTurnId"] = turn.as_str().into();
                    let call = Call::Steer;
                    input.steered = true;
                    self.unconfirmed.push(input);
                    steps.push(self.calls.call("turn/steer", &params, call));
                }
            }
            _ => {}
        }
    }

    fn input(&self, input: &Input) -> Value {
        let mut params = json!({
            "threadId": self.thread,
            "input": [{ "type": "text", "text": input.text }],
        });
        if let Some(message) = input.message {
            params["clientUserMessageId"] = message.to_string().into();
        }
        params
    }

    /// The turn has a name.
    fn begun(&mut self, turn: &str, steps: &mut Steps) {
        if self.state == Phase::Beginning {
            self.state = Phase::Busy(turn.to_owned());
            if std::mem::take(&mut self.interrupt_later) {
                self.interrupt(steps);
            }
            self.go_on(steps);
        }
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        match &self.state {
            Phase::Opening | Phase::Beginning => self.interrupt_later = true,
            Phase::Busy(turn) => {
                let params = json!({ "threadId": self.thread, "turnId": turn });
                self.interrupted = true;
                let call = self.calls.call("turn/interrupt", &params, Call::Interrupt);
                steps.push(call);
            }
            // It would never be answered.
            Phase::Idle | Phase::Failed => {}
        }
    }

    fn notified(&mut self, method: &str, params: &Value, steps: &mut Steps) {
        // Its own helpers have threads of their own.
        let thread = params["threadId"].as_str();
        if thread.is_some_and(|thread| thread != self.thread) {
            return;
        }
        match method {
            "turn/started" => {
                self.begun(params["turn"]["id"].as_str().unwrap_or_default(), steps);
            }
            "item/started" => self.items.begun(&params["item"], steps),
            "item/completed" => {
                self.confirm(&params["item"], steps);
                self.items.done(&params["item"], steps);
            }
            "thread/tokenUsage/updated" => self.used(&params["tokenUsage"], steps),
            "error" if params["willRetry"] == true => {
                let error = &params["error"];
                let details = error["additionalDetails"].as_str();
                let why = details.map_or_else(|| words(error), str::to_owned);
                steps.push(Step::Event(Event::Stalled { why }));
            }
            "mcpServer/startupStatus/updated" if params["status"] == "failed" => {
                let name = params["name"].as_str().unwrap_or_default();
                let why = params["error"].as_str().unwrap_or("it did not start");
                steps.push(Step::note(&format!("[MCP server {name}: {why}]\n")));
            }
            "serverRequest/resolved" => {
                self.questions.remove(&params["requestId"].to_string());
            }
            "turn/completed" => self.completed(&params["turn"], steps),
            _ => {}
        }
    }

    fn confirm(&mut self, item: &Value, steps: &mut Steps) {
        if item["type"] != "userMessage" {
            return;
        }
        let id = item["clientId"].as_str().and_then(|id| id.parse().ok());
        let Some(at) = self.unconfirmed.iter().position(|sent| sent.message == id) else {
            return;
        };
        self.unconfirmed.remove(at);
        if let Some(message) = id {
            steps.push(Step::Event(Event::Accepted { message }));
        }
    }

    /// The difference to the last total; before the first, what the last call used.
    fn used(&mut self, usage: &Value, steps: &mut Steps) {
        let tokens = |key: &str| {
            let number = |name: &str| usage[key][name].as_u64().unwrap_or(0);
            Usage {
                input_tokens: number("inputTokens"),
                cache_read_tokens: number("cachedInputTokens"),
                output_tokens: number("outputTokens"),
                ..Usage::default()
            }
        };
        let total = tokens("total");
        let used = match self.total.replace(total) {
            Some(before) => total.since(&before),
            // The usage before this process began.
            None if !matches!(self.state, Phase::Busy(_)) => Usage::default(),
            None => tokens("last"),
        };
        if used != Usage::default() {
            steps.push(Step::Event(Event::Usage(used)));
        }
    }

    fn completed(&mut self, turn: &Value, steps: &mut Steps) {
        let text = std::mem::take(&mut self.items.text);
        let end = |status, text, error| TurnEnd {
            status,
            text,
            error,
        };
        let end = match turn["status"].as_str().unwrap_or("nothing") {
            "completed" => end(TurnStatus::Completed, text, None),
            "interrupted" if self.interrupted => end(TurnStatus::Interrupted, text, None),
            "interrupted" => {
                let why = "the turn was interrupted from outside".to_owned();
                end(TurnStatus::Failed, text, Some(why))
            }
            "failed" => failure(&turn["error"], text),
            other => {
                let why = format!("the turn ended with the unknown status {other:?}");
                end(TurnStatus::Failed, text, Some(why))
            }
        };
        self.ended(end, steps);
    }

    fn ended(&mut self, end: TurnEnd, steps: &mut Steps) {
        self.state = Phase::Idle;
        self.interrupted = false;
        self.interrupt_later = false;
        self.items = Items::default();
        self.questions.clear();
        // Inputs that were steered into the turn and not read by it begin the next one.
        for mut input in std::mem::take(&mut self.unconfirmed).into_iter().rev() {
            if std::mem::take(&mut input.steered) {
                self.queue.push_front(input);
            }
        }
        steps.push(Step::Event(Event::TurnEnded(end)));
        self.go_on(steps);
    }

    fn ask(&mut self, id: &Value, method: &str, params: &Value, steps: &mut Steps) {
        let own_tools = self.launch.has_own_tools();
        match asked(id, method, params, &self.items, own_tools) {
            Asked::Answer(answer) => steps.push(self.calls.reply(id, &answer)),
            Asked::Unknown => steps.push(self.calls.refuse(id, method)),
            Asked::Host { question, .. } if self.questions.len() >= OPEN_QUESTIONS => {
                steps.push(self.calls.reply(id, &question.answer(false)));
            }
            Asked::Host {
                question,
                tool,
                input,
            } => {
                let key = id.to_string();
                self.questions.insert(key.clone(), question);
                let id = key;
                steps.push(Step::Event(Event::Permission { id, tool, input }));
            }
        }
    }

    fn send(&mut self, message: Message, steps: &mut Steps) {
        let input = Input {
            text: message.text,
            message: Some(message.id),
            steered: false,
        };
        if message.now && matches!(self.state, Phase::Busy(_) | Phase::Beginning) {
            self.interrupt(steps);
            self.queue.push_front(input);
        } else {
            self.queue.push_back(input);
        }
        self.go_on(steps);
    }
}

impl Translator for Codex {
    fn begin(&mut self) -> Steps {
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({ "name": "ccb", "title": "ccb", "version": version });
        let params = json!({ "clientInfo": client });
        vec![self.calls.call("initialize", &params, Call::Initialize)]
    }

    fn heard(&mut self, message: &Map<String, Value>) -> Option<Steps> {
        let mut steps = Steps::new();
        match read(message)? {
            Incoming::Answer { id, result } => {
                if let Some(call) = self.calls.answered(id)
                    && self.state != Phase::Failed
                {
                    self.answered(call, result, &mut steps);
                }
            }
            Incoming::Notification { method, params } => self.notified(method, params, &mut steps),
            Incoming::Request { id, method, params } => self.ask(id, method, params, &mut steps),
        }
        Some(steps)
    }

    fn told(&mut self, order: Order) -> Steps {
        let mut steps = Steps::new();
        match order {
            Order::Send(message) => self.send(message, &mut steps),
            Order::Interrupt => self.interrupt(&mut steps),
            // Counts from the next turn on: what is under way has its rules already.
            Order::SetMode { mode } => {
                self.launch.permission_mode = Some(mode.clone());
                self.mode_changed = self.state != Phase::Opening;
                let refused = None;
                steps.push(Step::Event(Event::Mode { mode, refused }));
            }
            Order::Answer { id, allow, .. } => {
                if let Some(question) = self.questions.remove(&id) {
                    steps.push(self.calls.reply(question.id(), &question.answer(allow)));
                }
            }
            // The end of its input would end it in the middle of the turn.
            Order::Finish => {
                self.finishing = true;
                self.go_on(&mut steps);
            }
            // Interrupted first, so that it ends what it has started.
            Order::Stop => {
                self.finishing = true;
                self.queue.clear();
                self.unconfirmed.clear();
                if matches!(self.state, Phase::Busy(_) | Phase::Beginning) {
                    self.interrupt(&mut steps);
                } else {
                    steps.push(Step::Close);
                }
            }
        }
        steps
    }
}

/// A turn that failed: the kind of error is a word, or an object with an HTTP status in it.
fn failure(error: &Value, text: String) -> TurnEnd {
    let kind = &error["codexErrorInfo"];
    let code = kind
        .as_object()
        .and_then(|kind| kind.values().next())
        .and_then(|inner| inner["httpStatusCode"].as_i64());
    let code = match kind.as_str() {
        Some("usageLimitExceeded" | "serverOverloaded") => Some(429),
        Some("unauthorized") => Some(401),
        _ => code,
    };
    failed_turn(code, &words(error), text, LOGIN)
}

fn words(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("it gave no reason");
    message.to_owned()
}
