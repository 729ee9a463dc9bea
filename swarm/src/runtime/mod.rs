//! The runtimes: the programs that can run an agent.
//!
//! A [`Runtime`] starts a program and translates: the program's output becomes [`Event`]s, and
//! [`Order`]s become lines that the program understands. It decides nothing. The host
//! (`run::host`), which is the same for every runtime, supervises the program, writes the
//! transcript, hands over mail and ends the run.
//!
//! # The contract
//!
//! 1. `launch` starts the program through [`Processes`], never by itself, so that it is supervised
//!    from its first instruction.
//! 2. The first event of a program that came up is [`Event::Started`]; only [`Event::Output`] and
//!    [`Event::Mode`] can come before it. The last is [`Event::Ended`], always, once, after
//!    everything the program printed. Then the channel closes.
//! 3. Every turn ends with [`Event::TurnEnded`], unless the program ends first; a program that ends
//!    without one has failed, whatever its exit code says.
//! 4. A message that was taken in is confirmed with [`Event::Accepted`], once, by its id.
//! 5. [`Order::Finish`] lets the turn come to its end, then the program ends; until then its
//!    questions can still be answered. [`Order::Stop`] asks it to end now. Signals are the host's
//!    business.
//! 6. No amount or kind of output makes a runtime fail, block or grow: lines are bounded, and lines
//!    that are not understood are passed on as [`Event::Output`].
//!
//! # A runtime for a program that talks
//!
//! Claude Code, Codex, the agents that speak ACP and those that speak ccb's own lines are state
//! machines without input or output (`Translator`): the program's lines and the host's orders come
//! in; events for the host and lines for the program go out. One driver connects such a machine to
//! a program: it reads lines of bounded length, passes on lines outside the protocol as output, and
//! writes from a task of its own, so that a program that does not read until its output is read
//! stops nothing. `Finish` closes the program's input only when the turn is over, because until
//! then it may ask a question. The code that handles a special behaviour of a program describes it,
//! and a recorded line proves it.

mod acp;
mod after_end;
mod claude;
mod codex;
mod event_redactor;
mod find;
pub(crate) mod fuzz;
mod launch;
mod line_reader;
mod lines;
mod native;
mod opening;
mod program;
mod pulse;
mod queue;
mod refusal;
mod rpc;
mod shell;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod translator;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::process::{Ending, Processes};

pub use acp::AcpRuntime;
pub use after_end::EndWatch;
pub use claude::ClaudeRuntime;
pub use codex::CodexRuntime;
pub use store::settings::RuntimeKind;

pub use find::{RuntimeError, built_in, from_spec, kind_of};
pub use launch::{Launch, LaunchError, McpServer, Start};
pub use line_reader::{Line, LineReader};
pub use lines::{LinesRuntime, drive_lines};
pub use native::NativeRuntime;
pub use opening::{Keys, Opening};
pub use program::quoted;
pub use pulse::{Known, Pulse};
pub use queue::{agent, post};
pub use refusal::retry_after;
pub use shell::ShellRuntime;

pub(crate) use event_redactor::EventRedactor;

/// Our own loop, in the process of the host: several agents share one.
pub trait SharedLoop: fmt::Debug + Send + Sync {
    /// The runtime of one agent, which may keep no more than `max_bytes` in memory. `known` is what it
    /// knew when it fell asleep.
    fn runtime(&self, max_bytes: u64, known: Option<Known>) -> Box<dyn Runtime>;
}

/// A way to run agents.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// Its abilities.
    fn abilities(&self) -> Abilities;

    /// Starts an agent. Called within a tokio runtime; its background work is spawned there.
    fn launch(&self, launch: Launch, processes: &Processes) -> Result<Agent, LaunchError>;
}

/// The abilities of a runtime; the host does not ask for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// The moments at which a message can be handed over.
    pub messages: Messages,
    /// True if a turn can be broken off without ending the program.
    pub interrupt: bool,
    /// True if a new process can resume a session.
    pub resume: bool,
    /// True if a session can be copied.
    pub fork: bool,
    /// True if its program can be kept from writing; else only a text forbids it.
    pub read_only: bool,
}

