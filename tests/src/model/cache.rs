//! The prompt cache of the services, as far as it affects their prices.
//!
//! Anthropic keeps marked beginnings: everything up to a block with `cache_control`. A request
//! finds the longest beginning that ends at one of its own marks or at most 20 blocks before one,
//! and pays for writing the part between that and its last mark. OpenAI keeps the beginnings of all
//! requests in pieces of 128 tokens. Neither keeps less than 1,024 tokens. The beginnings that a
//! request writes are there when its answer begins.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::wire::Wire;

/// Approximate bytes of JSON in one token.
const PER_TOKEN: u64 = 4;
/// The shortest beginning that is kept, in tokens.
const SHORTEST: u64 = 1024;
/// Number of blocks before a mark that are searched.
const LOOK_BACK: usize = 20;
/// Maximum of marks in a request.
pub(super) const MOST_MARKS: usize = 4;
/// Bytes of a piece that is kept without a mark.
const PIECE: usize = 512;

/// Tokens of a request that came from the cache, and those written to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cached {
    pub read: u64,
    pub write: u64,
}

/// The kept beginnings of requests, by their hashes.
#[derive(Debug, Default)]
pub(super) struct Cache {
    kept: HashSet<u64>,
}

/// The beginnings that a request will leave in the cache.
#[derive(Debug, Default)]
pub(super) struct Leaves(Vec<u64>);

/// A beginning of a request.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    hash: u64,
    tokens: u64,
    marked: bool,
}

impl Cache {
    /// The cached part of a request, and the beginnings it will leave behind.
    pub(super) fn look(&self, wire: Wire, body: &Value) -> (Cached, Leaves) {
        match wire {
            Wire::Anthropic => self.by_marks(&beginnings(body)),
            Wire::Chat | Wire::Responses => self.by_pieces(body),
            Wire::Gemini => (Cached::default(), Leaves::default()),
        }
    }

    /// Adds the beginnings of a request whose answer begins.
    pub(super) fn keep(&mut self, leaves: Leaves) {
        self.kept.extend(leaves.0);
    }

    fn by_marks(&self, all: &[Beginning]) -> (Cached, Leaves) {
        let marks = || (0..all.len()).filter(|at| all[*at].marked);
        let long = |at: &usize| all[*at].tokens >= SHORTEST;
        let found = marks().flat_map(|mark| mark.saturating_sub(LOOK_BACK)..=mark);
        let found = found
            .filter(|at| long(at) && self.kept.contains(&all[*at].hash))
            .max();
        let read = found.map_or(0, |at| all[at].tokens);
        let last = marks().filter(long).max().map_or(0, |at| all[at].tokens);
        let leaves = marks().filter(long).map(|at| all[at].hash).collect();
        let write = last.saturating_sub(read);
        (Cached { read, write }, Leaves(leaves))
    }

    fn by_pieces(&self, body: &Value) -> (Cached, Leaves) {
        let text = unmarked_text(body);
        let mut hasher = DefaultHasher::new();
        let hashes = text.as_bytes().chunks_exact(PIECE).map(|piece| {
            piece.hash(&mut hasher);
            hasher.finish()
        });
        let hashes: Vec<u64> = hashes.collect();
        let found = hashes.iter().take_while(|hash| self.kept.contains(hash));
        let read = (found.count() * PIECE) as u64 / PER_TOKEN;
        let read = if read < SHORTEST { 0 } else { read };
        (Cached { read, write: 0 }, Leaves(hashes))
    }
}

/// The number of marks in a request.
pub(super) fn marks(body: &Value) -> usize {
    let blocks = blocks(body);
    blocks.iter().filter(|(_, block)| is_marked(block)).count()
}

fn is_marked(block: &Value) -> bool {
    !block["cache_control"].is_null()
}

/// The blocks of a request in the order in which the service reads them, each with its role.
fn blocks(body: &Value) -> Vec<(&str, &Value)> {
    let mut all = Vec::new();
    all.extend(each(&body["tools"]).map(|tool| ("tools", tool)));
    all.extend(each(&body["system"]).map(|block| ("system", block)));
    for message in each(&body["messages"]) {
        let role = message["role"].as_str().unwrap_or_default();
        all.extend(each(&message["content"]).map(|block| (role, block)));
    }
    all
}

/// The elements of a list; any other value counts as one element.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    let (list, one) = match value {
        Value::Array(list) => (list.as_slice(), None),
        Value::Null => (&[][..], None),
        one => (&[][..], Some(one)),
    };
    list.iter().chain(one)
}

/// Every beginning of a request that ends with a block.
fn beginnings(body: &Value) -> Vec<Beginning> {
    let mut hasher = DefaultHasher::new();
    // Another model, or one that thinks otherwise, has another cache.
    for key in ["model", "thinking", "output_config", "tool_choice"] {
        body[key].to_string().hash(&mut hasher);
    }
    let mut bytes = 0;
    let all = blocks(body).into_iter().map(|(whose, block)| {
        let mut plain = block.clone();
        if let Some(fields) = plain.as_object_mut() {
            fields.shift_remove("cache_control");
        }
        let text = plain.to_string();
        (whose, &text).hash(&mut hasher);
        bytes += text.len() as u64;
        Beginning {
            hash: hasher.finish(),
            tokens: bytes / PER_TOKEN,
            marked: is_marked(block),
        }
    });
    all.collect()
}

/// The text that a service without marks reads, in its order.
fn unmarked_text(body: &Value) -> String {
    let keys = ["model", "tools", "instructions", "messages", "input"];
    let parts = keys.map(|key| body[key].clone());
    json!(parts).to_string()
}
