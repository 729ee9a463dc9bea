//! The connection: standard input and output, one JSON message per line.
//!
//! A thread reads and a thread writes, so that a slow client stops nothing else. A line that is no
//! message of the protocol is answered here, and never ends the connection. Mail joins an answer at
//! the last moment, so that an answer that is never sent takes none with it.

use std::collections::HashSet;
use std::io::{self, BufReader, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use coordinator::agent::service::Receipt;
use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ContentBlock, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use store::fault::reached;
use tokio::sync::{Notify, mpsc as channel, oneshot, watch};

use super::audience::Audience;
use super::fault;
use super::lines::{Line, Lines, MAX_LINE, is_id};
use super::post::{Parcel, Post};
use super::receipts::Receipts;

/// Maximum number of queued messages in each direction before the other side has to wait.
const QUEUE: usize = 4;
/// Maximum number of open requests before the client has to wait for answers.
const OPEN: usize = 32;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The methods a client can call. Everything else in the protocol, such as the probe
/// `server/discover` for a version without a handshake, is not for this server.
const METHODS: [&str; 5] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "logging/setLevel",
];

/// The state of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    There,
    /// The client sends nothing more, but may read the remaining answers.
    Silent,
    /// The client reads nothing more.
    Gone,
}

/// The streams that the client reads and writes.
#[derive(Debug)]
pub(crate) struct Stdio {
    lines: channel::Receiver<Line>,
    out: mpsc::SyncSender<Outgoing>,
    client: watch::Receiver<Client>,
    open: Arc<Open>,
    audience: Audience,
}

#[derive(Debug)]
struct Outgoing {
    what: What,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

#[derive(Debug)]
enum What {
    Message(Box<ServerJsonRpcMessage>),
    Error(Value),
}

/// Starts both threads. The writer ends when the transport is dropped.
pub(crate) fn start(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    room: Mailroom,
    client: &Arc<watch::Sender<Client>>,
) -> (Stdio, JoinHandle<()>) {
    let (to_server, lines) = channel::channel(QUEUE);
    let (out, to_client) = mpsc::sync_channel(QUEUE);
    let watched = client.subscribe();
    let state = Arc::clone(client);
    // The thread ends with the process: it may wait for a line that never comes.
    std::thread::spawn(move || {
        read(input, &to_server);
        state.send_if_modified(|client| {
            let was_there = *client == Client::There;
            if was_there {
                *client = Client::Silent;
            }
            was_there
        });
    });
    let state = Arc::clone(client);
    let audience = room.audience.clone();
    let writer = swarm::scope::spawn(move || write(output, &to_client, &room, &state));
    let stdio = Stdio {
        lines,
        out,
        client: watched,
        open: Arc::default(),
        audience,
    };
    (stdio, writer)
}

fn read(input: impl Read, to_server: &channel::Sender<Line>) {
    let mut lines = Lines::new(BufReader::new(input), MAX_LINE);
    loop {
        match lines.next_line() {
            Ok(Some(line)) => {
                if to_server.blocking_send(line).is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "standard input cannot be read");
                return;
            }
        }
    }
}

fn write(
    mut output: impl Write,
    to_client: &mpsc::Receiver<Outgoing>,
    room: &Mailroom,
    client: &watch::Sender<Client>,
) {
    let mut failed = false;
    for Outgoing { what, written } in to_client {
        if failed {
            // The client has gone; dropping the message tells its sender.
            continue;
        }
        let (line, parcel, receipt) = match what {
            What::Error(error) => (serde_json::to_vec(&error), Parcel::default(), None),
            What::Message(mut message) => {
                let (parcel, receipt) = room.attach(&mut message);
                (serde_json::to_vec(&message), parcel, receipt)
            }
        };
        reached(fault::MAIL_ATTACHED);
        let result = line.map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            output.write_all(&line)?;
            output.flush()
        });
        match &result {
            Ok(()) => {
                reached(fault::ANSWER_WRITTEN);
                room.post.delivered(&parcel);
                if let Some(receipt) = receipt {
                    receipt();
                }
            }
            Err(error) => {
                tracing::info!(%error, "the client has gone");
                failed = true;
                client.send_replace(Client::Gone);
            }
        }
        if let Some(written) = written {
            // The sender may have gone as well.
            written.send(result).ok();
        }
    }
}

/// Attaches mail to answers, and acts after an answer is written.
#[derive(Debug, Clone)]
pub(crate) struct Mailroom {
    pub(crate) post: Arc<Post>,
    pub(crate) receipts: Receipts,
    pub(crate) audience: Audience,
}

impl Mailroom {
    /// Attaches the caller's mail to the result of a call.
    fn attach(&self, message: &mut ServerJsonRpcMessage) -> (Parcel, Option<Receipt>) {
        let JsonRpcMessage::Response(response) = message else {
            return (Parcel::default(), None);
        };
        let receipt = self.receipts.take(&response.id);
        let ServerResult::CallToolResult(result) = &mut response.result else {
            return (Parcel::default(), receipt);
        };
        let words: usize = result.content.iter().map(characters).sum();
        let parcel = self.post.collect(&self.audience, words);
        let blocks = parcel.texts.iter().map(ContentBlock::text);
        result.content.extend(blocks);
        (parcel, receipt)
    }
}

