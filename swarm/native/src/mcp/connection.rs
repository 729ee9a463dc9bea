//! One server, from its start to its end.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation,
    RequestMetaObject, Tool,
};
use rmcp::service::{ClientInitializeError, Peer, RunningService, ServiceError, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use swarm::process::{Child, Ending, signal_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::sync::Notify;

use super::super::tools::{Call, ToolOutput};
use super::tool::text_of;

/// By which our own server knows that its list of tools must not change.
pub(super) const CLIENT: &str = "ccb-native";
/// Maximum bytes of a server's answer.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// Maximum tools of a server.
const MAX_TOOLS: usize = 256;
/// Bytes that are kept from the end of what a server prints as errors.
const LAST_WORDS: usize = 2048;
/// Maximum wait for the exit code of a server whose pipe is closed.
const SETTLE: Duration = Duration::from_millis(500);
/// Maximum wait for a server's last output when it has ended.
const LISTEN: Duration = Duration::from_millis(200);
/// The field in which our own server finds the id of the model's call.
const TOOL_USE: &str = "claudecode/toolUseId";

/// The way to a server.
#[derive(Debug)]
pub(super) enum Way {
    /// A program of its own.
    Process(Child),
    /// Threads of this process.
    Socket(tokio::net::UnixStream),
}

impl Way {
    pub(super) fn socket(socket: UnixStream) -> Result<Self, String> {
        let ready = socket.set_nonblocking(true);
        let socket = ready.and_then(|()| tokio::net::UnixStream::from_std(socket));
        let socket = socket.map_err(|error| format!("no connection: {error}"))?;
        Ok(Self::Socket(socket))
    }
}

/// A server that has shown its tools.
#[derive(Debug)]
pub(super) struct Connection {
    name: String,
    peer: Peer<RoleClient>,
    running: tokio::sync::Mutex<RunningService<RoleClient, ClientConfig>>,
    tools: Vec<Tool>,
    program: Option<Program>,
    call_limit: Option<Duration>,
}

impl Connection {
    /// Says hello and asks for the tools. Dropping the future ends the server.
    pub(super) async fn open(
        name: &str,
        way: Way,
        call_limit: Option<Duration>,
    ) -> Result<Self, String> {
        let (running, program) = match way {
            Way::Socket(socket) => {
                let (read, write) = socket.into_split();
                (greet(read, write).await, None)
            }
            Way::Process(mut child) => {
                let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
                    return Err("it has no pipes".into());
                };
                // From here on it ends with this.
                let program = Program::watch(child);
                (greet(stdout, stdin).await, Some(program))
            }
        };
        let listed = match running {
            Ok(running) => {
                let tools = running.peer().list_all_tools().await;
                tools
                    .map(|tools| (running, tools))
                    .map_err(|error| spoken(&error))
            }
            Err(error) => Err(not_greeted(&error)),
        };
        let (running, mut tools) = match (listed, &program) {
            (Ok(listed), _) => listed,
            (Err(why), None) => return Err(why),
            (Err(why), Some(program)) => return Err(program.obituary(&why).await),
        };
        tools.truncate(MAX_TOOLS);
        Ok(Self {
            name: name.to_owned(),
            peer: running.peer().clone(),
            running: tokio::sync::Mutex::new(running),
            tools,
            program,
            call_limit,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Calls a tool. Dropping the future calls it off.
    pub(super) async fn call(&self, tool: &str, input: Value, call: &Call) -> ToolOutput {
        let Value::Object(arguments) = input else {
            return ToolOutput::error("The input must be a JSON object. Call it again.");
        };
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(arguments);
        if !call.id.is_empty() {
            let mut meta = RequestMetaObject::default();
            meta.insert(TOOL_USE.to_owned(), call.id.clone().into());
            params.meta = Some(meta);
        }
        let answer = self.peer.call_tool_once(params);
        let answer = match self.call_limit {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => {
                    return ToolOutput::error(format!(
                        "MCP server {:?} did not answer within {limit:?}, and the call was called \
                         off. It may have done part of it.",
                        self.name
                    ));
                }
            },
        };
        match answer {
            Ok(CallToolResponse::Complete(result)) => ToolOutput {
                text: text_of(&result),
                is_error: result.is_error == Some(true),
            },
            Ok(_) => ToolOutput::error(format!(
                "MCP server {:?} wants to ask somebody something, and nobody is there.",
                self.name
            )),
            Err(ServiceError::McpError(error)) => ToolOutput::error(error.message.into_owned()),
            Err(error) => {
                let why = spoken(&error);
                let why = match &self.program {
                    Some(program) => program.obituary(&why).await,
                    None => why,
                };
                ToolOutput::error(format!(
                    "MCP server {:?} cannot be used any more: {why}. Go on without its tools; the \
                     call may have done part of its work.",
                    self.name
                ))
            }
        }
    }

    /// Closes its input and waits until it has ended.
    pub(super) async fn close(&self) {
        self.running.lock().await.close().await.ok();
        if let Some(program) = &self.program {
            program.ended().await;
        }
    }
}

async fn greet(
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<RunningService<RoleClient, ClientConfig>, ClientInitializeError> {
    let who = Implementation::new(CLIENT, env!("CARGO_PKG_VERSION"));
    let client = ClientConfig::new(ClientCapabilities::default(), who);
    let transport = AsyncRwTransport::new(read, write).with_max_line_length(MAX_LINE);
    serve_client(client, transport).await
}

fn not_greeted(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => "it ended without an answer".into(),
        ClientInitializeError::JsonRpcError(error) => format!("it answered: {}", error.message),
        other => format!("it does not speak the protocol: {other}"),
    }
}

fn spoken(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("it answered: {}", error.message),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            "its connection is closed".into()
        }
        other => other.to_string(),
    }
}

/// The process of a server; it ends with this value.
#[derive(Debug)]
struct Program {
    pid: Pid,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    ending: OnceLock<Ending>,
    over: Notify,
    /// The end of what it printed as errors.
    words: Mutex<Vec<u8>>,
}

impl Program {
    fn watch(child: Child) -> Self {
        let state = Arc::new(State::default());
        let stderr = child.stderr;
        let heard = stderr.map(|stderr| tokio::spawn(listen(stderr, Arc::clone(&state))));
        let (ended, noted) = (child.ended, Arc::clone(&state));
        tokio::spawn(async move {
            let ending = ended.await.unwrap_or(Ending::Unknown);
            if let Some(heard) = heard {
                // The server's child processes may keep the pipe open.
                tokio::time::timeout(LISTEN, heard).await.ok();
            }
            noted.ending.set(ending).ok();
            noted.over.notify_waiters();
        });
        Self {
            pid: child.pid,
            state,
        }
    }

    /// Waits for its end.
    async fn ended(&self) {
        loop {
            let over = self.state.over.notified();
            if self.state.ending.get().is_some() {
                return;
            }
            over.await;
        }
    }

    /// The reason why it cannot be used: its exit code and last words, if it has ended.
    async fn obituary(&self, why: &str) -> String {
        if tokio::time::timeout(SETTLE, self.ended()).await.is_err() {
            return why.to_owned();
        }
        let ending = self.state.ending.get().copied().unwrap_or(Ending::Unknown);
        let words = self.state.words.lock();
        let words = words.unwrap_or_else(PoisonError::into_inner);
        let words = String::from_utf8_lossy(&words);
        let last = words.lines().rev().find(|line| !line.trim().is_empty());
        match last {
            Some(last) => format!("its program {} ({})", ending.in_words(), last.trim()),
            None => format!("its program {}", ending.in_words()),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.state.ending.get().is_none() {
            signal_group(self.pid, Signal::KILL);
        }
    }
}

/// Reads what a server prints, so that it never waits for a reader, and keeps the end of it.
async fn listen(mut stderr: pipe::Receiver, state: Arc<State>) {
    let mut chunk = vec![0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let words = state.words.lock();
        let mut words = words.unwrap_or_else(PoisonError::into_inner);
        words.extend_from_slice(&chunk[..read]);
        let over = words.len().saturating_sub(LAST_WORDS);
        words.drain(..over);
    }
}
