//! OpenAI's chat completions, as OpenAI and most other services speak them.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::error::{Complaint, in_stream};
use super::wire::{
    Encoded, Fixed, effort_word, from_model, input, not_understood, open_list, texts,
};
use super::{Answer, Block, Message, ModelError, Provider, Stop, Tokens};

pub(super) fn head(fixed: &Fixed<'_>) -> Vec<u8> {
    let provider = fixed.provider;
    let mut fields = Map::new();
    fields.insert("model".into(), json!(provider.model));
    fields.insert("stream".into(), json!(true));
    fields.insert("stream_options".into(), json!({ "include_usage": true }));
    if let Some(most) = provider.max_output {
        // OpenAI's newer models refuse the old word; many others know no other.
        let own = provider.base_url.contains("//api.openai.com");
        let word = if own {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        fields.insert(word.into(), json!(most));
    }
    if let Some(effort) = fixed.effort {
        fields.insert("reasoning_effort".into(), json!(effort_word(effort)));
    }
    let tools = fixed.tools.iter().map(|tool| {
        let function = json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        });
        json!({ "type": "function", "function": function })
    });
    let tools: Vec<Value> = tools.collect();
    if !tools.is_empty() {
        fields.insert("tools".into(), Value::Array(tools));
    }
    let system = json!({ "role": "system", "content": fixed.system });
    let first = (!fixed.system.is_empty()).then_some(&system);
    open_list(fields, "messages", first)
}

pub(super) fn encode(message: &Message) -> Encoded {
    if from_model(message) {
        let calls = message.blocks.iter().filter_map(|block| match block {
            Block::ToolUse { id, name, input } => {
                let function = json!({ "name": name, "arguments": input.to_string() });
                Some(json!({ "id": id, "type": "function", "function": function }))
            }
            _ => None,
        });
        let calls: Vec<Value> = calls.collect();
        let text = texts(message).join("\n");
        let mut said = json!({ "role": "assistant", "content": text });
        if !calls.is_empty() {
            if text.is_empty() {
                said["content"] = Value::Null;
            }
            said["tool_calls"] = Value::Array(calls);
        }
        return Encoded::new(&[said]);
    }
    let elements = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult { id, text, is_error } => {
            let text = match is_error {
                true => format!("Error: {text}"),
                false => text.clone(),
            };
            Some(json!({ "role": "tool", "tool_call_id": id, "content": text }))
        }
        Block::Text { text } if !text.trim().is_empty() => {
            Some(json!({ "role": "user", "content": text }))
        }
        _ => None,
    });
    Encoded::new(&elements.collect::<Vec<_>>())
}

/// A call on its way.
#[derive(Debug, Default)]
struct Piece {
    index: u64,
    id: String,
    name: String,
    input: String,
}

/// Reads an answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    text: String,
    refusal: String,
    calls: Vec<Piece>,
    tokens: Tokens,
    stop: Option<String>,
    ended: bool,
}

impl Reader {
    pub(super) fn event(&mut self, data: &[u8], provider: &Provider) -> Result<bool, ModelError> {
        if data.trim_ascii() == b"[DONE]" {
            self.ended = true;
            return Ok(true);
        }
        let json: Value = serde_json::from_slice(data).map_err(|_| not_understood(provider))?;
        if !json["error"].is_null() {
            return Err(in_stream(&Complaint::of(&json), provider));
        }
        self.usage(&json["usage"]);
        let choice = &json["choices"][0];
        let delta = match &choice["delta"] {
            Value::Null => &choice["message"],
            delta => delta,
        };
        self.text
            .push_str(delta["content"].as_str().unwrap_or_default());
        self.refusal
            .push_str(delta["refusal"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
        }
        if let Some(stop) = choice["finish_reason"].as_str() {
            self.stop = Some(stop.to_owned());
        }
        Ok(false)
    }

    fn usage(&mut self, usage: &Value) {
        if let Some(all) = usage["prompt_tokens"].as_u64() {
            let cached = &usage["prompt_tokens_details"]["cached_tokens"];
            self.tokens.cache_read = cached.as_u64().unwrap_or_default().min(all);
            self.tokens.input = all - self.tokens.cache_read;
        }
        if let Some(written) = usage["completion_tokens"].as_u64() {
            self.tokens.output = written;
        }
    }

    fn call(&mut self, call: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let id = text(&call["id"]);
        let function = &call["function"];
        let name = text(&function["name"]);
        let last = self.calls.last().map_or(0, |call| call.index);
        let index = call["index"].as_u64();
        let at = index.unwrap_or(last);
        // Some number no call, or all of them 0: then an id or a name begins a new one.
        let known = self.calls.iter().rposition(|known| {
            known.index == at && (id.is_empty() || known.id == id || known.id.is_empty())
        });
        let begins = index.is_none() && !name.is_empty();
        let known = known.filter(|_| !begins);
        let piece = match known {
            Some(known) => &mut self.calls[known],
            None => {
                let index = if begins && !self.calls.is_empty() {
                    last + 1
                } else {
                    at
                };
                self.calls.push(Piece {
                    index,
                    ..Piece::default()
                });
                let newest = self.calls.len() - 1;
                &mut self.calls[newest]
            }
        };
        if !id.is_empty() {
            piece.id = id;
        }
        if piece.name.is_empty() {
            piece.name = name;
        }
        match &function["arguments"] {
            Value::String(more) => piece.input.push_str(more),
            whole @ Value::Object(_) => piece.input = whole.to_string(),
            _ => {}
        }
    }

    pub(super) fn answer(self) -> Option<Answer> {
        if self.stop.is_none() && !self.ended {
            return None;
        }
        let mut malformed = Vec::new();
        let mut blocks = Vec::new();
        if !self.text.is_empty() {
            blocks.push(Block::Text { text: self.text });
        }
        for piece in self.calls {
            let known = blocks
                .iter()
                .any(|block| matches!(block, Block::ToolUse { id, .. } if *id == piece.id));
            let id = match piece.id.is_empty() || known {
                true => format!("call_{}", Uuid::new_v4().simple()),
                false => piece.id,
            };
            let input = input(&piece.input, &id, &mut malformed);
            let name = piece.name;
            blocks.push(Block::ToolUse { id, name, input });
        }
        let calls = blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse { .. }));
        let stop = match self.stop.as_deref().unwrap_or_default() {
            "length" => Stop::TooLong,
            "content_filter" => Stop::Refused("the service's filter ended the answer".to_owned()),
            _ if !self.refusal.is_empty() && !calls => Stop::Refused(self.refusal),
            _ if calls => Stop::Tools,
            _ => Stop::End,
        };
        Some(Answer {
            blocks,
            stop,
            tokens: self.tokens,
            malformed,
        })
    }
}
