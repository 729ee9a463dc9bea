//! ccb's own agent loop: an agent that calls a model itself, as `ccb __native`.
//!
//! A host starts the loop like any other agent, writes lines to its input and reads lines from its
//! output. Nothing in this crate is global, so one process can run several agents (`together.rs`).
//!
//! # What this room knows
//!
//! | module | contents |
//! |---|---|
//! | `set_up`, `system`, [`context`] | building an agent from the host's first line: instructions, skills, system prompt |
//! | `agent`, `calls`, `compact`, `repeats`, `limits` | a turn: requests, tool calls, a full context, a model that repeats itself |
//! | `model` | a request in the form of each service, its stream, retries, TLS and prices |
//! | [`tools`], [`permission`] | the built-in tools, and which calls are allowed without a question |
//! | [`mcp`] | tools of MCP servers |
//! | `conversation`, `journal`, `fork` | the conversation in memory, on disk, and as a copy |
//! | `link`, `protocol` | the lines between the loop and its host |
//! | `shared`, `together`, `sleep` | several agents in one process, and idle agents without a thread |
//!
//! # What it must not know (and where to go instead)
//!
//! * Runs, guards and hosts: `swarm::run`. The loop knows only two pipes and the first line
//!   ([`swarm::runtime::Opening`]).
//! * Tasks, messages, worktrees and teams: the agent reaches them with ccb's own MCP tools, which the
//!   `cli` serves ([`Ports::connect_own`]).
//! * Which provider, model, tools and rules an agent gets: `coordinator::agent` decides, and the
//!   first line says so.
//! * Confinement: the loop asks [`swarm::sandbox`] and does not enforce it itself.
//!
//! # The way through
//!
//! ```text
//! host ── first line ──▶ link ─▶ set_up ─▶ Agent { conversation, model, tools, permissions }
//! message ─▶ conversation ─▶ journal (disk) ─▶ request ─▶ model::Client ── HTTP ──▶ service
//! service ── stream ──▶ Answer ─▶ journal ─▶ calls ─▶ permission ─▶ tools or mcp ─▶ result ─▶ journal ─▶ next request
//! permission "ask" ─▶ link ─▶ host ─▶ the director or the user ─▶ answer ─▶ calls
//! no calls left ─▶ turn ends ─▶ link ─▶ host; an idle agent of a shared process sleeps until the next line
//! ```
//!
//! # Crash points
//!
//! [`FAULT_POINTS`]: `mate.step`, before each request to the model; `tests/it/mates.rs` makes the loop
//! panic and hang there. There are no write points: `conversation.jsonl` gets one line per event, and every
//! prefix of that file is a conversation that can be resumed. A tool call without a result in the file may
//! have had its effect, and the model gets a note about it.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | know how an idle agent of a shared process sleeps | its loop: `swarm/native/src/sleep.rs`; its host: `swarm/src/run/parked.rs`, `swarm/src/run/life/park.rs` |
//! | change our own agent loop | `swarm/native/src/agent.rs` (a turn), `calls.rs` (tools and questions), `compact.rs` (a full context), `repeats.rs` (a model that repeats itself), `set_up.rs` (the parts of an agent); what it says to its host: `protocol.rs`, `link.rs`, and the first line it gets: `swarm/src/runtime/opening.rs` |
//! | change what is kept of a native conversation, or how it is resumed | `swarm/native/src/journal.rs` (the file), `conversation.rs` (from lines to the bytes of requests) |
//! | change the requests to a model | `swarm/native/src/model/`: `anthropic.rs`, `chat.rs`, `responses.rs` (the forms), `wire.rs` (what they share), `http.rs`, `sse.rs`, `tls.rs` (certificates and proxies); the meaning of a refusal: `error.rs`, `retry.rs`; its cost: `prices.rs` |
//! | change how native agents reach MCP servers | `swarm/native/src/mcp/` (`connection.rs`: one server, `users.rs`: the user's); our own without a process: `cli/src/native.rs`, `serve_here` in `cli/mcp/src/lib.rs` |
//! | see what a native fork shares with its parent, and where it leaves it | `Conversation::request` in `swarm/native/src/conversation.rs` (bytes and cache marks), `swarm/native/src/conversation/parting.rs`, `swarm/native/src/fork.rs` (the line), `swarm/native/src/early.rs` (when its first request is sent), `coordinator/src/agent/fork.rs` (who may), `prefix` in `swarm/native/src/set_up.rs` (prompt and tools) |
//! | change a tool of native agents | `swarm/native/src/tools/` (`toolbox.rs`: which there are); files are opened by `store/src/beneath.rs` |
//! | change what a native agent may do without asking | `swarm/native/src/permission/mod.rs` (modes), `rules.rs`, `commands.rs` (what a command line does) |
//! | change the first prompt of a native agent | `swarm/native/src/context/mod.rs`, `instructions.rs`, `skills.rs` |

