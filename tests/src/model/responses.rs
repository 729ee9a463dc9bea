//! OpenAI's Responses.

use serde_json::{Value, json};

use super::chat::text_of;
use super::conversation::{Conversation, Role};
use super::step::Call;
use super::stream::{Emit, pieces, trouble};
use super::wire::{Answer, fresh};

pub(super) fn read(body: &Value) -> Conversation {
    let mut conversation = Conversation::default();
    if let Some(text) = body["instructions"].as_str() {
        conversation.say(Role::System, text);
    }
    if let Some(text) = body["input"].as_str() {
        conversation.say(Role::User, text);
    }
    // One answer of the model is several items here.
    let mut in_answer = false;
    for item in body["input"].as_array().into_iter().flatten() {
        let kind = item["type"].as_str().unwrap_or("message");
        let role = match (kind, item["role"].as_str()) {
            ("message", Some("user")) => Role::User,
            ("message", Some("assistant")) => Role::Assistant,
            ("message", _) => Role::System,
            _ if kind.ends_with("_output") => Role::Tool,
            _ => Role::Assistant,
        };
        let text = match (&item["content"], &item["output"]) {
            (Value::Null, Value::String(text)) => text.clone(),
            (Value::Null, Value::Null) => String::new(),
            (Value::Null, output @ Value::Array(_)) => text_of(output),
            (Value::Null, output) => output.to_string(),
            (content, _) => text_of(content),
        };
        match conversation.turns.last_mut() {
            Some(last) if in_answer && role == Role::Assistant => last.text.push_str(&text),
            _ => conversation.say(role, text),
        }
        in_answer = role == Role::Assistant;
    }
    conversation
}

/// The names of the tools in one entry of `tools`; `space::name` for one in a namespace.
pub(super) fn tool_names(tool: &Value) -> Vec<String> {
    let name = tool["name"].as_str().or(tool["type"].as_str());
    let name = name.unwrap_or_default();
    if tool["type"] != "namespace" {
        return vec![name.to_owned()];
    }
    let inner = tool["tools"].as_array().into_iter().flatten();
    let inner = inner.filter_map(|tool| tool["name"].as_str());
    inner.map(|inner| format!("{name}::{inner}")).collect()
}

/// A call in the form the client expects: some tools take plain text, some live in a namespace.
fn call_item(call: &Call, body: &Value) -> Value {
    let tools = || body["tools"].as_array().into_iter().flatten();
    let is_custom = |tool: &&Value| tool["type"] == "custom" && tool["name"] == *call.tool;
    if tools().any(|tool| is_custom(&tool)) {
        let input = call.input.as_str().or(call.input["input"].as_str());
        return json!({
            "type": "custom_tool_call",
            "id": fresh("ctc_"),
            "call_id": fresh("call_"),
            "name": call.tool,
            "input": input.unwrap_or_default(),
            "status": "completed",
        });
    }
    let mut item = json!({
        "type": "function_call",
        "id": fresh("fc_"),
        "call_id": fresh("call_"),
        "name": call.tool,
        "arguments": call.written(),
        "status": "completed",
    });
    let spaced = tools().flat_map(tool_names).find(|name| {
        let short = name.split_once("::").map(|(_, short)| short);
        *name == call.tool || short == Some(call.tool.as_str())
    });
    let spaced = spaced.unwrap_or_else(|| call.tool.clone());
    if let Some((space, name)) = spaced.split_once("::") {
        item["namespace"] = space.into();
        item["name"] = name.into();
    }
    item
}

fn items(answer: &Answer<'_>) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(thinking) = &answer.step.thinking {
        items.push(json!({
            "type": "reasoning",
            "id": fresh("rs_"),
            "summary": [{ "type": "summary_text", "text": thinking }],
        }));
    }
    if let Some(text) = answer.step.text.as_ref().filter(|text| !text.is_empty()) {
        items.push(json!({
            "type": "message",
            "id": fresh("msg_"),
            "status": "completed",
            "role": "assistant",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }));
    }
    let calls = answer.step.calls();
    items.extend(calls.iter().map(|call| call_item(call, answer.body)));
    items
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let (input, output) = answer.usage();
    let cached = answer.cached().read;
    let (status, incomplete) = match &answer.step.stop {
        Some(reason) => ("incomplete", json!({ "reason": reason })),
        None => ("completed", Value::Null),
    };
    json!({
        "id": fresh("resp_"),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": answer.model(),
        "output": items(answer),
        "usage": {
            "input_tokens": input,
            "input_tokens_details": { "cached_tokens": cached },
            "output_tokens": output,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input + output,
        },
        "error": null,
        "incomplete_details": incomplete,
        "instructions": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "temperature": 1,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1,
    })
}

