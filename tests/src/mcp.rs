//! A client of the MCP server: JSON lines over the standard streams of a child process.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Time limit for an answer.
const LIMIT: Duration = Duration::from_secs(60);

/// A connection to a server of its own.
#[derive(Debug)]
pub struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<std::thread::JoinHandle<String>>,
    next_id: u64,
    /// The notifications of the server.
    pub notifications: Vec<Value>,
}

/// The remaining output of a server that has ended.
#[derive(Debug)]
pub struct McpEnd {
    pub code: Option<i32>,
    pub stderr: String,
    /// Unread lines.
    pub rest: Vec<String>,
}

impl McpClient {
    /// Starts the server and does nothing else.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut errors = child.stderr.take().expect("a pipe");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).ok();
            text
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
            next_id: 1,
            notifications: Vec::new(),
        }
    }

    /// Starts the server and greets it.
    pub fn connect(command: Command) -> Self {
        let mut client = Self::start(command);
        client.initialize("2025-11-25");
        client
    }

    /// Starts the server and greets it as the client of a model does: as `name`, without requests.
    pub fn connect_as(name: &str, command: Command) -> Self {
        let mut client = Self::start(command);
        client.greet("2025-11-25", name, json!({}));
        client
    }

    /// The handshake of a program that wants JSON; returns the server's description of itself.
    pub fn initialize(&mut self, version: &str) -> Value {
        let wants_json = json!({"experimental": {"ccb/json": {}}});
        self.greet(version, "test", wants_json)
    }

    fn greet(&mut self, version: &str, name: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": name, "version": "1"},
        });
        let answer = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer["result"].clone()
    }

    /// Sends one line as it is.
    pub fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open pipe");
        // A dead server is noticed by its missing answer.
        input.write_all(line.as_bytes()).ok();
        input.write_all(b"\n").ok();
        input.flush().ok();
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a request without waiting; returns its id.
    pub fn begin(&mut self, method: &str, params: Value) -> Value {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message of any kind; `None` if the server has ended.
    pub fn next_message(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => {
                let parsed = serde_json::from_str(&line);
                Some(parsed.unwrap_or_else(|error| panic!("not the protocol: {line:?}: {error}")))
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(error) => panic!("no answer: {error}"),
        }
    }

    /// The answer to the request with this id.
    pub fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next_message().expect("an answer");
            if message.get("method").is_some() {
                self.notifications.push(message);
            } else if message["id"] == *id {
                return message;
            }
        }
    }

    /// The next notification with this method.
    pub fn notification(&mut self, method: &str) -> Value {
        let wanted = |message: &Value| message["method"] == method;
        loop {
            if let Some(n) = self.notifications.iter().position(wanted) {
                return self.notifications.remove(n);
            }
            let message = self.next_message().expect("a notification");
            self.notifications.push(message);
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&id)
    }

    /// The names of all tools.
    pub fn tools(&mut self) -> Vec<String> {
        let answer = self.request("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().expect("a list");
        let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
        tools.iter().map(name).collect()
    }

    /// Calls a tool; returns its result, error or not.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.request("tools/call", params);
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool, which must work; returns its structured content.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], json!(false), "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool, which must fail; returns the error and its message.
    pub fn fails(&mut self, tool: &str, arguments: Value) -> (Value, String) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], json!(true), "{tool}: {result}");
        let text = texts(&result).remove(0);
        (result["structuredContent"].clone(), text)
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server's input.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Ends the server at once, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it ends");
    }

    /// Hangs up and waits for the server to end.
    pub fn finish(mut self) -> McpEnd {
        self.hang_up();
        let status = self.child.wait().expect("it ends");
        let stderr = self
            .stderr
            .take()
            .map(|thread| thread.join().expect("its words"));
        McpEnd {
            code: status.code(),
            stderr: stderr.unwrap_or_default(),
            rest: self.lines.iter().collect(),
        }
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // Nothing a test started outlives it.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The texts of a tool's result, in order.
pub fn texts(result: &Value) -> Vec<String> {
    let blocks = result["content"].as_array().expect("content");
    let text = |block: &Value| block["text"].as_str().expect("a text").to_owned();
    blocks.iter().map(text).collect()
}