/// The moments at which a message can be handed over to a running agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    /// Never; it reads its mail itself, if at all.
    Never,
    /// Between two turns.
    BetweenTurns,
    /// After a tool's result, too.
    AtToolBoundary,
    /// Any time: the program itself waits for the right moment.
    AnyTime,
}

/// A running agent: what it says, and a way to tell it something.
#[derive(Debug)]
pub struct Agent {
    /// The events, in order.
    pub events: mpsc::Receiver<Event>,
    /// The host's orders. An order that comes too late is dropped.
    pub orders: mpsc::Sender<Order>,
    /// Shows if it still moves; `None` if it is not part of this process.
    pub pulse: Option<Pulse>,
}

/// The other ends of an [`Agent`]'s channels, for the runtime.
#[derive(Debug)]
pub struct AgentPort {
    /// The channel for events.
    pub events: mpsc::Sender<Event>,
    /// The channel of orders.
    pub orders: mpsc::Receiver<Order>,
}

/// An event in an agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// It has started.
    Started {
        /// By what it can be resumed or forked later.
        session: Option<String>,
        /// The model it says it uses.
        model: Option<String>,
    },
    /// It printed something that is not part of its protocol.
    Output {
        /// Where.
        stream: Stream,
        /// The bytes; never more than [`Line`]'s limit at once.
        bytes: Vec<u8>,
    },
    /// The model said something.
    Text(String),
    /// It begins to use a tool.
    ToolUse {
        /// Links the result to it.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        input: Value,
    },
    /// A tool has answered: a moment at which it can take in a message.
    ToolResult {
        /// Of which use.
        id: String,
        /// The tool's answer.
        output: String,
        /// True if that is an error.
        is_error: bool,
    },
    /// A message has become part of the conversation.
    Accepted {
        /// Its id.
        message: Uuid,
    },
    /// The usage since the last event of this kind.
    Usage(Usage),
    /// It asks for permission; it waits for [`Order::Answer`].
    Permission {
        /// Links the answer to it.
        id: String,
        /// The tool it wants to use.
        tool: String,
        /// With what.
        input: Value,
    },
    /// It is alive but makes no progress: it retries, or waits for capacity.
    Stalled {
        /// In words.
        why: String,
    },
    /// The answer to [`Order::SetMode`].
    Mode {
        /// The mode that was ordered.
        mode: String,
        /// The reason why it keeps the mode it had.
        refused: Option<String>,
    },
    /// A turn is over; it waits for the next message, or ends.
    TurnEnded(TurnEnd),
    /// The program has ended; nothing follows.
    Ended(Ending),
}

/// The output stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    /// In one word.
    pub status: TurnStatus,
    /// The result; with a failure, what there was of one.
    pub text: String,
    /// The error.
    pub error: Option<String>,
}

store::words! {
    /// The end of a turn, in one word.
    #[non_exhaustive]
    pub enum TurnStatus {
        /// It did its task.
        Completed = "completed",
        /// It did not do its task.
        Failed = "failed",
        /// It was interrupted on our order.
        Interrupted = "interrupted",
        /// A limit on turns, time, tokens or money ended it.
        LimitReached = "limitreached",
        /// The provider refuses for now: out of quota, or too many requests.
        Quota = "quota",
    }
}

/// The usage of tokens, money and tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// The input tokens that the provider had in its cache.
    pub cache_read_tokens: u64,
    /// The input tokens that it put into its cache.
    pub cache_write_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The provider's charge, as far as it is known.
    pub cost_usd: f64,
    /// The tokens whose price is unknown; their cost is not in `cost_usd`.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_tokens: u64,
    /// The number of tool uses. Counted by the host.
    pub tool_uses: u64,
    /// Of a fork: tokens of its parent's conversation that were in the cache when it began. A fresh
    /// agent with the same text pays for them in full.
    #[serde(skip_serializing_if = "is_zero")]
    pub forked_tokens: u64,
    /// The saving by that.
    #[serde(skip_serializing_if = "is_free")]
    pub saved_usd: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_free(usd: &f64) -> bool {
    *usd <= 0.0
}

