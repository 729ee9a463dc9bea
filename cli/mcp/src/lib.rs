//! The MCP server: any agent takes part in a team with the tools it knows.
//!
//! # What this room knows
//!
//! The tools, their arguments (`tools.json`) and the words of their answers; JSON-RPC lines and the MCP
//! protocol; which client sits at the other end, and how mail reaches it with an answer.
//!
//! # What it must not know (and where to go instead)
//!
//! * The effect of a tool on the board, mail, worktrees and agents: the functions that the commands call, too
//!   (`actions`). So a tool and its command give the same errors.
//! * The rights of callers: the table of rights.
//! * Exit codes and text for people: `cli`. [`serve`] only says whether it served.
//!
//! # The way through
//!
//! ```text
//! stdin ─ lines ─▶ transport ─▶ rmcp ─▶ server ─▶ tools (board, messages, teams, trees, agents)
//! stdout ◀─ post (mail joins the answer) ◀─ transport ◀─ rmcp ◀─┘        └▶ actions ─▶ libraries
//! ```
//!
//! Calls block, on locks among others, so they have threads of their own.
//!
//! # Crash points
//!
//! [`FAULT_POINTS`]: before an answer with mail is written, and after it is written but before the mail is
//! acknowledged. In both cases the next server delivers the mail again. The test is `tests/it/mcp_mail.rs`.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change how results look to a model, and how long they are | `cli/mcp/src/answer.rs`, `audience.rs`; lists of tasks: `task_lines.rs`; mail: `post.rs`, `mailbox/src/render.rs`, `xml.rs` |
//! | add or change an MCP tool | `cli/mcp/src/tools.json` (what it takes), `server.rs` (who answers), `coordinator/src/agent/role.rs` (who has it) |
//! | see how mail comes with a result | `cli/mcp/src/post.rs`, `transport.rs` |
//!
//! # A call of a tool
//!
//! 1. A thread reads lines of bounded length; what is no request of ours is answered in `cli/mcp/src/transport.rs`, everything else goes to
//!    rmcp, which knows the protocol.
//! 2. The arguments are checked against the schema that clients see (`arguments.rs`), the caller's run is checked (`seat.rs`), and the tool
//!    calls what the command calls, on a thread of its own. Calls take turns, except those that may take long.
//! 3. A thread writes. It takes the caller's mail at the last moment, puts it behind the result, writes the line, and then acknowledges
//!    the mail and tells the engine that a result has arrived. An answer that is never written takes nothing with it.

mod agents;
mod answer;
mod arguments;
mod audience;
mod board;
mod fault;
#[doc(hidden)]
pub mod fuzz;
mod lines;
mod membership;
mod messages;
mod plan_mode;
mod post;
mod receipts;
mod server;
mod task_lines;
mod teams;
mod tool;
mod transport;
mod trees;
mod worktrees;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::service::{Peer, serve_directly};
use serde_json::json;
use tokio::sync::watch;

pub use self::fault::FAULT_POINTS;

use self::audience::Audience;
use self::membership::Membership;
use self::post::{Lookout, Post};
use self::receipts::Receipts;
use self::server::Server;
use self::transport::{Client, Mailroom};
use coordinator::agent::service::AgentService;
use coordinator::agent::{OwnAgents, Role};
use project::workplace::Workplace;
use store::Failure;
use swarm::scope;

/// Poll interval of a lookout that no signal wakes.
const LOOK: Duration = Duration::from_secs(1);

/// Serves one client on standard input and output until it leaves.
pub fn serve(role: Role, context: Workplace) -> Result<(), Failure> {
    let member = admit(role, context)?;
    let agents = Arc::new(OwnAgents::new(role));
    let served = serve_on(&member, agents, std::io::stdin(), std::io::stdout());
    member.leave();
    served
}

/// Serves a client in this process: threads of ours are at the other end of the socket until it is
/// closed.
pub fn serve_here(role: Role, context: Workplace) -> Result<UnixStream, Failure> {
    let io = |error: std::io::Error| Failure::failed("io", format!("no socket: {error}"));
    let member = admit(role, context)?;
    let (client, output) = UnixStream::pair().map_err(io)?;
    let input = output.try_clone().map_err(io)?;
    scope::spawn(move || {
        let agents = Arc::new(OwnAgents::new(role));
        if let Err(error) = serve_on(&member, agents, input, output) {
            tracing::error!(
                error = error.message(),
                "the server of our own tools failed"
            );
        }
        member.leave();
    });
    Ok(client)
}

/// The member to serve. Fails like any command if the team cannot be used at all.
fn admit(role: Role, context: Workplace) -> Result<Arc<Membership>, Failure> {
    let member = Arc::new(Membership::new(role, context)?);
    member.context().team()?;
    if let Err(error) = member.join() {
        tracing::warn!(error = error.message(), "not on the team's roster");
    }
    Ok(member)
}

/// Serves one client until it leaves. Calls under way are finished then.
fn serve_on(
    member: &Arc<Membership>,
    agents: Arc<dyn AgentService>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), Failure> {
    let post = Arc::new(Post::new(Arc::clone(member)));
    let room = Mailroom {
        post: Arc::clone(&post),
        receipts: Receipts::default(),
        audience: Audience::default(),
    };
    let client = Arc::new(watch::Sender::new(Client::There));
    let server = Server::new(Arc::clone(member), agents, &room, client.subscribe())?;
    let level = server.level();
    // Calls have threads of their own, which work for the same agent.
    let caller = scope::current();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .on_thread_start(move || scope::enter(caller.clone()))
        .build()
        .map_err(|error| Failure::failed("io", format!("no runtime: {error}")))?;
    let (stdio, writer) = transport::start(input, output, room, &client);
    runtime.block_on(async {
        // Without the handshake at the beginning: a client may ask in any order, and gets answers.
        let running = serve_directly(server, stdio, None);
        // If several agents share this process, their host tells them about their mail.
        if member.role != Role::Worker && scope::current().is_none() {
            let (member, peer) = (Arc::clone(member), running.peer().clone());
            let runtime = tokio::runtime::Handle::current();
            // The thread ends with the process.
            scope::spawn(move || {
                post.open();
                announce(&member, &peer, &level, &runtime);
            });
        }
        if let Err(error) = running.waiting().await {
            tracing::error!(%error, "the server stopped");
        }
    });
    drop(runtime);
    writer
        .join()
        .map_err(|_| Failure::internal("the writer failed"))
}

/// Tells the client about mail that arrives while it does not call.
fn announce(
    member: &Arc<Membership>,
    peer: &Peer<RoleServer>,
    level: &server::Level,
    runtime: &tokio::runtime::Handle,
) {
    let mut lookout = Lookout::new(Arc::clone(member));
    loop {
        if member.role.leads() {
            // The mail tells the client about dead runs.
            member.context().settle_dead_runs();
        }
        for mail in lookout.wait(LOOK) {
            // Before the handshake no client can listen, and afterwards not every client wants
            // notices.
            if peer.peer_info().is_none() || !level.wants_info() {
                continue;
            }
            let params = json!({"level": "info", "logger": "ccb", "data": mail});
            let note = CustomNotification::new("notifications/message", Some(params));
            let note = ServerNotification::CustomNotification(note);
            if runtime.block_on(peer.send_notification(note)).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
