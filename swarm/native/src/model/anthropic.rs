//! Anthropic's Messages.

use serde_json::{Map, Value, json};

use super::error::{Complaint, in_stream};
use super::provider::max_output;
use super::wire::{Encoded, Fixed, from_model, input, not_understood, open_list};
use super::{Answer, Block, Message, ModelError, Provider, Stop, Tokens, Wire};

/// The end of a message after its last block: `}` of the block, `]` of the content, `}`.
const AFTER_LAST_BLOCK: usize = 3;

pub(super) fn head(fixed: &Fixed<'_>) -> Vec<u8> {
    let provider = fixed.provider;
    let mut fields = Map::new();
    fields.insert("model".into(), json!(provider.model));
    fields.insert("max_tokens".into(), json!(max_output(provider)));
    fields.insert("stream".into(), json!(true));
    if let Some(effort) = fixed.effort {
        think(&mut fields, effort, provider);
    }
    let tools = fixed.tools.iter().map(|tool| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.input_schema,
        })
    });
    let tools: Vec<Value> = tools.collect();
    if !tools.is_empty() {
        fields.insert("tools".into(), Value::Array(tools));
    }
    // Tools come before the system's text in what is cached, so that one mark is enough.
    if !fixed.system.is_empty() {
        let cache = json!({ "type": "ephemeral" });
        let system = json!([{ "type": "text", "text": fixed.system, "cache_control": cache }]);
        fields.insert("system".into(), system);
    }
    open_list(fields, "messages", None)
}

/// Older models get the number of tokens to think, newer ones an effort.
fn think(fields: &mut Map<String, Value>, effort: &str, provider: &Provider) {
    const BY_BUDGET: [&str; 6] = ["-3-7", "-4-0", "-4-1", "-4-2025", "sonnet-4-5", "haiku-4-5"];
    if BY_BUDGET.iter().any(|part| provider.model.contains(part)) {
        let wanted: u64 = match effort {
            "low" => 2_048,
            "medium" => 8_192,
            "high" => 24_576,
            number => number.parse().unwrap_or(8_192),
        };
        let most = max_output(provider).saturating_sub(1_024).max(1_024);
        let budget = wanted.clamp(1_024, most);
        let thinking = json!({ "type": "enabled", "budget_tokens": budget });
        fields.insert("thinking".into(), thinking);
    } else {
        fields.insert("thinking".into(), json!({ "type": "adaptive" }));
        let effort = super::wire::effort_word(effort);
        fields.insert("output_config".into(), json!({ "effort": effort }));
    }
}

pub(super) fn encode(message: &Message) -> Encoded {
    let mut blocks: Vec<Value> = message.blocks.iter().filter_map(block).collect();
    if blocks.is_empty() {
        blocks.push(json!({ "type": "text", "text": "(nothing)" }));
    }
    let role = if from_model(message) {
        "assistant"
    } else {
        "user"
    };
    let encoded = Encoded::new(&[json!({ "role": role, "content": blocks })]);
    match from_model(message) {
        true => encoded,
        false => encoded.markable(AFTER_LAST_BLOCK),
    }
}

/// The same, to be marked behind the first `shared` of its blocks.
pub(super) fn encode_shared(message: &Message, shared: usize) -> Encoded {
    let encoded = encode(message);
    let (before, after) = message.blocks.split_at(shared.min(message.blocks.len()));
    if before.iter().all(|one| block(one).is_none()) {
        return encoded;
    }
    let after = after.iter().filter_map(block);
    let after: usize = after.map(|block| block.to_string().len() + 1).sum();
    encoded.markable(AFTER_LAST_BLOCK + after)
}

fn block(block: &Block) -> Option<Value> {
    Some(match block {
        // The service refuses empty texts.
        Block::Text { text } if text.trim().is_empty() => return None,
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::ToolUse { id, name, input } => {
            json!({ "type": "tool_use", "id": id, "name": name, "input": input })
        }
        Block::ToolResult { id, text, is_error } => {
            let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
            if *is_error {
                result["is_error"] = true.into();
            }
            result
        }
        Block::Opaque {
            wire: Wire::Anthropic,
            json,
        } => json.clone(),
        Block::Opaque { .. } => return None,
    })
}

