//! Messages as a model sees them: one block of text for a whole batch.
//!
//! ```text
//! <teammate-message teammate_id="bob" color="blue" summary="Done">
//! The words, escaped.
//! </teammate-message>
//! ```
//!
//! What machines say to each other is the same with JSON for words, its kind as `type`; the
//! end of a run is a `<task-notification>` of its own. A message that may have been seen
//! before has `redelivered="true"`.

use serde_json::{Map, Value};

use crate::message::{Body, Message};
use crate::notification::TaskNotification;
use crate::protocol::Protocol;
use crate::xml::{Reader, escape_attribute, escape_text};

const OPEN: &str = "<teammate-message";
const CLOSE: &str = "\n</teammate-message>";

/// One element of a rendered batch, read back.
#[derive(Debug, Clone, PartialEq)]
pub enum Rendered {
    /// What somebody said.
    Message {
        /// Who said it.
        teammate_id: String,
        /// The sender's colour, if it has one.
        color: Option<String>,
        /// What it says in one line.
        summary: Option<String>,
        /// It may have been seen before.
        redelivered: bool,
        /// The words, or JSON.
        text: String,
    },
    /// The end of a run.
    Notification(Box<TaskNotification>),
}

/// Renders a batch: by priority, oldest first. `color` knows the colours of senders.
pub fn render<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    color: impl Fn(&str) -> Option<String>,
) -> String {
    let mut messages: Vec<&Message> = messages.into_iter().collect();
    messages.sort_by_key(|message| (message.priority, message.seq));
    let blocks: Vec<String> = messages
        .into_iter()
        .map(|message| match &message.body {
            Body::Protocol(Protocol::TaskNotification(notification)) => notification.to_xml(),
            _ => render_message(message, color(&message.from)),
        })
        .collect();
    blocks.join("\n")
}

fn render_message(message: &Message, color: Option<String>) -> String {
    let mut out = String::from(OPEN);
    let mut attribute = |name: &str, value: &str| {
        out.push_str(&format!(" {name}=\""));
        escape_attribute(&mut out, value);
        out.push('"');
    };
    attribute("teammate_id", &message.from);
    if let Some(color) = color {
        attribute("color", &color);
    }
    if let Some(summary) = &message.summary {
        attribute("summary", summary);
    }
    if message.redelivered {
        attribute("redelivered", "true");
    }
    out.push_str(">\n");
    match message.text() {
        Some(text) => escape_text(&mut out, text),
        None => escape_text(&mut out, &typed(message).to_string()),
    }
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

/// Reads back exactly what [`render`] wrote; `None` if it is anything else.
pub fn parse_rendered(text: &str) -> Option<Vec<Rendered>> {
    let mut reader = Reader::new(text);
    let mut blocks = Vec::new();
    while !reader.is_at_end() {
        if !blocks.is_empty() {
            reader.literal("\n")?;
        }
        blocks.push(if reader.starts_with(OPEN) {
            read_message(&mut reader)?
        } else {
            Rendered::Notification(Box::new(TaskNotification::read(&mut reader)?))
        });
    }
    Some(blocks)
}

fn read_message(reader: &mut Reader<'_>) -> Option<Rendered> {
    reader.literal(OPEN)?;
    let teammate_id = reader.attribute("teammate_id")?;
    let color = reader.attribute("color");
    let summary = reader.attribute("summary");
    let redelivered = reader.attribute("redelivered").is_some();
    reader.literal(">\n")?;
    let text = reader.text_until(CLOSE)?;
    Some(Rendered::Message {
        teammate_id,
        color,
        summary,
        redelivered,
        text,
    })
}