fn characters(block: &ContentBlock) -> usize {
    block.as_text().map_or(0, |text| text.text.chars().count())
}

impl Stdio {
    /// Answers a request that the server does not get.
    fn refuse(&self, id: &Value, code: i64, message: &str) {
        tracing::debug!(message, "refused");
        let error =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
        let what = What::Error(error);
        // If the writer is gone, so is the client.
        self.out
            .send(Outgoing {
                what,
                written: None,
            })
            .ok();
    }

    /// The message in a line, if it is for the server.
    fn understand(&self, line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
        match meaning(line) {
            Ok(message) => Some(message),
            Err(refusal) => {
                if let Some(Refusal { id, code, why }) = refusal {
                    self.refuse(&id, code, &why);
                }
                None
            }
        }
    }
}

/// An answer to a line that the server does not get, with the reason.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The id of the request; null if it is not known.
    pub(crate) id: Value,
    code: i64,
    pub(crate) why: String,
}

/// The message in a line. The error is the answer to a line that is not for the server; `None` if
/// no client waits for one.
pub(crate) fn meaning(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Option<Refusal>> {
    let refused = |id: &Value, code: i64, why: &str| {
        let (id, why) = (id.clone(), why.to_owned());
        Err(Some(Refusal { id, code, why }))
    };
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => return refused(&Value::Null, PARSE_ERROR, &format!("not JSON: {error}")),
    };
    if !value.is_object() {
        let text = "a message is one JSON object; batches are not supported";
        return refused(&Value::Null, INVALID_REQUEST, text);
    }
    let id = value.get("id").cloned();
    let method = value.get("method").and_then(Value::as_str);
    let method = method.map(str::to_owned);
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        let text = "an id is a string or a whole number";
        return refused(&Value::Null, INVALID_REQUEST, text);
    }
    if let (Some(id), Some(method)) = (&id, method.as_deref())
        && !METHODS.contains(&method)
    {
        return refused(id, METHOD_NOT_FOUND, &format!("method not found: {method}"));
    }
    match (serde_json::from_value(value), id, method) {
        (Ok(message), ..) => Ok(message),
        (Err(_), Some(id), Some(method)) => {
            let text = format!("wrong parameters for {method}");
            refused(&id, INVALID_PARAMS, &text)
        }
        (Err(_), Some(id), None) => refused(&id, INVALID_REQUEST, "not a JSON-RPC 2.0 request"),
        // A notification gets no answer.
        (Err(error), None, Some(method)) => {
            tracing::debug!(method, %error, "not understood");
            Err(None)
        }
        (Err(_), None, None) => {
            refused(&Value::Null, INVALID_REQUEST, "not a JSON-RPC 2.0 message")
        }
    }
}

/// The unanswered requests: a client that asks faster than it gets answers must not fill our
/// memory.
#[derive(Debug, Default)]
struct Open {
    ids: Mutex<HashSet<RequestId>>,
    closed: Notify,
}

impl Open {
    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, id: Option<&RequestId>) {
        if id.is_some_and(|id| self.ids().remove(id)) {
            self.closed.notify_one();
        }
    }

    /// Counts an incoming message.
    fn note(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.ids().insert(request.id.clone());
            }
            // A cancelled request gets no answer.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                {
                    self.close(cancelled.params.request_id.as_ref());
                }
            }
            _ => {}
        }
    }

    /// Waits until another request may be open.
    async fn room(&self) {
        while self.ids().len() >= OPEN {
            self.closed.notified().await;
        }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (written, result) = oneshot::channel();
        match &item {
            JsonRpcMessage::Response(response) => self.open.close(Some(&response.id)),
            JsonRpcMessage::Error(error) => self.open.close(error.id.as_ref()),
            _ => {}
        }
        let sent = self.out.send(Outgoing {
            what: What::Message(Box::new(item)),
            written: Some(written),
        });
        async move {
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            sent.map_err(|_| gone())?;
            result.await.unwrap_or_else(|_| Err(gone()))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let next = async {
                self.open.room().await;
                self.lines.recv().await
            };
            let line = tokio::select! {
                line = next => line?,
                _ = self.client.wait_for(|client| *client == Client::Gone) => return None,
            };
            match line {
                Line::Whole(line) => {
                    if let Some(message) = self.understand(&line) {
                        self.open.note(&message);
                        if let JsonRpcMessage::Request(request) = &message
                            && let ClientRequest::InitializeRequest(first) = &request.request
                        {
                            self.audience.learn(&first.params);
                        }
                        return Some(message);
                    }
                }
                Line::TooLong(id) => {
                    let text = format!(
                        "the message is longer than {MAX_LINE} bytes; put large texts into a file \
                         and send its path"
                    );
                    self.refuse(&id, INVALID_REQUEST, &text);
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.lines.close();
        Ok(())
    }
}
