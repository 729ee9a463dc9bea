//! OpenAI's Chat Completions.

use serde_json::{Value, json};

use super::conversation::{Conversation, Role};
use super::stream::{Emit, pieces, trouble};
use super::wire::{Answer, fresh};

pub(super) fn read(body: &Value) -> Conversation {
    let mut conversation = Conversation::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = match message["role"].as_str() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool") => Role::Tool,
            _ => Role::System,
        };
        conversation.say(role, text_of(&message["content"]));
    }
    conversation
}

/// The texts of a content, one per line.
pub(super) fn text_of(content: &Value) -> String {
    if let Value::String(text) = content {
        return text.clone();
    }
    let parts = content.as_array().into_iter().flatten();
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

fn calls(answer: &Answer<'_>) -> Vec<Value> {
    let calls = answer.step.calls().into_iter().map(|call| {
        let function = json!({ "name": call.tool, "arguments": call.written() });
        json!({ "id": fresh("call_"), "type": "function", "function": function })
    });
    calls.collect()
}

fn stop(answer: &Answer<'_>) -> Value {
    match &answer.step.stop {
        Some(stop) => stop.as_str().into(),
        None if answer.step.calls().is_empty() => "stop".into(),
        None => "tool_calls".into(),
    }
}

fn usage(answer: &Answer<'_>) -> Value {
    let (input, output) = answer.usage();
    let cached = answer.cached().read;
    json!({
        "prompt_tokens": input,
        "completion_tokens": output,
        "total_tokens": input + output,
        "prompt_tokens_details": { "cached_tokens": cached },
    })
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let mut message = json!({ "role": "assistant", "content": answer.step.text });
    let calls = calls(answer);
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": fresh("chatcmpl-"),
        "object": "chat.completion",
        "created": 0,
        "model": answer.model(),
        "choices": [{ "index": 0, "message": message, "finish_reason": stop(answer) }],
        "usage": usage(answer),
    })
}

pub(super) fn stream(answer: &Answer<'_>) -> Vec<Emit> {
    let id = fresh("chatcmpl-");
    let chunk = |choices: Value| {
        json!({
            "id": id,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": answer.model(),
            "choices": choices,
        })
    };
    let delta = |delta: Value, stop: Value| {
        Emit::data(&chunk(json!([
            { "index": 0, "delta": delta, "finish_reason": stop },
        ])))
    };
    let mut out = vec![
        delta(json!({ "role": "assistant", "content": "" }), Value::Null),
        Emit::Hang {
            ping: Some(": ping\n\n"),
        },
    ];
    let mut trouble = trouble(answer.step, |kind| {
        Emit::data(&json!({ "error": { "type": kind, "code": kind, "message": "as scripted" } }))
    });
    if let Some(thinking) = &answer.step.thinking {
        out.push(delta(json!({ "reasoning_content": thinking }), Value::Null));
    }
    for piece in pieces(answer.step) {
        out.push(delta(json!({ "content": piece }), Value::Null));
        out.append(&mut trouble);
        out.push(Emit::Pause);
    }
    for (index, mut call) in calls(answer).into_iter().enumerate() {
        call["index"] = index.into();
        out.push(delta(json!({ "tool_calls": [call] }), Value::Null));
        out.append(&mut trouble);
    }
    out.append(&mut trouble);
    out.push(delta(json!({}), stop(answer)));
    let mut last = chunk(json!([]));
    last["usage"] = usage(answer);
    out.push(Emit::data(&last));
    out.push(Emit::Event {
        name: None,
        data: "[DONE]".into(),
    });
    out
}
