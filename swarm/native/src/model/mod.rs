//! Talking to a model.
//!
//! One conversation has one form here ([`Message`]); each service has a form of its own ([`Wire`]).
//! Bodies of requests are written by us, byte for byte, so that a part that was sent once is sent
//! the same way again and a service's cache finds it.

mod anthropic;
mod chat;
mod client;
mod error;
pub(super) mod fuzz;
mod http;
mod prices;
mod provider;
mod responses;
mod retry;
mod sse;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) use client::{Client, Model};
pub(super) use error::ModelError;
pub(super) use prices::Rates;
pub(super) use provider::{KEY_VARIABLES, context_window, max_output, secret_filter, variable};
pub(super) use wire::{Encoded, Fixed, Format, MARKED};

use swarm::provider::Prices;
pub(super) use swarm::provider::{Provider, Wire};

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
}

/// A piece of what is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        /// Always an object.
        input: Value,
    },
    ToolResult {
        id: String,
        text: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A part that only the service it came from understands, and wants to see again: its thoughts.
    Opaque {
        wire: Wire,
        json: Value,
    },
}

impl Block {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// A message of one side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub role: Role,
    pub blocks: Vec<Block>,
}

/// The reason why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its answer is complete.
    End,
    /// It calls tools.
    Tools,
    /// The answer reached its greatest length.
    TooLong,
    /// The service or the model refuses to continue, in its words.
    Refused(String),
    /// The context is full.
    ContextFull,
}

impl Stop {
    /// The name in the transcript.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::End => "end",
            Self::Tools => "tools",
            Self::TooLong => "max_tokens",
            Self::Refused(_) => "refused",
            Self::ContextFull => "context_full",
        }
    }
}

/// The tokens that a request used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    /// Read, without those below.
    pub input: u64,
    /// Read from the service's cache.
    pub cache_read: u64,
    /// Written to the service's cache.
    pub cache_write: u64,
    /// Written.
    pub output: u64,
}

impl Tokens {
    /// All that were read.
    pub(super) fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

/// The model's answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub blocks: Vec<Block>,
    pub stop: Stop,
    pub tokens: Tokens,
    /// Calls whose input is no JSON object, by id, and what it is instead. Their block has an
    /// empty one.
    pub malformed: Vec<(String, String)>,
}

impl Answer {
    /// All it says, in one piece.
    pub(super) fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
