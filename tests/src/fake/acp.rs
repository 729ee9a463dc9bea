//! The Agent Client Protocol, as the five agents speak it that ccb knows.
//!
//! They differ most in the effect of a prompt while another is being answered; each [`Persona`] has
//! one of the four known effects, and the other habits of its model.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::input::{Input, Message};

/// The effect of a prompt while another is being answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhileBusy {
    /// It becomes part of the running turn; both are answered together.
    Merge,
    /// It interrupts the running turn.
    Cancel,
    /// After the next tool it takes the place of the first, which is answered then.
    Inject,
    /// It waits for its turn.
    Queue,
}

/// The behaviour of an agent.
#[derive(Debug, Clone, Copy)]
pub struct Persona {
    name: &'static str,
    pub(super) while_busy: WhileBusy,
    load: bool,
    /// Claims that it can resume.
    resume: bool,
    /// Can resume.
    resumes: bool,
    fork: bool,
    /// Wants a login before it opens a session.
    login: bool,
    /// Does not end when its input does.
    pub(super) lingers: bool,
}

const PERSONAS: [(&str, Persona); 6] = [
    (
        "plain",
        Persona {
            name: "a plain agent",
            while_busy: WhileBusy::Queue,
            load: false,
            resume: true,
            resumes: true,
            fork: false,
            login: false,
            lingers: false,
        },
    ),
    (
        "opencode",
        Persona {
            name: "OpenCode",
            while_busy: WhileBusy::Merge,
            load: true,
            resume: true,
            resumes: true,
            fork: true,
            login: false,
            lingers: false,
        },
    ),
    (
        "gemini",
        Persona {
            name: "gemini-cli",
            while_busy: WhileBusy::Cancel,
            load: false,
            resume: false,
            resumes: false,
            fork: false,
            login: true,
            lingers: true,
        },
    ),
    (
        "qwen",
        Persona {
            name: "qwen-code",
            while_busy: WhileBusy::Cancel,
            load: true,
            resume: true,
            resumes: false,
            fork: false,
            login: false,
            lingers: false,
        },
    ),
    (
        "claude-agent-acp",
        Persona {
            name: "@agentclientprotocol/claude-agent-acp",
            while_busy: WhileBusy::Inject,
            load: true,
            resume: true,
            resumes: true,
            fork: true,
            login: false,
            lingers: false,
        },
    ),
    (
        "codex-acp",
        Persona {
            name: "codex-acp",
            while_busy: WhileBusy::Queue,
            load: true,
            resume: true,
            resumes: true,
            fork: true,
            login: false,
            lingers: false,
        },
    ),
];

impl Persona {
    /// By the name of the program it stands in for.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = PERSONAS.iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, persona)| *persona)
    }
}

/// One side of the protocol.
#[derive(Debug)]
pub(super) struct Acp {
    persona: Persona,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    session: String,
    logged_in: bool,
    /// Prompts that wait for their answer.
    open: Vec<Value>,
    /// The usage of this turn.
    used: (u64, u64),
    /// Number of messages said.
    said: u64,
}

impl Acp {
    pub(super) fn new(persona: Persona) -> Self {
        Self {
            persona,
            state: Mutex::default(),
        }
    }

