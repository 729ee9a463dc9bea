//! Fuzz targets: what programs that are run as agents print; see [`store::fuzz`].

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::line_reader::{Line, LineReader};
use super::lines::LinesTranslator;
use super::translator::{OPEN_QUESTIONS, Step, Steps, Translator};
use super::{
    Event, EventRedactor, Launch, McpServer, Message, Order, Usage, acp, claude, codex, retry_after,
};
use crate::redact::Secrets;
use crate::tools::OWN_SERVER;

/// The most steps that one line or order may lead to, besides one for each byte of the line.
const MOST_STEPS: usize = 4 * OPEN_QUESTIONS;

pub(crate) fn claude_lines(data: &[u8]) {
    converse(claude::translator(&launch()), data);
}

pub(crate) fn codex_lines(data: &[u8]) {
    converse(codex::translator(launch()), data);
}

/// The first byte says which program of those that speak the protocol.
pub(crate) fn acp_lines(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let programs = ["agent", "opencode", "gemini", "qwen", "claude-agent-acp"];
    let program = programs[usize::from(*first) % programs.len()];
    converse(acp::translator(launch(), program), rest);
}

pub(crate) fn agent_lines(data: &[u8]) {
    converse(LinesTranslator::opening(Value::Null), data);
    let words = String::from_utf8_lossy(data);
    assert!(retry_after(&words).is_none_or(|wait| wait.as_secs() < u64::MAX));
}

/// Lines of any length from a pipe, in pieces: nothing is lost, and no more than asked is kept.
pub(crate) fn pipe_lines(data: &[u8]) {
    let Some((limit, data)) = data.split_first() else {
        return;
    };
    let limit = usize::from(*limit);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let Ok(runtime) = runtime else { return };
    // More than the pipe holds would wait for a reader.
    let data = &data[..data.len().min(32 * 1024)];
    runtime.block_on(async {
        let Ok((to, from)) = tokio::net::unix::pipe::pipe() else {
            return;
        };
        if to.try_write(data).ok() != Some(data.len()) && !data.is_empty() {
            return;
        }
        drop(to);
        let mut reader = LineReader::new(from, limit);
        let mut read = Vec::new();
        while let Ok(Some(line)) = reader.next().await {
            match line {
                Line::Whole(bytes) => {
                    assert!(bytes.len() <= limit || !data.ends_with(b"\n"));
                    assert!(!bytes.contains(&b'\n'));
                    read.extend(bytes);
                    read.push(b'\n');
                }
                Line::Piece(bytes) => read.extend(bytes),
            }
        }
        let same = read.strip_suffix(b"\n").unwrap_or(&read);
        assert!(same == data.strip_suffix(b"\n").unwrap_or(data), "{same:?}");
    });
}

fn launch() -> Launch {
    Launch {
        prompt: "begin".to_owned(),
        cwd: PathBuf::from("/r"),
        model: Some("m".to_owned()),
        mcp_servers: vec![McpServer {
            name: OWN_SERVER.to_owned(),
            ..McpServer::default()
        }],
        ..Launch::default()
    }
}

/// Plays `data` to a translator: a line that begins with `!` is an order of the host, each other
/// one is what the program printed.
fn converse(mut translator: impl Translator, data: &[u8]) {
    let mut heard = Heard::default();
    heard.take(translator.begin(), 0);
    for line in data.split(|byte| *byte == b'\n') {
        if let Some(order) = line.strip_prefix(b"!") {
            if let Some(order) = heard.order(&String::from_utf8_lossy(order)) {
                heard.take(translator.told(order), line.len());
            }
            continue;
        }
        let object: Option<Map<String, Value>> = serde_json::from_slice(line).ok();
        if let Some(steps) = object.and_then(|object| translator.heard(&object)) {
            heard.take(steps, line.len());
        }
    }
    heard.take(translator.told(Order::Finish), 0);
    heard.take(translator.told(Order::Stop), 0);
}

/// The host's state of a conversation.
#[derive(Default)]
struct Heard {
    usage: Usage,
    /// Questions that wait for an answer.
    questions: Vec<String>,
    messages: u64,
}

impl Heard {
    fn take(&mut self, steps: Steps, length: usize) {
        assert!(steps.len() <= MOST_STEPS + length, "{} steps", steps.len());
        for step in steps {
            match step {
                Step::Event(event) => self.event(event),
                Step::Line(line) => assert!(!line.to_string().contains('\n')),
                Step::Close => {}
            }
        }
    }

    fn event(&mut self, event: Event) {
        match &event {
            Event::Usage(usage) => {
                let costs = [usage.cost_usd, usage.saved_usd];
                assert!(costs.iter().all(|cost| *cost >= 0.0), "{usage:?}");
                self.usage.add(usage);
                let written = serde_json::to_value(self.usage).unwrap_or_default();
                let read = serde_json::from_value::<Usage>(written).ok();
                assert_eq!(read, Some(self.usage), "cannot be written down");
            }
            Event::Permission { id, .. } => self.questions.push(id.clone()),
            _ => {}
        }
        let mut redactor = EventRedactor::new(&Arc::new(Secrets::new([b"s3cret-value"])));
        let before = format!("{event:?}").len();
        let after = format!("{:?}", redactor.redact(event)).len();
        assert!(after <= 16 * before + 256, "{before} became {after}");
    }

    /// The order that is written as `words`.
    fn order(&mut self, words: &str) -> Option<Order> {
        let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
        let allow = verb == "allow";
        self.messages += 1;
        Some(match verb {
            "send" | "now" => Order::Send(Message {
                id: Uuid::from_u64_pair(0, self.messages),
                text: rest.to_owned(),
                now: verb == "now",
            }),
            "interrupt" => Order::Interrupt,
            "allow" | "deny" => Order::Answer {
                id: self.questions.pop().unwrap_or_else(|| rest.to_owned()),
                allow,
                reason: (!allow).then(|| rest.to_owned()),
            },
            "mode" => Order::SetMode {
                mode: rest.to_owned(),
            },
            "finish" => Order::Finish,
            "stop" => Order::Stop,
            _ => return None,
        })
    }
}