mod agent;
mod calls;
mod compact;
pub mod context;
mod conversation;
mod early;
mod fault;
mod fork;
#[cfg(test)]
mod fork_tests;
#[doc(hidden)]
pub mod fuzz;
mod journal;
mod limits;
mod link;
pub mod mcp;
mod model;
mod path;
pub mod permission;
mod probe;
mod protocol;
mod repeats;
mod set_up;
mod shared;
mod sleep;
mod system;
#[cfg(test)]
mod tests;
mod together;
pub mod tools;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use swarm::process::Processes;
use swarm::runtime::Opening;
use tokio::task::JoinHandle;

pub use fault::FAULT_POINTS;
pub use fork::{ForkPoint, fork_point};
pub use probe::probe;
pub use shared::Together;
pub use swarm::runtime::McpServer;
pub use together::SharedNative;

use agent::{Halt, Kept};
use link::{Inbox, Outbox};
use protocol::Say;
use set_up::set_up;
use sleep::Sleeper;

/// The argument that makes ccb an agent.
pub const ROLE: &str = swarm::runtime::NativeRuntime::ROLE;

/// The loop's requirements on the process it runs in.
#[derive(Debug, Default)]
pub struct Options {
    /// The environment of the process. Keys come with the first line.
    pub env: Vec<(OsString, OsString)>,
    /// Services that the process provides to the loop.
    pub ports: Ports,
    /// The process that starts its commands; `None` if this one does.
    pub processes: Option<Processes>,
    /// The state it shares with other agents of this process.
    pub together: Option<Together>,
}

/// Connects to the server of our own tools within this process; `None` if it has to be a process of
/// its own. The other end is served by threads, so this one is a socket and not a pipe of tokio's.
pub type ConnectOwn = Arc<dyn Fn(&McpServer) -> Option<UnixStream> + Send + Sync>;

/// Services that the process provides to the loop.
#[derive(Clone, Default)]
pub struct Ports {
    /// Our own tools.
    pub connect_own: Option<ConnectOwn>,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// Runs an agent on standard input and output to its end; returns the exit code.
pub fn main(options: Options) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run_on_standard_streams(options));
            // Tasks that are left over are not worth waiting for.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            tracing::error!(%error, "the agent cannot begin");
            1
        }
    }
}

async fn run_on_standard_streams(options: Options) -> u8 {
    let streams = || {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        io::Result::Ok((input, io::stdout().as_fd().try_clone_to_owned()?))
    };
    let lived = match streams() {
        Ok((input, output)) => run(options, input, output, true, None).await,
        Err(error) => not_with_pipes(&error),
    };
    match lived {
        Lived::Over(code) => code,
        Lived::Asleep(_) => 0,
    }
}

fn not_with_pipes(error: &io::Error) -> Lived {
    tracing::error!(%error, "ccb __native is started by ccb, with pipes");
    Lived::Over(1)
}

/// The result of running a loop.
#[derive(Debug)]
enum Lived {
    /// It has ended, with this exit code.
    Over(u8),
    /// It sleeps until the host sends a line.
    Asleep(Box<Sleeper>),
}

/// A loop that is about to begin or resume.
struct Awake {
    opening: Opening,
    options: Options,
    out: Outbox,
    /// Ends when all output is written.
    written: JoinHandle<Option<OwnedFd>>,
    inbox: Inbox,
    /// The agent's state from before it slept.
    kept: Option<Kept>,
}

/// Runs an agent on these pipes. `alone`: signals to this process are for the agent. `kept`: the
/// state of the conversation that the agent resumes.
async fn run(
    mut options: Options,
    input: OwnedFd,
    output: OwnedFd,
    alone: bool,
    kept: Option<Kept>,
) -> Lived {
    let (out, written) = match Outbox::new(output) {
        Ok(opened) => opened,
        Err(error) => return not_with_pipes(&error),
    };
    let (mut opening, inbox) = match Inbox::new(input, alone).await {
        Ok(opened) => opened,
        Err(error) => return not_with_pipes(&error),
    };
    let keys = std::mem::take(&mut opening.keys).into_environment();
    options.env.extend(keys.iter().cloned());
    if alone {
        // Agents that our own tools start from this process need them as well.
        swarm::starter::give_to_this_process(keys);
    }
    let awake = Awake {
        opening,
        options,
        out,
        written,
        inbox,
        kept,
    };
    live(awake).await
}

async fn live(awake: Awake) -> Lived {
    let Awake {
        opening,
        options,
        out,
        written,
        inbox,
        kept,
    } = awake;
    let failed = |error: String| Say::Result {
        status: "failed",
        text: String::new(),
        error: Some(error),
    };
    let code = match set_up(&opening, &options, out.clone(), inbox, kept).await {
        Err(why) => {
            out.say(&failed(why)).await.ok();
            1
        }
        Ok(mut agent) => match agent.run().await {
            Ok(()) | Err(Halt::Stop) => 0,
            Err(Halt::Gone) => 1,
            Err(Halt::Asleep) => {
                drop(out);
                return sleep::fall_asleep(agent, opening, options, written).await;
            }
            Err(Halt::Journal(error)) => {
                let why = format!("the conversation cannot be kept: {error}");
                out.say(&failed(why)).await.ok();
                1
            }
        },
    };
    drop(out);
    // The output arrives before the end does.
    written.await.ok();
    Lived::Over(code)
}