/// Events with their numbers.
#[derive(Debug, Default)]
struct Events {
    out: Vec<Emit>,
    number: u64,
}

impl Events {
    fn event(&mut self, name: &'static str, mut data: Value) {
        data["type"] = name.into();
        data["sequence_number"] = self.number.into();
        self.number += 1;
        self.out.push(Emit::named(name, &data));
    }

    /// One item, from its beginning to its end; `trouble` comes after its first piece.
    fn item(&mut self, at: usize, item: &Value, texts: &[&str], trouble: &mut Vec<Emit>) {
        let id = &item["id"];
        let place = |mut data: Value| {
            data["item_id"] = id.clone();
            data["output_index"] = at.into();
            data
        };
        let mut opening = item.clone();
        if !opening["status"].is_null() {
            opening["status"] = "in_progress".into();
        }
        let added = "response.output_item.added";
        match item["type"].as_str() {
            Some("message") => {
                let empty = json!({ "type": "output_text", "text": "", "annotations": [] });
                let part = |part: &Value| place(json!({ "content_index": 0, "part": part }));
                opening["content"] = json!([]);
                self.event(added, json!({ "output_index": at, "item": opening }));
                self.event("response.content_part.added", part(&empty));
                for text in texts {
                    let delta = place(json!({ "content_index": 0, "delta": text }));
                    self.event("response.output_text.delta", delta);
                    self.out.append(trouble);
                    self.out.push(Emit::Pause);
                }
                let text = &item["content"][0]["text"];
                let done = place(json!({ "content_index": 0, "text": text }));
                self.event("response.output_text.done", done);
                self.event("response.content_part.done", part(&item["content"][0]));
            }
            Some("custom_tool_call") => {
                opening["input"] = "".into();
                self.event(added, json!({ "output_index": at, "item": opening }));
                let input = &item["input"];
                let delta = place(json!({ "delta": input }));
                self.event("response.custom_tool_call_input.delta", delta);
                let done = place(json!({ "input": input }));
                self.event("response.custom_tool_call_input.done", done);
            }
            Some("function_call") => {
                opening["arguments"] = "".into();
                self.event(added, json!({ "output_index": at, "item": opening }));
                let arguments = &item["arguments"];
                let delta = place(json!({ "delta": arguments }));
                self.event("response.function_call_arguments.delta", delta);
                let done = place(json!({ "arguments": arguments }));
                self.event("response.function_call_arguments.done", done);
            }
            _ => self.event(added, json!({ "output_index": at, "item": opening })),
        }
        self.out.append(trouble);
        let done = json!({ "output_index": at, "item": item });
        self.event("response.output_item.done", done);
    }
}

pub(super) fn stream(answer: &Answer<'_>) -> Vec<Emit> {
    let response = whole(answer);
    let mut begun = response.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut trouble = trouble(answer.step, |kind| {
        let mut failed = begun.clone();
        failed["status"] = "failed".into();
        failed["error"] = json!({ "code": kind, "message": "as scripted" });
        let name = "response.failed";
        Emit::named(name, &json!({ "type": name, "response": failed }))
    });
    let mut events = Events::default();
    events.event("response.created", json!({ "response": begun }));
    events.event("response.in_progress", json!({ "response": begun }));
    events.out.push(Emit::Hang {
        ping: Some(": ping\n\n"),
    });
    let texts = pieces(answer.step);
    for (at, item) in response["output"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        events.item(at, item, &texts, &mut trouble);
    }
    events.out.append(&mut trouble);
    let end = if answer.step.stop.is_some() {
        "response.incomplete"
    } else {
        "response.completed"
    };
    events.event(end, json!({ "response": response }));
    events.out
}
