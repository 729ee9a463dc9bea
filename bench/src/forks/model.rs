//! A model on loopback that makes an agent read much and fork, and compares the requests.

use std::io::{self, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cache::{Cache, Cached};
use super::wire::Wire;
use crate::native::model::{answered, request};

/// A mark that only the first text of a fork contains.
const TAG: &str = "<fork-boilerplate>";

/// A request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) arrived: Instant,
    /// The time when the system had all of its answer.
    pub(super) answered: Option<Instant>,
    pub(super) body: Vec<u8>,
    pub(super) cached: Cached,
    /// True for a request of a fork.
    pub(super) fork: bool,
    /// The number of the model's answers in this conversation.
    pub(super) turn: usize,
}

impl Asked {
    /// Tokens that it has, in and out of the cache.
    pub(super) fn tokens(&self) -> u64 {
        self.body.len() as u64 / 4
    }
}

/// The state that all connections share.
#[derive(Debug, Default)]
struct Seen {
    asked: Vec<Asked>,
    cache: Cache,
}

/// The model.
#[derive(Debug)]
pub(super) struct Model {
    /// Number of files that are read before it forks.
    files: usize,
    /// Number of forks it makes.
    forks: usize,
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Model {
    /// Listens on a free port; returns its address. The thread ends with the process.
    pub(super) fn start(files: usize, forks: usize) -> io::Result<(Arc<Self>, String)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let model = Arc::new(Self {
            files,
            forks,
            seen: Mutex::default(),
            changed: Condvar::new(),
        });
        let shared = Arc::clone(&model);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let model = Arc::clone(&shared);
                // A client that goes away is no error.
                std::thread::spawn(move || model.serve(stream).ok());
            }
        });
        Ok((model, url))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All requests, when each fork has asked once.
    pub(super) fn wait(&self, limit: Duration) -> Option<Vec<Asked>> {
        let deadline = Instant::now() + limit;
        let mut seen = self.seen();
        loop {
            let forks = seen.asked.iter().filter(|one| one.fork).count();
            if forks >= self.forks {
                return Some(std::mem::take(&mut seen.asked));
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let waited = self.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut output = stream.try_clone()?;
        let mut input = BufReader::with_capacity(1 << 20, stream);
        while let Some((_, bytes)) = request(&mut input)? {
            let arrived = Instant::now();
            let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let turn = answered(&body);
            let fork = memchr(&bytes, TAG.as_bytes());
            let (cached, leaves) = self.seen().cache.look(Wire::Anthropic, &body);
            let usage = json!({
                "input_tokens": (bytes.len() as u64 / 4).saturating_sub(cached.read + cached.write),
                "cache_read_input_tokens": cached.read,
                "cache_creation_input_tokens": cached.write,
                "output_tokens": 5,
            });
            let events = events(&self.answer(turn, fork), &usage);
            let at = {
                let mut seen = self.seen();
                seen.cache.keep(leaves);
                let body = bytes;
                let answered = None;
                seen.asked.push(Asked {
                    arrived,
                    answered,
                    body,
                    cached,
                    fork,
                    turn,
                });
                seen.asked.len() - 1
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                        transfer-encoding: chunked\r\n\r\n";
            let chunk = format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
            output.write_all(chunk.as_bytes())?;
            output.flush()?;
            let now = Instant::now();
            if let Some(one) = self.seen().asked.get_mut(at) {
                one.answered = Some(now);
            }
            self.changed.notify_all();
        }
        Ok(())
    }

    /// The blocks of an answer: a file to read, forks to make, or a word.
    fn answer(&self, turn: usize, fork: bool) -> Vec<Value> {
        let call = |id: String, name: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        match turn {
            _ if fork => vec![json!({ "type": "text", "text": "Looked." })],
            turn if turn < self.files => {
                let input = json!({ "file_path": format!("f{turn}.txt") });
                vec![call(format!("read_{turn}"), "Read", input)]
            }
            turn if turn == self.files => {
                let forks = (0..self.forks).map(|n| {
                    let order = format!("Look at part {n}.");
                    let input =
                        json!({ "description": order, "prompt": order, "subagent_type": "fork" });
                    call(format!("fork_{n}"), "mcp__ccb__Agent", input)
                });
                forks.collect()
            }
            _ => vec![json!({ "type": "text", "text": "I go on." })],
        }
    }
}

fn memchr(bytes: &[u8], word: &[u8]) -> bool {
    // A fork's own text is at the end.
    let from = bytes.len().saturating_sub(16 * 1024);
    bytes[from..].windows(word.len()).any(|part| part == word)
}

fn events(blocks: &[Value], usage: &Value) -> String {
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let stop = if calls { "tool_use" } else { "end_turn" };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let mut events = vec![json!({ "type": "message_start", "message": message })];
    for (index, block) in blocks.iter().enumerate() {
        let mut opening = block.clone();
        let delta = match block["type"].as_str() {
            Some("tool_use") => {
                opening["input"] = json!({});
                json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() })
            }
            _ => {
                opening["text"] = "".into();
                json!({ "type": "text_delta", "text": block["text"] })
            }
        };
        events.extend([
            json!({ "type": "content_block_start", "index": index, "content_block": opening }),
            json!({ "type": "content_block_delta", "index": index, "delta": delta }),
            json!({ "type": "content_block_stop", "index": index }),
        ]);
    }
    let delta = json!({ "stop_reason": stop });
    events
        .push(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 5 } }));
    events.push(json!({ "type": "message_stop" }));
    let event = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}
