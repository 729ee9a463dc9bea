//! The common parts of all forms of requests and answers.

use serde_json::{Map, Value, json};

use super::sse::Event;
use super::{Answer, Block, Message, ModelError, Provider, Role, Wire, anthropic, chat, responses};
use crate::tools::ToolSpec;

/// All of one answer; no model says more at once.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// The part that is the same in every request of a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed<'a> {
    pub provider: &'a Provider,
    pub system: &'a str,
    pub tools: &'a [ToolSpec],
    pub effort: Option<&'a str>,
}

/// A message as it is sent: elements of a JSON list, with commas between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded {
    bytes: Box<[u8]>,
    /// The point up to which the service shall keep everything in its cache, if it needs a mark for
    /// that.
    mark: Option<usize>,
}

impl Encoded {
    pub(super) fn new(elements: &[Value]) -> Self {
        let texts: Vec<String> = elements.iter().map(Value::to_string).collect();
        Self {
            bytes: texts.join(",").into_bytes().into_boxed_slice(),
            mark: None,
        }
    }

    /// The same, which can be marked before its last `from_end` bytes.
    pub(super) fn markable(mut self, from_end: usize) -> Self {
        self.mark = self.bytes.len().checked_sub(from_end);
        self
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The mark that keeps everything up to here in Anthropic's cache.
pub(super) const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
/// The number of last messages that are marked: one that was sent already, and the newest.
pub(crate) const MARKED: usize = 2;

/// A form of requests and answers, at work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format(pub Wire);

impl Format {
    /// The beginning of every request, up to its messages.
    pub(crate) fn head(self, fixed: &Fixed<'_>) -> Vec<u8> {
        match self.0 {
            Wire::Anthropic => anthropic::head(fixed),
            Wire::Chat => chat::head(fixed),
            Wire::Responses => responses::head(fixed),
        }
    }

    pub(crate) fn encode(self, message: &Message) -> Encoded {
        match self.0 {
            Wire::Anthropic => anthropic::encode(message),
            Wire::Chat => chat::encode(message),
            Wire::Responses => responses::encode(message),
        }
    }

    /// The same; if it is marked, then behind its first `shared` blocks.
    pub(crate) fn encode_shared(self, message: &Message, shared: usize) -> Encoded {
        match self.0 {
            Wire::Anthropic => anthropic::encode_shared(message, shared),
            Wire::Chat | Wire::Responses => self.encode(message),
        }
    }

    /// A whole request; the last `marked` messages that can be are marked.
    pub(crate) fn body<'a>(
        self,
        head: &[u8],
        messages: impl DoubleEndedIterator<Item = &'a Encoded> + Clone,
        marked: usize,
    ) -> Vec<u8> {
        let length: usize = messages.clone().map(|message| message.len() + 64).sum();
        let mut body = Vec::with_capacity(head.len() + length);
        body.extend_from_slice(head);
        let marked: Vec<*const Encoded> = messages
            .clone()
            .rev()
            .filter(|message| message.mark.is_some())
            .take(marked)
            .map(std::ptr::from_ref)
            .collect();
        // The list of a chat begins with the system's message.
        let mut first = body.ends_with(b"[");
        for message in messages {
            if message.len() == 0 {
                continue;
            }
            if !std::mem::take(&mut first) {
                body.push(b',');
            }
            match message.mark {
                Some(at) if marked.contains(&std::ptr::from_ref(message)) => {
                    body.extend_from_slice(&message.bytes[..at]);
                    body.extend_from_slice(MARK);
                    body.extend_from_slice(&message.bytes[at..]);
                }
                _ => body.extend_from_slice(&message.bytes),
            }
        }
        body.extend_from_slice(b"]}");
        body
    }

    /// Reads an answer.
    pub(super) fn reader(self) -> Reader {
        let form = match self.0 {
            Wire::Anthropic => Form::Anthropic(anthropic::Reader::default()),
            Wire::Chat => Form::Chat(chat::Reader::default()),
            Wire::Responses => Form::Responses(responses::Reader::default()),
        };
        Reader { form, length: 0 }
    }
}

/// Reads an answer event by event.
#[derive(Debug)]
pub(super) struct Reader {
    form: Form,
    length: usize,
}

#[derive(Debug)]
enum Form {
    Anthropic(anthropic::Reader),
    Chat(chat::Reader),
    Responses(responses::Reader),
}

impl Reader {
    /// Takes in an event; true when the answer is whole.
    pub(super) fn event(&mut self, event: &Event, provider: &Provider) -> Result<bool, ModelError> {
        self.length = self.length.saturating_add(event.data.len());
        if self.length > MAX_ANSWER {
            return Err(ModelError::Refused {
                words: format!("the answer of {} has no end", provider.name),
            });
        }
        match &mut self.form {
            Form::Anthropic(reader) => reader.event(&event.data, provider),
            Form::Chat(reader) => reader.event(&event.data, provider),
            Form::Responses(reader) => reader.event(&event.data, provider),
        }
    }

    /// The answer; `None` if the stream broke off.
    pub(super) fn answer(self) -> Option<Answer> {
        match self.form {
            Form::Anthropic(reader) => reader.answer(),
            Form::Chat(reader) => reader.answer(),
            Form::Responses(reader) => reader.answer(),
        }
    }
}

/// The error for a part of a stream that cannot be understood.
pub(super) fn not_understood(provider: &Provider) -> ModelError {
    ModelError::passing(format!(
        "{} answered with something that is not an event of its protocol",
        provider.name
    ))
}

/// The input of a call, from the text the model wrote.
pub(super) fn input(text: &str, id: &str, malformed: &mut Vec<(String, String)>) -> Value {
    let text = text.trim();
    if text.is_empty() {
        return json!({});
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => Value::Object(map),
        Ok(_) => {
            let why = "it is JSON, but not an object".to_owned();
            malformed.push((id.to_owned(), why));
            json!({})
        }
        Err(error) => {
            malformed.push((id.to_owned(), format!("it is not JSON: {error}")));
            json!({})
        }
    }
}

/// All text of a message's blocks.
pub(super) fn texts(message: &Message) -> Vec<&str> {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } if !text.trim().is_empty() => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// True if the model says this.
pub(super) fn from_model(message: &Message) -> bool {
    message.role == Role::Assistant
}

/// Writes `fields`, in their order, and leaves the list `open` open as the last of them.
pub(super) fn open_list(fields: Map<String, Value>, open: &str, first: Option<&Value>) -> Vec<u8> {
    let mut text = Value::Object(fields).to_string();
    text.pop();
    if !text.ends_with('{') {
        text.push(',');
    }
    text.push_str(&format!("{}:[", json!(open)));
    if let Some(first) = first {
        text.push_str(&first.to_string());
    }
    text.into_bytes()
}

/// The effort of thinking, as a word.
pub(super) fn effort_word(effort: &str) -> &str {
    match effort.parse::<u64>() {
        Ok(0..=4096) => "low",
        Ok(4097..=16384) => "medium",
        Ok(_) => "high",
        Err(_) => effort,
    }
}
