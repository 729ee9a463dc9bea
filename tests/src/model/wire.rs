//! The protocols of the server.

use serde_json::{Value, json};

use super::cache::Cached;
use super::conversation::Conversation;
use super::step::{Step, StepUsage};
use super::stream::Emit;
use super::{anthropic, chat, gemini, responses};

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

/// The facts a protocol needs for an answer.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub step: &'a Step,
    /// The body of the request.
    pub body: &'a Value,
    /// Approximate tokens of the request.
    pub tokens: u64,
    /// The cached part of it.
    pub cached: Cached,
}

impl Answer<'_> {
    /// The model that was asked for.
    pub(super) fn model(&self) -> Value {
        self.body.get("model").cloned().unwrap_or("fake".into())
    }

    /// Tokens in and out; those of the cache are part of the first where the protocol has it so.
    pub(super) fn usage(&self) -> (u64, u64) {
        let usage = self.step.usage;
        usage.map_or((self.tokens, 25), |usage| (usage.input, usage.output))
    }

    /// Tokens that were read from the cache or written to it.
    pub(super) fn cached(&self) -> Cached {
        let said = |usage: StepUsage| Cached {
            read: usage.cache_read,
            write: usage.cache_write,
        };
        self.step.usage.map_or(self.cached, said)
    }
}

/// A name that is not used twice.
pub(super) fn fresh(prefix: &str) -> String {
    format!("{prefix}{}", uuid::Uuid::new_v4().simple())
}

impl Wire {
    /// Its name in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// The protocol of a path, and true if it asks for a stream, as far as the path says.
    pub(super) fn of(path: &str) -> Option<(Self, Option<bool>)> {
        Some(match path {
            _ if path.ends_with("/messages") => (Self::Anthropic, None),
            _ if path.ends_with("/chat/completions") => (Self::Chat, None),
            _ if path.ends_with("/responses") => (Self::Responses, None),
            _ if path.ends_with(":streamGenerateContent") => (Self::Gemini, Some(true)),
            _ if path.ends_with(":generateContent") => (Self::Gemini, Some(false)),
            _ => return None,
        })
    }

    pub(super) fn read(self, body: &Value) -> Conversation {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::Chat => chat::read(body),
            Self::Responses => responses::read(body),
            Self::Gemini => gemini::read(body),
        }
    }

    /// The names of the tools that were offered.
    pub(super) fn tools(self, body: &Value) -> Vec<String> {
        let offered = body["tools"].as_array().into_iter().flatten();
        let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
        match self {
            Self::Anthropic => offered.filter_map(name).collect(),
            Self::Chat => offered.filter_map(|tool| name(&tool["function"])).collect(),
            Self::Responses => offered.flat_map(responses::tool_names).collect(),
            Self::Gemini => offered
                .flat_map(|group| group["functionDeclarations"].as_array())
                .flatten()
                .filter_map(name)
                .collect(),
        }
    }

    /// The answer in one piece.
    pub(super) fn whole(self, answer: &Answer<'_>) -> Value {
        match self {
            Self::Anthropic => anthropic::whole(answer),
            Self::Chat => chat::whole(answer),
            Self::Responses => responses::whole(answer),
            Self::Gemini => gemini::whole(answer),
        }
    }

    /// The answer as a stream.
    pub(super) fn stream(self, answer: &Answer<'_>) -> Vec<Emit> {
        match self {
            Self::Anthropic => anthropic::stream(answer),
            Self::Chat => chat::stream(answer),
            Self::Responses => responses::stream(answer),
            Self::Gemini => gemini::stream(answer),
        }
    }

    /// The body of an HTTP error.
    pub(super) fn error(self, status: u16, message: &str) -> Value {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        match self {
            Self::Anthropic => {
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
            Self::Chat | Self::Responses => {
                json!({ "error": { "type": kind, "message": message, "code": kind, "param": null } })
            }
            Self::Gemini => {
                let word = if status == 429 {
                    "RESOURCE_EXHAUSTED"
                } else {
                    "UNKNOWN"
                };
                json!({ "error": { "code": status, "message": message, "status": word } })
            }
        }
    }
}