    pub(super) fn persona(&self) -> Persona {
        self.persona
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn session(&self) -> String {
        self.state().session.clone()
    }

    /// Takes a line of input; answers those that are not for the agent itself.
    pub(super) fn heard(&self, line: &str) -> io::Result<Option<Input>> {
        let message: Value = serde_json::from_str(line)?;
        let (id, params) = (&message["id"], &message["params"]);
        let Some(method) = message["method"].as_str() else {
            // The answer to a question.
            let allow = message["result"]["outcome"]["optionId"] == "yes";
            let id = id.as_str().unwrap_or_default().to_owned();
            return Ok(Some(Input::Permission { id, allow }));
        };
        match method {
            "session/prompt" => {
                return Ok(Some(Input::Message(Message {
                    id: id.to_string(),
                    text: text_of(&params["prompt"]),
                    now: false,
                })));
            }
            "session/cancel" => return Ok(Some(Input::Interrupt)),
            _ if id.is_null() => {}
            _ => match self.answer(method, params)? {
                Ok(result) => {
                    print(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
                }
                Err(error) => {
                    print(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))?;
                }
            },
        }
        Ok(None)
    }

    /// Answers everything that comes before a prompt.
    fn answer(&self, method: &str, params: &Value) -> io::Result<Result<Value, Value>> {
        let Persona {
            name,
            load,
            resume,
            resumes,
            fork,
            login,
            ..
        } = self.persona;
        let none = json!({ "code": -32601, "message": format!("no method {method}") });
        let given = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let mut state = self.state();
        if method.starts_with("session/") && login && !state.logged_in {
            return Ok(Err(
                json!({ "code": -32000, "message": "Authentication required" }),
            ));
        }
        if given.starts_with("missing") {
            let message = format!("there is no session {given}");
            return Ok(Err(json!({ "code": -32602, "message": message })));
        }
        Ok(match method {
            "initialize" => {
                let mut sessions = json!({});
                if resume {
                    sessions["resume"] = json!({});
                }
                if fork {
                    sessions["fork"] = json!({});
                }
                Ok(json!({
                    "protocolVersion": 1,
                    "agentInfo": { "name": name, "version": "0" },
                    "agentCapabilities": { "loadSession": load, "sessionCapabilities": sessions },
                }))
            }
            "authenticate" => {
                state.logged_in = true;
                Ok(json!({}))
            }
            "session/new" => {
                state.session = format!("session-{}", std::process::id());
                Ok(json!({ "sessionId": state.session }))
            }
            "session/load" if load => {
                // Earlier messages are repeated, and are no part of this turn.
                state.session.clone_from(&given);
                drop(state);
                self.update(&chunk("old", "words of the past"))?;
                Ok(json!({}))
            }
            "session/resume" if resumes => {
                state.session = given;
                Ok(json!({}))
            }
            "session/fork" if fork => {
                state.session = format!("{given}-copy-{}", std::process::id());
                Ok(json!({ "sessionId": state.session }))
            }
            "session/set_mode" | "session/set_model" => Ok(json!({})),
            _ => Err(none),
        })
    }

    fn update(&self, update: &Value) -> io::Result<()> {
        let params = json!({ "sessionId": self.session(), "update": update });
        print(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    }

    /// Marks a prompt as part of a turn, or as the start of one.
    pub(super) fn accepted(&self, id: &str) -> io::Result<()> {
        let id = serde_json::from_str(id).unwrap_or(Value::Null);
        let mut state = self.state();
        if self.persona.while_busy == WhileBusy::Inject {
            let before = std::mem::take(&mut state.open);
            drop(state);
            // The one before was answered already, with no text.
            for prompt in before {
                let result = json!({ "stopReason": "end_turn" });
                print(&json!({ "jsonrpc": "2.0", "id": prompt, "result": result }))?;
            }
            state = self.state();
        }
        state.open.push(id);
        Ok(())
    }

    pub(super) fn say(&self, text: &str) -> io::Result<()> {
        let said = {
            let mut state = self.state();
            state.said += 1;
            state.said
        };
        self.update(&chunk(&format!("m{said}"), text))
    }

    pub(super) fn tool(&self, id: &str, name: &str, input: &Value) -> io::Result<()> {
        self.update(&json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": name,
            "status": "in_progress", "rawInput": input,
        }))
    }

    pub(super) fn tool_result(&self, id: &str, output: &str, error: bool) -> io::Result<()> {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": output } }]);
        self.update(&json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id,
            "status": if error { "failed" } else { "completed" }, "content": content,
        }))
    }

    pub(super) fn usage(&self, input: u64, output: u64) {
        let mut state = self.state();
        state.used = (state.used.0 + input, state.used.1 + output);
    }

    pub(super) fn ask(&self, id: &str, tool: &str, input: &Value) -> io::Result<()> {
        let params = json!({
            "sessionId": self.session(),
            "toolCall": { "toolCallId": id, "title": tool, "rawInput": input, "status": "pending" },
            "options": [
                { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
                { "optionId": "no", "name": "No", "kind": "reject_once" },
            ],
        });
        let method = "session/request_permission";
        print(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// Ends the turn: every open prompt is answered.
    pub(super) fn result(&self, status: &str, text: &str, error: Option<&str>) -> io::Result<()> {
        if !text.is_empty() {
            self.say(text)?;
        }
        let (open, (input, output)) = {
            let mut state = self.state();
            (
                std::mem::take(&mut state.open),
                std::mem::take(&mut state.used),
            )
        };
        let failed = |code: i64, words: &str| json!({ "code": code, "message": words });
        let ended = |reason: &str| {
            let usage = json!({ "inputTokens": input, "outputTokens": output });
            json!({ "stopReason": reason, "usage": usage })
        };
        let (key, value) = match status {
            "completed" => ("result", ended("end_turn")),
            "interrupted" => ("result", ended("cancelled")),
            "limit" => ("result", ended("max_turn_requests")),
            "quota" => ("error", failed(429, error.unwrap_or("slow down"))),
            _ => ("error", failed(-32603, error.unwrap_or("it failed"))),
        };
        for prompt in open {
            print(&json!({ "jsonrpc": "2.0", "id": prompt, key: value }))?;
        }
        Ok(())
    }
}

fn chunk(message: &str, text: &str) -> Value {
    json!({
        "sessionUpdate": "agent_message_chunk", "messageId": message,
        "content": { "type": "text", "text": text },
    })
}

fn text_of(prompt: &Value) -> String {
    let blocks = prompt.as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

fn print(line: &Value) -> io::Result<()> {
    use std::io::Write;
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}