/// The most money that is counted; sums of it stay numbers that JSON can write.
const MOST_USD: f64 = 1e12;

impl Usage {
    /// The same as far as it can be true. Programs say what they like: a cost below zero would make
    /// room under a limit, and one without bound could not be written down.
    #[must_use]
    pub(crate) fn plausible(mut self) -> Self {
        for cost in [&mut self.cost_usd, &mut self.saved_usd] {
            *cost = cost.clamp(0.0, MOST_USD);
        }
        self
    }

    /// Tokens read that were not in the cache and were not put there.
    pub fn uncached_tokens(&self) -> u64 {
        let cached = self
            .cache_read_tokens
            .saturating_add(self.cache_write_tokens);
        self.input_tokens.saturating_sub(cached)
    }

    /// All tokens.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The cost, at least; `None` if every price in it is unknown.
    pub fn known_cost(&self) -> Option<f64> {
        (self.unpriced_tokens == 0 || self.cost_usd > 0.0).then_some(self.cost_usd)
    }

    /// The cost in words: `$1.20`, `unknown`, or `over $1.20` if a part is unknown.
    pub fn cost_in_words(&self) -> String {
        match (self.known_cost(), self.unpriced_tokens) {
            (None, _) => "unknown".to_owned(),
            (Some(cost), 0) => format!("${cost:.2}"),
            (Some(cost), _) => format!("over ${cost:.2}"),
        }
    }

    /// The JSON for programs: it has the sum of the tokens as well.
    pub fn to_json(&self) -> Value {
        let mut json = json!(self);
        json["uncachedTokens"] = self.uncached_tokens().into();
        json["totalTokens"] = self.total_tokens().into();
        json
    }

    /// The usage since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            cache_read_tokens: self
                .cache_read_tokens
                .saturating_sub(before.cache_read_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_sub(before.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost_usd: (self.cost_usd - before.cost_usd).max(0.0),
            unpriced_tokens: self.unpriced_tokens.saturating_sub(before.unpriced_tokens),
            tool_uses: self.tool_uses.saturating_sub(before.tool_uses),
            forked_tokens: self.forked_tokens.saturating_sub(before.forked_tokens),
            saved_usd: (self.saved_usd - before.saved_usd).max(0.0),
        }
    }

    /// Adds `more`.
    pub fn add(&mut self, more: &Self) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.cache_read_tokens, more.cache_read_tokens);
        add(&mut self.cache_write_tokens, more.cache_write_tokens);
        add(&mut self.forked_tokens, more.forked_tokens);
        self.saved_usd = (self.saved_usd + more.saved_usd).min(MOST_USD);
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cost_usd = (self.cost_usd + more.cost_usd).min(MOST_USD);
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(more.unpriced_tokens);
        self.tool_uses = self.tool_uses.saturating_add(more.tool_uses);
    }
}

/// An order to an agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Order {
    /// Take in a message.
    Send(Message),
    /// Break off the turn; the program runs on.
    Interrupt,
    /// The answer to [`Event::Permission`].
    Answer {
        /// Of which question.
        id: String,
        /// True if it may.
        allow: bool,
        /// The reason for a no.
        reason: Option<String>,
    },
    /// From now on it may do this without asking, by Claude Code's names; it answers with
    /// [`Event::Mode`].
    SetMode {
        /// The mode.
        mode: String,
    },
    /// Nothing more will come: end when the turn is over.
    Finish,
    /// End now.
    Stop,
}

/// A message for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// By which its delivery is confirmed.
    pub id: Uuid,
    /// The text for the model.
    pub text: String,
    /// True if it interrupts the current step.
    pub now: bool,
}
