//! A model on loopback that has files read, one after the other, and then says a word. It records
//! when each request has arrived and when its answer has gone.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::memory;

/// The last word of the model.
pub(super) const LAST_WORD: &str = "over-and-out";

/// One request of an agent; not those about titles and the like.
#[derive(Debug)]
pub(super) struct Asked {
    /// The time when all of it was there.
    pub(super) arrived: Instant,
    /// The time when the system had all of the answer.
    pub(super) answered: Instant,
    /// Bytes of everything in it: for the first one, the beginning of every conversation.
    pub(super) bytes: usize,
    /// Bytes of the tools in it.
    pub(super) tools: usize,
}

/// The state that all connections share.
#[derive(Debug)]
pub(super) struct Model {
    /// Number of files that are read.
    turns: usize,
    /// The tool's name, and its argument for the file.
    tool: (&'static str, &'static str),
    /// The directory of the files.
    files: String,
    seen: Mutex<Seen>,
}

/// The events so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) asked: Vec<Asked>,
    /// The program, to look at its memory at the last request.
    pub(super) pid: Option<u32>,
    /// Its share of memory and that of everything it has started, in kB.
    pub(super) memory_kb: Option<u64>,
}

impl Model {
    /// Listens on a free port; returns its address. The thread ends with the process.
    pub(super) fn start(
        turns: usize,
        tool: (&'static str, &'static str),
        files: &str,
    ) -> io::Result<(Arc<Self>, String)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let model = Arc::new(Self {
            turns,
            tool,
            files: files.to_owned(),
            seen: Mutex::default(),
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

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut output = stream.try_clone()?;
        let mut input = BufReader::new(stream);
        while let Some((path, body)) = request(&mut input)? {
            let arrived = Instant::now();
            if body.is_empty() {
                // Some first check that there is a server.
                output.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
                continue;
            }
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let chat = path.contains("chat/completions");
            let tools = body["tools"]
                .as_array()
                .is_some_and(|tools| !tools.is_empty());
            let answered = read_so_far(&body);
            if tools && answered == self.turns {
                let pid = self.seen().pid;
                let kb = pid.and_then(memory::of_family);
                self.seen().memory_kb = kb;
            }
            let events = match (tools, answered < self.turns) {
                (true, true) => self.call(answered, chat),
                (true, false) => say(LAST_WORD, answered, chat),
                (false, _) => say("a title", answered, chat),
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                        transfer-encoding: chunked\r\n\r\n";
            let chunk = format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
            output.write_all(chunk.as_bytes())?;
            output.flush()?;
            if tools {
                // Some have a part of their system prompt in a message.
                let parts = ["system", "tools", "messages"];
                self.seen().asked.push(Asked {
                    arrived,
                    answered: Instant::now(),
                    bytes: parts.iter().map(|part| length(&body[*part])).sum(),
                    tools: length(&body["tools"]),
                });
            }
        }
        Ok(())
    }

    fn call(&self, number: usize, chat: bool) -> String {
        let (tool, key) = self.tool;
        let input = json!({ key: format!("{}/f{number}.txt", self.files) }).to_string();
        let id = format!("call_{number}");
        if chat {
            let function = json!({"name": tool, "arguments": input});
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            return chat_events(
                &json!({"role": "assistant", "tool_calls": [call]}),
                "tool_calls",
            );
        }
        let block = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": input});
        anthropic_events(number, &block, &delta, "tool_use")
    }
}

fn length(json: &Value) -> usize {
    match json {
        Value::Null => 0,
        json => json.to_string().len(),
    }
}

/// The number of the model's answers in this conversation.
pub(crate) fn answered(body: &Value) -> usize {
    let messages = body["messages"].as_array();
    let of_model = |message: &&Value| message["role"] == "assistant";
    messages.map_or(0, |all| all.iter().filter(of_model).count())
}

/// The number of files read in this conversation. Results are counted, not answers: one program
/// puts several answers into one message.
fn read_so_far(body: &Value) -> usize {
    let messages = body["messages"].as_array().into_iter().flatten();
    let results = messages.map(|message| match &message["content"] {
        _ if message["role"] == "tool" => 1,
        Value::Array(blocks) => {
            let result = |block: &&Value| block["type"] == "tool_result";
            blocks.iter().filter(result).count()
        }
        _ => 0,
    });
    results.sum()
}

/// `number` makes the answer's id one that no other answer has; a program takes two answers with
/// the same id for one.
pub(crate) fn say(text: &str, number: usize, chat: bool) -> String {
    if chat {
        return chat_events(&json!({"role": "assistant", "content": text}), "stop");
    }
    let block = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": text});
    anthropic_events(number, &block, &delta, "end_turn")
}

pub(crate) fn anthropic_events(number: usize, block: &Value, delta: &Value, stop: &str) -> String {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let event = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}

fn chat_events(delta: &Value, stop: &str) -> String {
    let chunk = |delta: &Value, stop: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": stop});
        let base = json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice],
        });
        format!("data: {base}\n\n")
    };
    let usage = json!({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    });
    let (first, last) = (chunk(delta, Value::Null), chunk(&json!({}), stop.into()));
    format!("{first}{last}data: {usage}\n\ndata: [DONE]\n\n")
}

/// The path and the body of the next request; none at the end.
pub(crate) fn request(input: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        input.read_line(&mut line)?;
        let header = line.trim();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(Some((path, body)))
}
