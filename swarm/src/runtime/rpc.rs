//! JSON-RPC over lines, as far as the agents' protocols need it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::translator::Step;

/// The code for a method that does not exist.
pub(super) const NO_METHOD: i64 = -32601;

/// What the other side says.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// It wants an answer.
    Request {
        /// To be repeated in the answer.
        id: &'a Value,
        /// What it wants.
        method: &'a str,
        /// With what.
        params: &'a Value,
    },
    /// It tells something.
    Notification {
        /// What happened.
        method: &'a str,
        /// To what.
        params: &'a Value,
    },
    /// It answers.
    Answer {
        /// Which request.
        id: u64,
        /// A result or an error.
        result: Result<&'a Value, &'a Value>,
    },
}

/// What `message` is, if it is anything.
pub(super) fn read(message: &Map<String, Value>) -> Option<Incoming<'_>> {
    static NULL: Value = Value::Null;
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params").unwrap_or(&NULL);
    match (message.get("id"), method) {
        (Some(id), Some(method)) => Some(Incoming::Request { id, method, params }),
        (None, Some(method)) => Some(Incoming::Notification { method, params }),
        (Some(id), None) => {
            let result = match (message.get("result"), message.get("error")) {
                (_, Some(error)) if !error.is_null() => Err(error),
                (Some(result), _) => Ok(result),
                (None, _) => return None,
            };
            let id = id.as_u64()?;
            Some(Incoming::Answer { id, result })
        }
        (None, None) => None,
    }
}

/// Requests that wait for an answer, each with what it was for.
#[derive(Debug)]
pub(super) struct Calls<T> {
    next: u64,
    waiting: HashMap<u64, T>,
    /// Whether messages name the version of JSON-RPC.
    versioned: bool,
}

impl<T> Calls<T> {
    /// No requests yet.
    pub(super) fn new(versioned: bool) -> Self {
        Self {
            next: 1,
            waiting: HashMap::new(),
            versioned,
        }
    }

    /// A request.
    pub(super) fn call(&mut self, method: &str, params: &Value, what: T) -> Step {
        let id = self.next;
        self.next += 1;
        self.waiting.insert(id, what);
        self.line(json!({ "id": id, "method": method, "params": params }))
    }

    /// What the request that is answered now was for.
    pub(super) fn answered(&mut self, id: u64) -> Option<T> {
        self.waiting.remove(&id)
    }

    /// Something the other side is told.
    pub(super) fn notify(&self, method: &str, params: &Value) -> Step {
        self.line(json!({ "method": method, "params": params }))
    }

    /// An answer to the other side.
    pub(super) fn reply(&self, id: &Value, result: &Value) -> Step {
        self.line(json!({ "id": id, "result": result }))
    }

    /// An answer to what we do not do; without one it would wait for ever.
    pub(super) fn refuse(&self, id: &Value, method: &str) -> Step {
        let message = format!("ccb does not do {method}");
        self.line(json!({ "id": id, "error": { "code": NO_METHOD, "message": message } }))
    }

    fn line(&self, mut message: Value) -> Step {
        if self.versioned {
            message["jsonrpc"] = "2.0".into();
        }
        Step::Line(message)
    }
}
