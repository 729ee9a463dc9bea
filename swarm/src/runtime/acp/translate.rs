//! The Agent Client Protocol as a state machine.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::refusal::failed_turn;
use super::super::rpc::{Calls, Incoming, NO_METHOD, read};
use super::super::translator::{OPEN_QUESTIONS, Step, Steps, Translator};
use super::super::{Event, Launch, Message, Messages, Order, TurnEnd, TurnStatus, Usage};
use super::options::{Setting, mode_setting};
use super::quirks::Quirks;
use super::turn::{Turn, usage};
use crate::tools::OWN_SERVER;

/// The version of the protocol we speak.
pub(super) const VERSION: u64 = 1;

/// The purpose of a request.
#[derive(Debug)]
pub(super) enum Call {
    Initialize,
    LogIn,
    Open,
    Set(Setting),
    /// A change of the mode, while it runs.
    Mode(String),
    /// A prompt, and the message it came from.
    Prompt(Option<Uuid>),
}

/// A question that waits for an answer.
#[derive(Debug)]
pub(super) struct Question {
    id: Value,
    options: Value,
    /// The tool call it is about.
    call: String,
}

/// A conversation with an agent.
#[derive(Debug)]
pub(super) struct Acp {
    pub(super) launch: Launch,
    pub(super) quirks: Quirks,
    pub(super) calls: Calls<Call>,
    /// The methods by which it resumes a session, the best one last.
    pub(super) reopen: Vec<&'static str>,
    pub(super) can_fork: bool,
    pub(super) logged_in: bool,
    pub(super) session: String,
    /// True if the session is open, and everything is sent that comes before a prompt.
    pub(super) ready: bool,
    /// True if it did not start.
    pub(super) failed: bool,
    pub(super) settings: VecDeque<Setting>,
    /// The modes its session offers.
    pub(super) offers: Value,
    pub(super) model: Option<String>,
    /// Prompts that have not been answered.
    pub(super) open_prompts: usize,
    /// Messages that wait for the end of the turn.
    pub(super) queue: VecDeque<(Option<Uuid>, Value)>,
    /// Messages that were sent and are not known to have arrived.
    pub(super) unconfirmed: HashSet<Uuid>,
    /// The message that began the turn.
    pub(super) first: Option<Uuid>,
    pub(super) questions: HashMap<String, Question>,
    pub(super) turn: Turn,
    pub(super) last_usage: Usage,
    pub(super) finishing: bool,
    /// True if it has to stop before it has begun.
    pub(super) not_begin: bool,
}

impl Acp {
    pub(super) fn new(launch: Launch, quirks: Quirks) -> Self {
        Self {
            launch,
            quirks,
            calls: Calls::new(true),
            reopen: Vec::new(),
            can_fork: false,
            logged_in: false,
            session: String::new(),
            ready: false,
            failed: false,
            settings: VecDeque::new(),
            offers: Value::Null,
            model: None,
            open_prompts: 0,
            queue: VecDeque::new(),
            unconfirmed: HashSet::new(),
            first: None,
            questions: HashMap::new(),
            turn: Turn::default(),
            last_usage: Usage::default(),
            finishing: false,
            not_begin: false,
        }
    }

    fn answered(&mut self, call: Call, result: Result<&Value, &Value>, steps: &mut Steps) {
        match (call, result) {
            (Call::Initialize, Ok(result)) => self.introduced(result, steps),
            (Call::LogIn, Ok(_)) => self.open(steps),
            (Call::Open, Ok(result)) => self.opened(result, steps),
            (Call::Open, Err(error)) if self.can_log_in(error) => self.log_in(steps),
            // qwen announces `session/resume` and does not have it.
            (Call::Open, Err(error)) if error["code"] == NO_METHOD && !self.reopen.is_empty() => {
                self.open(steps);
            }
            (Call::Set(_), Ok(_)) => self.set_up(steps),
            (Call::Set(setting), Err(error)) => {
                let (_, why) = explain(error);
                if setting.required {
                    self.give_up(None, &format!("{} was refused: {why}", setting.what), steps);
                } else {
                    let words = format!("[{} was refused: {why}]\n", setting.what);
                    steps.push(Step::note(&words));
                    self.set_up(steps);
                }
            }
            (Call::Mode(mode), result) => {
                let refused = result.err().map(|error| explain(error).1);
                steps.push(Step::Event(Event::Mode { mode, refused }));
            }
            (Call::Prompt(message), result) => self.prompt_answered(message, result, steps),
            (Call::Initialize | Call::LogIn | Call::Open, Err(error)) => {
                let (code, why) = explain(error);
                self.give_up(code, &why, steps);
            }
        }
    }

