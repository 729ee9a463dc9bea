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
use crate::protocol::Protocol;
use crate::xml::{escape_attribute, escape_text};

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
