//! Gemini's generateContent.

use serde_json::{Value, json};

use super::conversation::{Conversation, Role};
use super::stream::{Emit, pieces, trouble};
use super::wire::{Answer, fresh};

pub(super) fn read(body: &Value) -> Conversation {
    let mut conversation = Conversation::default();
    let system = text_of(&body["systemInstruction"]);
    if !system.is_empty() {
        conversation.say(Role::System, system);
    }
    for content in body["contents"].as_array().into_iter().flatten() {
        let said = text_of(content);
        if content["role"] == "model" {
            conversation.say(Role::Assistant, said);
            continue;
        }
        for part in content["parts"].as_array().into_iter().flatten() {
            let response = &part["functionResponse"]["response"];
            if let Some(output) = response["output"].as_str() {
                conversation.say(Role::Tool, output);
            } else if !response.is_null() {
                conversation.say(Role::Tool, response.to_string());
            }
        }
        if !said.is_empty() {
            conversation.say(Role::User, said);
        }
    }
    conversation
}

/// The text in the parts of a content, without thoughts.
fn text_of(content: &Value) -> String {
    let parts = content["parts"].as_array().into_iter().flatten();
    let said = parts.filter(|part| part["thought"] != true);
    let texts: Vec<&str> = said.filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

fn chunk(answer: &Answer<'_>, parts: &[Value], stop: Option<&str>) -> Value {
    let (input, output) = answer.usage();
    let cached = answer.cached().read;
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(stop) = stop {
        candidate["finishReason"] = stop.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": input,
            "candidatesTokenCount": output,
            "totalTokenCount": input + output,
            "cachedContentTokenCount": cached,
        },
        "modelVersion": "fake",
        "responseId": fresh(""),
    })
}

fn thoughts(answer: &Answer<'_>) -> Option<Value> {
    let thinking = answer.step.thinking.as_ref()?;
    Some(json!({ "text": thinking, "thought": true }))
}

fn calls(answer: &Answer<'_>) -> Vec<Value> {
    let call = |call: super::step::Call| json!({ "functionCall": { "name": call.tool, "args": call.input, "id": fresh("call-") } });
    answer.step.calls().into_iter().map(call).collect()
}

fn stop<'a>(answer: &Answer<'a>) -> &'a str {
    answer.step.stop.as_deref().unwrap_or("STOP")
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let mut parts: Vec<Value> = thoughts(answer).into_iter().collect();
    if let Some(text) = &answer.step.text {
        parts.push(json!({ "text": text }));
    }
    parts.extend(calls(answer));
    chunk(answer, &parts, Some(stop(answer)))
}

pub(super) fn stream(answer: &Answer<'_>) -> Vec<Emit> {
    let data = |parts: &[Value], stop| Emit::data(&chunk(answer, parts, stop));
    let mut trouble = trouble(answer.step, |kind| {
        Emit::data(&json!({ "error": { "code": 500, "message": "as scripted", "status": kind } }))
    });
    // The program that speaks this cannot read comments, so nothing is sent while it waits.
    let mut out = vec![Emit::Hang { ping: None }];
    if let Some(thoughts) = thoughts(answer) {
        out.push(data(&[thoughts], None));
    }
    for piece in pieces(answer.step) {
        out.push(data(&[json!({ "text": piece })], None));
        out.append(&mut trouble);
        out.push(Emit::Pause);
    }
    out.append(&mut trouble);
    let mut last = calls(answer);
    if last.is_empty() {
        last.push(json!({ "text": "" }));
    }
    out.push(data(&last, Some(stop(answer))));
    out
}