    /// Sends what can be sent now.
    pub(super) fn go_on(&mut self, steps: &mut Steps) {
        if !self.ready {
            return;
        }
        let any_time = self.quirks.messages == Messages::AnyTime && !self.turn.interrupted;
        while (self.open_prompts == 0 || any_time)
            && let Some((message, prompt)) = self.queue.pop_front()
        {
            if self.open_prompts == 0 {
                self.first = message;
            }
            self.open_prompts += 1;
            self.unconfirmed.extend(message);
            let params = json!({ "sessionId": self.session, "prompt": prompt });
            let call = Call::Prompt(message);
            steps.push(self.calls.call("session/prompt", &params, call));
        }
        if self.finishing && self.open_prompts == 0 {
            steps.push(Step::Close);
        }
    }

    /// A message has arrived.
    fn confirm(&mut self, message: Option<Uuid>, steps: &mut Steps) {
        if let Some(message) = message
            && self.unconfirmed.remove(&message)
        {
            steps.push(Step::Event(Event::Accepted { message }));
        }
    }

    /// A turn lasts until no prompt is open: some agents take one into the turn of another.
    fn prompt_answered(
        &mut self,
        message: Option<Uuid>,
        result: Result<&Value, &Value>,
        steps: &mut Steps,
    ) {
        if result.is_ok() {
            self.confirm(message, steps);
        }
        self.open_prompts = self.open_prompts.saturating_sub(1);
        self.turn.flush(steps);
        if let Ok(result) = result {
            self.count(result, steps);
        }
        if self.open_prompts > 0 {
            return;
        }
        let turn = std::mem::take(&mut self.turn);
        self.last_usage = Usage::default();
        self.questions.clear();
        let interrupted = turn.interrupted;
        let text = turn.text();
        let end = |status, text, error| TurnEnd {
            status,
            text,
            error,
        };
        let end = match result {
            // The reason it gives does not matter: some say "end_turn", some an error.
            _ if interrupted => end(TurnStatus::Interrupted, text, None),
            Ok(result) => match result["stopReason"].as_str().unwrap_or("nothing") {
                "end_turn" => end(TurnStatus::Completed, text, None),
                "cancelled" => {
                    let why = "the turn was interrupted from outside".to_owned();
                    end(TurnStatus::Failed, text, Some(why))
                }
                reason @ ("max_tokens" | "max_turn_requests") => {
                    end(TurnStatus::LimitReached, text, Some(reason.to_owned()))
                }
                reason => end(
                    TurnStatus::Failed,
                    text,
                    Some(format!("it stopped: {reason}")),
                ),
            },
            Err(error) => {
                let (code, why) = explain(error);
                failed_turn(code, &why, text, self.quirks.login)
            }
        };
        steps.push(Step::Event(Event::TurnEnded(end)));
        self.go_on(steps);
    }

    /// Counts the usage of a prompt. Prompts that are answered together report the same usage
    /// twice.
    fn count(&mut self, result: &Value, steps: &mut Steps) {
        let mut used = usage(&result["usage"]);
        used.add(&usage(&result["_meta"]["quota"]["token_count"]));
        if used == self.last_usage {
            used = Usage::default();
        } else {
            self.last_usage = used;
        }
        used.add(&std::mem::take(&mut self.turn.used));
        if used != Usage::default() {
            steps.push(Step::Event(Event::Usage(used)));
        }
    }

