//! A model provider that follows the script in the prompt: for real agent programs in tests.
//!
//! It listens on loopback only and speaks Anthropic's Messages, OpenAI's Responses and Chat
//! Completions, and Gemini's generateContent. It keeps no state per agent: the script rides in the
//! prompt, so any number of agents can follow their own at once. Its requests are kept, in memory
//! and in a directory if wanted, for the tests.

mod anthropic;
mod cache;
mod chat;
mod client;
mod conversation;
mod gemini;
mod http;
mod play;
mod record;
mod responses;
mod server;
mod step;
mod stream;
mod wire;

pub use cache::Cached;
pub use client::{Reply as HttpReply, get, post};
pub use conversation::{Conversation, Role, Turn};
pub use record::{Outcome, Recorded};
pub use server::{ModelOptions, ModelServer};
pub use step::{Call, MARK, Step, StepUsage, prompt, script};
pub use wire::Wire;
