//! JSON-RPC over lines, as far as the agents' protocols need it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::translator::Step;

/// The code for a method that does not exist.
pub(super) const NO_METHOD: i64 = -32601;

/// A message of the other side.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// A request that wants an answer.
    Request {
        /// To be repeated in the answer.
        id: &'a Value,
        /// The method.
        method: &'a str,
        /// With what.
        params: &'a Value,
    },
    /// A notification.
    Notification {
        /// The event.
        method: &'a str,
        /// To what.
        params: &'a Value,
    },
    /// An answer.
    Answer {
        /// The id of the request.
        id: u64,
        /// A result or an error.
        result: Result<&'a Value, &'a Value>,
    },
}

/// The meaning of `message`; `None` if it has none.
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
    /// True if messages name the version of JSON-RPC.
    versioned: bool,
}

impl<T> Calls<T> {
    /// A connection without requests.
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

    /// The purpose of the request that is answered now.
    pub(super) fn answered(&mut self, id: u64) -> Option<T> {
        self.waiting.remove(&id)
    }

    /// A notification to the other side.
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
