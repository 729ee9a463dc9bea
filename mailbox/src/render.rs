//! Messages as a model sees them: one block of text for a whole batch.
//!
//! ```text
//! <teammate-message teammate_id="bob" color="blue" summary="Done">
//! The words, as they were written.
//! </teammate-message>
//! ```
//!
//! A message between programs is the same with JSON for words, its kind as `type`; the end of a run
//! is a `<task-notification>` of its own. A message that may have been seen before has
//! `redelivered="true"`.

use serde_json::{Map, Value};

use crate::message::{Body, Message};
use crate::protocol::{Protocol, Question};
use crate::request::Request;
use crate::xml::{write_attribute, write_words};

/// Number of characters of a request's id that are shown.
const SHORT: usize = 8;

pub(crate) const OPEN: &str = "<teammate-message";
pub(crate) const CLOSE: &str = "\n</teammate-message>";

/// Renders a batch: by priority, oldest first. `color` knows the colours of senders.
pub fn render<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    color: impl Fn(&str) -> Option<String>,
) -> String {
    let mut messages: Vec<&Message> = messages.into_iter().collect();
    messages.sort_by_key(|message| (message.priority, message.seq));
    let blocks: Vec<String> = messages
        .into_iter()
        .map(|message| render_one(message, color(&message.from).as_deref()))
        .collect();
    blocks.join("\n")
}

/// Renders one message in as many parts as it takes for none to be much longer than `limit`
/// characters, for readers that cut what is longer. Each part names the author of its words, and
/// its number and the number of all parts.
pub fn render_parts(message: &Message, color: Option<&str>, limit: usize) -> Vec<String> {
    let whole = render_one(message, color);
    if whole.chars().count() <= limit {
        return vec![whole];
    }
    let words = words_of(message);
    let letters: Vec<char> = words.chars().collect();
    let chunks = letters.chunks(limit.max(1));
    let of = chunks.len();
    let part = |(n, chunk): (usize, &[char])| {
        let part = format!("{} of {of}", n + 1);
        enclose(message, color, Some(&part), &String::from_iter(chunk))
    };
    chunks.enumerate().map(part).collect()
}

fn render_one(message: &Message, color: Option<&str>) -> String {
    match &message.body {
        Body::Protocol(Protocol::TaskNotification(notification)) => notification.to_xml(),
        _ => enclose(message, color, None, &words_of(message)),
    }
}

/// The content of a message, escaped so that a model cannot take it for anything else.
fn words_of(message: &Message) -> String {
    let mut words = String::new();
    match (&message.body, message.text()) {
        (Body::Protocol(Protocol::TaskNotification(notification)), _) => {
            return notification.to_xml();
        }
        (_, Some(text)) => write_words(&mut words, text),
        (_, None) => write_words(&mut words, &typed(message).to_string()),
    }
    words
}

/// Words with their sender around them.
fn enclose(message: &Message, color: Option<&str>, part: Option<&str>, words: &str) -> String {
    let mut out = String::from(OPEN);
    let redelivered = message.redelivered.then_some("true");
    let attributes = [
        ("teammate_id", Some(message.from.as_str())),
        ("color", color),
        ("summary", message.summary.as_deref()),
        ("redelivered", redelivered),
        ("part", part),
    ];
    for (name, value) in attributes {
        if let Some(value) = value {
            out.push_str(&format!(" {name}=\""));
            write_attribute(&mut out, value);
            out.push('"');
        }
    }
    out.push_str(">\n");
    out.push_str(words);
    out.push_str(CLOSE);
    out
}

/// The body with its kind in front, as other tools write such messages.
fn typed(message: &Message) -> Value {
    let mut map = Map::new();
    map.insert("type".into(), message.body.kind().into());
    match message.body_json() {
        Value::Object(fields) => map.extend(fields),
        Value::Null => {}
        other => {
            map.insert("body".into(), other);
        }
    }
    Value::Object(map)
}

/// The short form of a request's id that identifies it. That is its end: the beginning is the time,
/// and all requests of one minute begin alike.
pub fn short_id(request: &Request) -> &str {
    let id = &request.id;
    let start = id.len().saturating_sub(SHORT);
    id.get(start..).unwrap_or(id)
}

/// The question, in one line.
pub fn in_short(question: &Question) -> String {
    match question {
        Question::Shutdown(shutdown) => match &shutdown.reason {
            Some(reason) => format!("stop: {reason}"),
            None => "stop".into(),
        },
        Question::Plan(plan) => {
            let first = plan.plan.lines().next().unwrap_or_default();
            let allowed = plan.allowed_prompts.iter();
            let allowed: Vec<&str> = allowed.map(|one| one.prompt.as_str()).collect();
            match allowed.is_empty() {
                true => format!("approve the plan: {first}"),
                false => format!("approve the plan and {}: {first}", allowed.join(", ")),
            }
        }
        Question::Permission(permission) => {
            format!("use {}: {}", permission.tool_name, permission.description)
        }
        Question::Mode(mode) => format!("change to mode {}", mode.mode),
    }
}
