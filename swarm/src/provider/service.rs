//! A service that has models, as plans and first lines name it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

store::words! {
    /// The form of requests and answers.
    #[derive(Default)]
    pub enum Wire {
        /// Anthropic's Messages.
        #[default]
        Anthropic = "anthropic",
        /// OpenAI's chat completions, which most services understand.
        Chat = "chat",
        /// OpenAI's responses.
        Responses = "responses",
    }
}

/// A service that has models. It travels in plans and first lines, so it never holds a key: only
/// the name of the variable that has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Provider {
    /// Its name in messages: `anthropic`, `openai`, or its name in the settings.
    pub name: String,
    /// The form of its requests.
    pub wire: Wire,
    /// Its address, without a slash at its end: `/v1/messages` follows for Anthropic (whose address
    /// has no version in it), `/chat/completions` or `/responses` for the others.
    pub base_url: String,
    /// The variable that has the key; `None` if it needs no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// True if the key goes as `Authorization: Bearer` also where another header is usual.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bearer: bool,
    /// Headers with every request, none of them secret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are in variables: header name to variable name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub header_env: BTreeMap<String, String>,
    /// The model by the service's own name.
    pub model: String,
    /// Maximum tokens of a request and its answer together; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Maximum tokens of an answer; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The prices of a million tokens; `None` takes the known prices of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Maximum silence before an answer and in the middle of it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
}

impl Provider {
    /// The variables whose values are secret.
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        let key = self.key_env.iter().map(String::as_str);
        key.chain(self.header_env.values().map(String::as_str))
    }
}

/// The prices of a million tokens, in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Prices {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from the cache.
    pub cache_read: f64,
    /// Written to the cache.
    pub cache_write: f64,
}
