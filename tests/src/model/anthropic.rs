//! Anthropic's Messages.

use serde_json::{Value, json};

use super::conversation::{Conversation, Role};
use super::stream::{Emit, pieces, trouble};
use super::wire::{Answer, fresh};

pub(super) fn read(body: &Value) -> Conversation {
    let mut conversation = Conversation::default();
    match &body["system"] {
        Value::Null => {}
        system => conversation.say(Role::System, text_of(system)),
    }
    for message in body["messages"].as_array().into_iter().flatten() {
        let content = &message["content"];
        if message["role"] == "assistant" {
            conversation.say(Role::Assistant, text_of(content));
            continue;
        }
        let role = if message["role"] == "system" {
            Role::System
        } else {
            Role::User
        };
        for block in content.as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                conversation.say(Role::Tool, text_of(&block["content"]));
            }
        }
        let said = text_of(content);
        if !said.is_empty() {
            conversation.say(role, said);
        }
    }
    conversation
}

/// The text blocks of a content, one per line.
fn text_of(content: &Value) -> String {
    if let Value::String(text) = content {
        return text.clone();
    }
    let blocks = content.as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// The answer's blocks.
fn blocks(answer: &Answer<'_>) -> Vec<Value> {
    let step = answer.step;
    let mut blocks = Vec::new();
    if let Some(thinking) = &step.thinking {
        blocks.push(json!({
            "type": "thinking", "thinking": thinking, "signature": "ZmFrZQ==",
        }));
    }
    if let Some(text) = step.text.as_ref().filter(|text| !text.is_empty()) {
        blocks.push(json!({ "type": "text", "text": text }));
    }
    for call in step.calls() {
        let mut block = json!({
            "type": "tool_use", "id": fresh("toolu_"), "name": call.tool, "input": call.input,
        });
        if let Some(raw) = call.raw {
            block["raw"] = raw.into();
        }
        blocks.push(block);
    }
    blocks
}

fn usage(answer: &Answer<'_>) -> Value {
    let (input, output) = answer.usage();
    let cached = answer.cached();
    // The usage of a script has the meaning of the protocol: without tokens of the cache.
    let input = match answer.step.usage {
        Some(_) => input,
        None => input.saturating_sub(cached.read + cached.write),
    };
    json!({
        "input_tokens": input,
        "cache_creation_input_tokens": cached.write,
        "cache_read_input_tokens": cached.read,
        "output_tokens": output,
        "service_tier": "standard",
    })
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let blocks = blocks(answer);
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let stop = match &answer.step.stop {
        Some(stop) => stop,
        None if calls => "tool_use",
        None => "end_turn",
    };
    json!({
        "id": fresh("msg_"),
        "type": "message",
        "role": "assistant",
        "model": answer.model(),
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": usage(answer),
    })
}

/// An event with its name also in its data, as in all of them.
fn event(name: &'static str, mut data: Value) -> Emit {
    data["type"] = name.into();
    Emit::named(name, &data)
}

/// The form of a block before it has content, and the pieces of its content.
fn open(block: &Value, answer: &Answer<'_>) -> (Value, Vec<Value>) {
    let mut opening = block.clone();
    let deltas = match block["type"].as_str() {
        Some("text") => {
            opening["text"] = "".into();
            let text = |piece| json!({ "type": "text_delta", "text": piece });
            pieces(answer.step).into_iter().map(text).collect()
        }
        Some("thinking") => {
            opening["thinking"] = "".into();
            opening["signature"] = "".into();
            vec![
                json!({ "type": "thinking_delta", "thinking": block["thinking"] }),
                json!({ "type": "signature_delta", "signature": block["signature"] }),
            ]
        }
        _ => {
            opening["input"] = json!({});
            let raw = block["raw"].as_str().map(str::to_owned);
            let input = raw.unwrap_or_else(|| block["input"].to_string());
            if let Some(fields) = opening.as_object_mut() {
                fields.remove("raw");
            }
            vec![json!({ "type": "input_json_delta", "partial_json": input })]
        }
    };
    (opening, deltas)
}

pub(super) fn stream(answer: &Answer<'_>) -> Vec<Emit> {
    let message = whole(answer);
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = 1.into();
    let mut out = vec![
        event("message_start", json!({ "message": start })),
        event("ping", json!({})),
        Emit::Hang {
            ping: Some("event: ping\ndata: {\"type\":\"ping\"}\n\n"),
        },
    ];
    let mut trouble = trouble(answer.step, |kind| {
        let error = json!({ "type": kind, "message": "as scripted" });
        event("error", json!({ "error": error }))
    });
    for (index, block) in message["content"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let (opening, deltas) = open(block, answer);
        let content = json!({ "index": index, "content_block": opening });
        out.push(event("content_block_start", content));
        for delta in deltas {
            let delta = json!({ "index": index, "delta": delta });
            out.push(event("content_block_delta", delta));
            out.append(&mut trouble);
            out.push(Emit::Pause);
        }
        out.push(event("content_block_stop", json!({ "index": index })));
    }
    out.append(&mut trouble);
    let delta = json!({ "stop_reason": message["stop_reason"], "stop_sequence": null });
    let usage = json!({ "output_tokens": message["usage"]["output_tokens"] });
    out.push(event(
        "message_delta",
        json!({ "delta": delta, "usage": usage }),
    ));
    out.push(event("message_stop", json!({})));
    out
}