    fn update(&mut self, params: &Value, steps: &mut Steps) {
        // Before: history that is sent again. Between turns: nothing of the model's.
        if !self.ready || self.open_prompts == 0 || params["sessionId"] != self.session.as_str() {
            return;
        }
        let update = &params["update"];
        let answers = matches!(
            update["sessionUpdate"].as_str(),
            Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "plan")
        );
        if answers && self.open_prompts == 1 {
            self.confirm(self.first, steps);
        }
        self.turn.update(update, steps);
    }

    fn asked(&mut self, id: &Value, params: &Value, steps: &mut Steps) {
        // Some ask before they tell anything.
        if self.open_prompts == 1 {
            self.confirm(self.first, steps);
        }
        let call = &params["toolCall"];
        let (tool, input) = self.turn.begin(call, steps);
        let question = Question {
            id: id.clone(),
            options: params["options"].clone(),
            call: call["toolCallId"].as_str().unwrap_or_default().to_owned(),
        };
        if self.launch.has_own_tools() && is_ours(&tool, call) {
            steps.push(self.calls.reply(id, &question.outcome(true)));
        } else if self.questions.len() >= OPEN_QUESTIONS || self.turn.interrupted {
            steps.push(self.calls.reply(id, &question.outcome(false)));
        } else {
            let key = id.to_string();
            self.questions.insert(key.clone(), question);
            let permission = Event::Permission {
                id: key,
                tool,
                input,
            };
            steps.push(Step::Event(permission));
        }
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        self.not_begin |= !self.ready;
        if self.open_prompts == 0 {
            return;
        }
        self.turn.interrupted = true;
        let params = json!({ "sessionId": self.session });
        steps.push(self.calls.notify("session/cancel", &params));
        for (_, question) in self.questions.drain() {
            let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
            steps.push(self.calls.reply(&question.id, &cancelled));
        }
    }

    fn set_mode(&mut self, mode: String, steps: &mut Steps) {
        if self.session.is_empty() {
            // The request is sent when its session is open.
            self.launch.permission_mode = Some(mode.clone());
            let refused = None;
            steps.push(Step::Event(Event::Mode { mode, refused }));
            return;
        }
        match mode_setting(&mode, &self.session, &self.offers) {
            Some(setting) => {
                let call = Call::Mode(mode);
                steps.push(self.calls.call(setting.method, &setting.params, call));
            }
            None => {
                let refused = Some(format!("this agent offers no mode {mode:?}"));
                steps.push(Step::Event(Event::Mode { mode, refused }));
            }
        }
    }

    fn send(&mut self, message: &Message, steps: &mut Steps) {
        let prompt = json!([text_block(&message.text)]);
        let entry = (Some(message.id), prompt);
        if message.now && self.open_prompts > 0 {
            self.interrupt(steps);
            self.queue.push_front(entry);
        } else {
            self.queue.push_back(entry);
        }
        self.go_on(steps);
    }
}

impl Question {
    fn outcome(&self, allow: bool) -> Value {
        let kinds = if allow {
            ["allow_once", "allow_always"]
        } else {
            ["reject_once", "reject_always"]
        };
        let options = self.options.as_array().map_or(&[][..], Vec::as_slice);
        let mut options = kinds
            .iter()
            .filter_map(|kind| options.iter().find(|option| option["kind"] == *kind));
        match options.next() {
            Some(option) => {
                json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } })
            }
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }
}

impl Translator for Acp {
    fn begin(&mut self) -> Steps {
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
            "clientInfo": { "name": "ccb", "version": env!("CARGO_PKG_VERSION") },
        });
        vec![self.calls.call("initialize", &params, Call::Initialize)]
    }

    fn heard(&mut self, message: &Map<String, Value>) -> Option<Steps> {
        let mut steps = Steps::new();
        match read(message)? {
            Incoming::Answer { id, result } => {
                // An answer to nothing changes nothing.
                if let Some(call) = self.calls.answered(id)
                    && !self.failed
                {
                    self.answered(call, result, &mut steps);
                }
            }
            Incoming::Notification { method, params } => {
                if method == "session/update" {
                    self.update(params, &mut steps);
                }
            }
            Incoming::Request { id, method, params } => {
                if method == "session/request_permission" {
                    self.asked(id, params, &mut steps);
                } else {
                    steps.push(self.calls.refuse(id, method));
                }
            }
        }
        Some(steps)
    }

    fn told(&mut self, order: Order) -> Steps {
        let mut steps = Steps::new();
        match order {
            Order::Send(message) => self.send(&message, &mut steps),
            Order::Interrupt => self.interrupt(&mut steps),
            Order::SetMode { mode } => self.set_mode(mode, &mut steps),
            Order::Answer { id, allow, reason } => {
                if let Some(question) = self.questions.remove(&id) {
                    let outcome = question.outcome(allow);
                    steps.push(self.calls.reply(&question.id, &outcome));
                    if !allow {
                        self.turn.deny(&question.call, reason, &mut steps);
                    }
                }
            }
            // The end of its input would end some of them in the middle of a turn.
            Order::Finish => {
                self.finishing = true;
                self.go_on(&mut steps);
            }
            Order::Stop => {
                self.queue.clear();
                self.interrupt(&mut steps);
                steps.push(Step::Close);
            }
        }
        steps
    }
}

/// True if a tool is one of ours, by the ways agents name the tools of a server.
fn is_ours(tool: &str, call: &Value) -> bool {
    let server = format!("({OWN_SERVER} MCP Server)");
    let titled = call["title"].as_str();
    tool.starts_with(&format!("mcp__{OWN_SERVER}__"))
        || (tool.starts_with(&format!("mcp_{OWN_SERVER}_"))
            && titled.is_some_and(|title| title.ends_with(&server)))
}

pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The code and the words of an error; some agents hide the words in its data.
fn explain(error: &Value) -> (Option<i64>, String) {
    let message = error["message"].as_str().unwrap_or("it gave no reason");
    let details = error["data"]["details"].as_str();
    let words = match details {
        Some(details) => format!("{message}: {details}"),
        None => message.to_owned(),
    };
    (error["code"].as_i64(), words)
}