/// A block on its way.
#[derive(Debug)]
enum Piece {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Tool {
        id: String,
        name: String,
        input: String,
    },
    Whole(Value),
}

/// Reads an answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pieces: Vec<(u64, Piece)>,
    tokens: Tokens,
    stop: Option<String>,
    ended: bool,
}

impl Reader {
    pub(super) fn event(&mut self, data: &[u8], provider: &Provider) -> Result<bool, ModelError> {
        let json: Value = serde_json::from_slice(data).map_err(|_| not_understood(provider))?;
        match json["type"].as_str().unwrap_or_default() {
            "message_start" => self.usage(&json["message"]["usage"]),
            "content_block_start" => {
                let index = json["index"].as_u64().unwrap_or_default();
                self.pieces.push((index, opened(&json["content_block"])));
            }
            "content_block_delta" => self.delta(&json),
            "message_delta" => {
                self.usage(&json["usage"]);
                if let Some(stop) = json["delta"]["stop_reason"].as_str() {
                    self.stop = Some(stop.to_owned());
                }
            }
            "message_stop" => self.ended = true,
            "error" => return Err(in_stream(&Complaint::of(&json), provider)),
            _ => {}
        }
        Ok(self.ended)
    }

    fn usage(&mut self, usage: &Value) {
        let take = |key: &str, into: &mut u64| {
            if let Some(count) = usage[key].as_u64() {
                *into = count;
            }
        };
        take("input_tokens", &mut self.tokens.input);
        take("cache_read_input_tokens", &mut self.tokens.cache_read);
        take("cache_creation_input_tokens", &mut self.tokens.cache_write);
        take("output_tokens", &mut self.tokens.output);
    }

    fn delta(&mut self, json: &Value) {
        let index = json["index"].as_u64().unwrap_or_default();
        let found = self.pieces.iter_mut().rfind(|(known, _)| *known == index);
        let delta = &json["delta"];
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match found {
            Some((_, Piece::Text(all))) => all.push_str(text("text")),
            Some((_, Piece::Tool { input, .. })) => input.push_str(text("partial_json")),
            Some((
                _,
                Piece::Thinking {
                    text: all,
                    signature,
                },
            )) => {
                all.push_str(text("thinking"));
                signature.push_str(text("signature"));
            }
            Some((_, Piece::Whole(_))) | None => {}
        }
    }

    pub(super) fn answer(self) -> Option<Answer> {
        let reason = self.stop.filter(|_| self.ended)?;
        let mut malformed = Vec::new();
        let blocks = self.pieces.into_iter().map(|(_, piece)| match piece {
            Piece::Text(text) => Block::Text { text },
            Piece::Tool {
                id,
                name,
                input: text,
            } => {
                let input = input(&text, &id, &mut malformed);
                Block::ToolUse { id, name, input }
            }
            Piece::Thinking { text, signature } => {
                opaque(json!({ "type": "thinking", "thinking": text, "signature": signature }))
            }
            Piece::Whole(json) => opaque(json),
        });
        let blocks: Vec<Block> = blocks.collect();
        let calls = blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse { .. }));
        let stop = match reason.as_str() {
            "max_tokens" => Stop::TooLong,
            "model_context_window_exceeded" => Stop::ContextFull,
            "refusal" => Stop::Refused("it stopped for reasons of safety".to_owned()),
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

fn opaque(json: Value) -> Block {
    let wire = Wire::Anthropic;
    Block::Opaque { wire, json }
}

fn opened(block: &Value) -> Piece {
    let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => Piece::Text(text("text")),
        Some("thinking") => Piece::Thinking {
            text: text("thinking"),
            signature: text("signature"),
        },
        Some("tool_use") => Piece::Tool {
            id: text("id"),
            name: text("name"),
            // An input that is whole from the beginning is possible, too.
            input: match &block["input"] {
                Value::Object(map) if !map.is_empty() => block["input"].to_string(),
                _ => String::new(),
            },
        },
        _ => Piece::Whole(block.clone()),
    }
}
