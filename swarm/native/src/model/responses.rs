//! OpenAI's responses.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::error::{Complaint, in_stream};
use super::wire::{Encoded, Fixed, effort_word, from_model, input, not_understood, open_list};
use super::{Answer, Block, Message, ModelError, Provider, Stop, Tokens, Wire};

pub(super) fn head(fixed: &Fixed<'_>) -> Vec<u8> {
    let provider = fixed.provider;
    let mut fields = Map::new();
    fields.insert("model".into(), json!(provider.model));
    fields.insert("stream".into(), json!(true));
    // The conversation is ours; the service does not keep it. The model's thoughts travel with it,
    // sealed.
    fields.insert("store".into(), json!(false));
    let include = json!(["reasoning.encrypted_content"]);
    fields.insert("include".into(), include);
    if let Some(most) = provider.max_output {
        fields.insert("max_output_tokens".into(), json!(most));
    }
    if let Some(effort) = fixed.effort {
        let effort = json!({ "effort": effort_word(effort) });
        fields.insert("reasoning".into(), effort);
    }
    if !fixed.system.is_empty() {
        fields.insert("instructions".into(), json!(fixed.system));
    }
    let tools = fixed.tools.iter().map(|tool| {
        json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
            "strict": false,
        })
    });
    let tools: Vec<Value> = tools.collect();
    if !tools.is_empty() {
        fields.insert("tools".into(), Value::Array(tools));
    }
    open_list(fields, "input", None)
}

pub(super) fn encode(message: &Message) -> Encoded {
    let (role, kind) = match from_model(message) {
        true => ("assistant", "output_text"),
        false => ("user", "input_text"),
    };
    let items = message.blocks.iter().filter_map(|block| {
        Some(match block {
            Block::Text { text } if text.trim().is_empty() => return None,
            Block::Text { text } => {
                let content = json!([{ "type": kind, "text": text }]);
                json!({ "type": "message", "role": role, "content": content })
            }
            Block::ToolUse { id, name, input } => json!({
                "type": "function_call",
                "call_id": id,
                "name": name,
                "arguments": input.to_string(),
            }),
            Block::ToolResult { id, text, is_error } => {
                let text = match is_error {
                    true => format!("Error: {text}"),
                    false => text.clone(),
                };
                json!({ "type": "function_call_output", "call_id": id, "output": text })
            }
            Block::Opaque {
                wire: Wire::Responses,
                json,
            } => json.clone(),
            Block::Opaque { .. } => return None,
        })
    });
    Encoded::new(&items.collect::<Vec<_>>())
}

/// Reads an answer. Its items come whole at the end of each, which is all that is needed.
#[derive(Debug, Default)]
pub(super) struct Reader {
    items: Vec<Value>,
    /// The response, when it has ended.
    response: Option<Value>,
}

impl Reader {
    pub(super) fn event(&mut self, data: &[u8], provider: &Provider) -> Result<bool, ModelError> {
        let mut json: Value = serde_json::from_slice(data).map_err(|_| not_understood(provider))?;
        match json["type"].as_str().unwrap_or_default() {
            "response.output_item.done" => self.items.push(json["item"].take()),
            "response.completed" | "response.incomplete" => {
                self.response = Some(json["response"].take());
                return Ok(true);
            }
            "response.failed" => {
                return Err(in_stream(&Complaint::of(&json["response"]), provider));
            }
            "error" => return Err(in_stream(&Complaint::of(&json), provider)),
            _ => {}
        }
        Ok(false)
    }

    pub(super) fn answer(self) -> Option<Answer> {
        let mut response = self.response?;
        let items = match (self.items.is_empty(), response["output"].take()) {
            (true, Value::Array(items)) => items,
            _ => self.items,
        };
        let (mut blocks, mut malformed, mut refusal) = (Vec::new(), Vec::new(), None);
        for item in items {
            match item["type"].as_str() {
                Some("message") => read_message(&item, &mut blocks, &mut refusal),
                Some("function_call") => blocks.push(read_call(&item, &mut malformed)),
                // Only sealed thoughts can be given back to a service that keeps nothing.
                Some("reasoning") if item["encrypted_content"].is_string() => {
                    let wire = Wire::Responses;
                    blocks.push(Block::Opaque { wire, json: item });
                }
                _ => {}
            }
        }
        let calls = blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse { .. }));
        let reason = response["incomplete_details"]["reason"].as_str();
        let stop = match (reason, refusal) {
            (Some("content_filter"), _) => {
                Stop::Refused("the service's filter ended the answer".to_owned())
            }
            (Some(_), _) => Stop::TooLong,
            (None, _) if calls => Stop::Tools,
            (None, Some(words)) => Stop::Refused(words),
            (None, None) => Stop::End,
        };
        Some(Answer {
            blocks,
            stop,
            tokens: tokens(&response["usage"]),
            malformed,
        })
    }
}

fn read_message(item: &Value, blocks: &mut Vec<Block>, refusal: &mut Option<String>) {
    for part in item["content"].as_array().into_iter().flatten() {
        if let Some(words) = part["refusal"].as_str() {
            *refusal = Some(words.to_owned());
        }
        if let Some(text) = part["text"].as_str() {
            blocks.push(Block::text(text));
        }
    }
}

fn read_call(item: &Value, malformed: &mut Vec<(String, String)>) -> Block {
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let id = match text("call_id") {
        id if id.is_empty() => format!("call_{}", Uuid::new_v4().simple()),
        id => id,
    };
    let input = input(&text("arguments"), &id, malformed);
    let name = text("name");
    Block::ToolUse { id, name, input }
}

fn tokens(usage: &Value) -> Tokens {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let all = count(&usage["input_tokens"]);
    let cached = count(&usage["input_tokens_details"]["cached_tokens"]).min(all);
    Tokens {
        input: all - cached,
        cache_read: cached,
        cache_write: 0,
        output: count(&usage["output_tokens"]),
    }
}
