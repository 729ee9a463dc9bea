//! Our own loop: an agent that talks to a model itself, as `ccb __native`.
//!
//! It is a program like every other agent: a host starts it, tells it things in lines on its
//! standard input, and hears of everything on its standard output. Nothing in here is global: one
//! process can be several agents (`together.rs`).

mod agent;
mod calls;
mod compact;
pub mod context;
mod conversation;
mod fork;
#[cfg(test)]
mod fork_tests;
mod journal;
mod link;
pub mod mcp;
mod model;
pub mod permission;
mod probe;
mod protocol;
mod repeats;
mod set_up;
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

pub use fork::{ForkPoint, fork_point};
pub use probe::probe;
pub use together::{SharedNative, Together};

use agent::Halt;
use link::{Inbox, Outbox};
use protocol::Say;
use set_up::set_up;

use crate::process::Processes;

pub use crate::provider::{Prices, Provider, Wire};
pub use crate::runtime::{McpServer, Opening};

/// The argument that makes ccb an agent.
pub const ROLE: &str = crate::runtime::NativeRuntime::ROLE;

/// What the loop needs of the process it runs in.
#[derive(Debug, Default)]
pub struct Options {
    /// The environment of the process. Keys come with the first line.
    pub env: Vec<(OsString, OsString)>,
    /// What others do for it.
    pub ports: Ports,
    /// Who starts its commands; without one, this process.
    pub processes: Option<Processes>,
    /// What it shares with other agents of this process.
    pub together: Option<Together>,
}

/// Connects to the server of our own tools within this process; none if it has to be a process
/// of its own. The other end is served by threads, so this one is a socket and not a pipe of
/// tokio's.
pub type ConnectOwn = Arc<dyn Fn(&McpServer) -> Option<UnixStream> + Send + Sync>;

/// What others do for the loop.
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
            // Nothing that is left over is worth waiting for.
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
    match streams() {
        Ok((input, output)) => run(options, input, output, true).await,
        Err(error) => {
            tracing::error!(%error, "ccb __native is started by ccb, with pipes");
            1
        }
    }
}

/// Runs an agent on these pipes to its end. `alone`: signals to this process are for it.
async fn run(mut options: Options, input: OwnedFd, output: OwnedFd, alone: bool) -> u8 {
    let opened = Outbox::new(output);
    let (out, written) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            tracing::error!(%error, "ccb __native is started by ccb, with pipes");
            return 1;
        }
    };
    let (mut opening, inbox) = match Inbox::new(input, alone).await {
        Ok(opened) => opened,
        Err(error) => {
            tracing::error!(%error, "ccb __native is started by ccb, with pipes");
            return 1;
        }
    };
    let keys = std::mem::take(&mut opening.keys).into_environment();
    options.env.extend(keys.iter().cloned());
    if alone {
        // Agents that our own tools start from this process need them as well.
        crate::starter::give_to_this_process(keys);
    }
    let code = live(opening, &options, out, inbox).await;
    // What was said arrives before the end does.
    written.await.ok();
    code
}

async fn live(opening: Opening, options: &Options, out: Outbox, inbox: Inbox) -> u8 {
    let failed = |error: String| Say::Result {
        status: "failed",
        text: String::new(),
        error: Some(error),
    };
    let mut agent = match set_up(opening, options, out.clone(), inbox).await {
        Ok(agent) => agent,
        Err(why) => {
            out.say(&failed(why)).await.ok();
            return 1;
        }
    };
    match agent.run().await {
        Ok(()) | Err(Halt::Stop) => 0,
        Err(Halt::Gone) => 1,
        Err(Halt::Journal(error)) => {
            let why = format!("the conversation cannot be kept: {error}");
            out.say(&failed(why)).await.ok();
            1
        }
    }
}
