//! MCP servers of a native agent: started, asked for their tools, called.
//!
//! All servers start at once, and the agent waits for them before its first request, because the
//! tools are part of every request and must not change. (A copy has its original's tools, and waits
//! for them only before it uses one: see `early.rs`.) A server that does not come up is left
//! out and said, unless the agent does not start without it. Our own server need not be a process
//! at all: see [`ConnectOwn`].

mod connection;
#[cfg(test)]
mod tests;
mod tool;
mod users;

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use swarm::process::Processes;
use swarm::runtime::McpServer;
use swarm::scope;
use swarm::tools::OWN_SERVER;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::connection::{Connection, Way};
use super::ConnectOwn;
use super::tools::Tool;

pub use users::users_servers;

/// Maximum wait for the servers that an agent needs to start.
const REQUIRED: Duration = Duration::from_secs(30);
/// Maximum wait for the other servers.
const OTHERS: Duration = Duration::from_secs(10);
/// Time limit of a call where neither the server nor the user sets one.
const CALL: Duration = Duration::from_secs(600);
/// Maximum time for servers to end by themselves.
const CLOSING: Duration = Duration::from_secs(2);
/// The variable by which users of Claude Code say how long a call may take, in milliseconds.
const CALL_VARIABLE: &str = "MCP_TOOL_TIMEOUT";

/// The options that servers are started with.
#[derive(Debug, Clone, Copy)]
pub struct McpOptions<'a> {
    /// Which.
    pub servers: &'a [McpServer],
    /// The servers that the agent does not start without.
    pub required: &'a [String],
    /// The directory they run in.
    pub cwd: &'a Path,
    /// The agent's whole environment.
    pub env: &'a [(OsString, OsString)],
    /// Variables that no server gets but our own: the keys of models.
    pub withheld: &'a [String],
    /// Starts them.
    pub processes: &'a Processes,
}

/// The servers of one agent. Dropping it ends them.
#[derive(Debug, Default)]
pub struct Mcp {
    connections: Vec<Arc<Connection>>,
    absent: Vec<String>,
}

impl Mcp {
    /// Starts all servers and asks for their tools. Fails, as soon as it is known, with the names
    /// of required servers that are missing, and why.
    pub async fn connect(
        options: McpOptions<'_>,
        connect_own: Option<&ConnectOwn>,
    ) -> Result<Self, String> {
        let begun = Instant::now();
        let unknown = options.required.iter().find(|name| {
            let mut servers = options.servers.iter();
            !servers.any(|server| server.name == **name)
        });
        if let Some(name) = unknown {
            return Err(missing(&[format!("{name}: it is not among its servers")]));
        }
        let call_limit = call_limit(options.env);
        let mut starting = JoinSet::new();
        for server in options.servers {
            let required = options.required.contains(&server.name);
            let limit = if required { REQUIRED } else { OTHERS };
            let own = server.name == OWN_SERVER;
            let here = match connect_own.filter(|_| own) {
                Some(connect) => connect_here(connect, server).await,
                None => None,
            };
            let way = way(server, &options, here);
            let name = server.name.clone();
            // A call of ours may wait for an agent, and ends by its own rules.
            let call_limit = call_limit.filter(|_| !own);
            starting.spawn(async move {
                let connected = async { Connection::open(&name, way?, call_limit).await };
                let connected = tokio::time::timeout_at(begun + limit, connected).await;
                let late = || Err(format!("it did not show its tools within {limit:?}"));
                (name, required, connected.unwrap_or_else(|_| late()))
            });
        }
        let mut all = Self::default();
        while let Some(joined) = starting.join_next().await {
            let (name, required, connected) = match joined {
                Ok(joined) => joined,
                Err(error) => return Err(format!("an MCP server failed to start: {error}")),
            };
            let connected = connected.and_then(|connection| match connection.tools().len() {
                0 if required => Err("it has no tools".to_owned()),
                _ => Ok(connection),
            });
            match connected {
                Ok(connection) => all.connections.push(Arc::new(connection)),
                // Dropping the rest ends them.
                Err(why) if required => return Err(missing(&[format!("{name}: {why}")])),
                Err(why) => all.absent.push(format!("{name}: {why}")),
            }
        }
        // They come up in any order; requests must not depend on it.
        all.connections.sort_by(|a, b| a.name().cmp(b.name()));
        all.absent.sort();
        Ok(all)
    }

    /// All tools, named `mcp__SERVER__TOOL`.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let all = self.connections.iter();
        all.flat_map(tool::tools_of).collect()
    }

    /// Servers that did not come up, and why.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    /// True if there is no server but ours, which remembers nothing that is not on disk.
    pub(super) fn is_only_ours(&self) -> bool {
        self.connections.iter().all(|one| one.name() == OWN_SERVER)
    }

    /// Lets the servers end by themselves; those that do not are killed when the last of their
    /// tools is dropped.
    pub async fn close(&self) {
        let closing = self.connections.iter().map(|one| one.close());
        let all = async {
            for one in closing {
                one.await;
            }
        };
        tokio::time::timeout(CLOSING, all).await.ok();
    }
}

fn missing(which: &[String]) -> String {
    format!("MCP servers it needs are missing: {}", which.join("; "))
}

/// Connects to our own server within this process. That takes a while, in which other work
/// continues.
async fn connect_here(connect: &ConnectOwn, server: &McpServer) -> Option<UnixStream> {
    let (connect, server, scope) = (Arc::clone(connect), server.clone(), scope::current());
    let connected = tokio::task::spawn_blocking(move || {
        scope::enter(scope);
        connect(&server)
    });
    connected.await.ok().flatten()
}

/// Our own server if it is `here`, in this process; else a process.
fn way(
    server: &McpServer,
    options: &McpOptions<'_>,
    here: Option<UnixStream>,
) -> Result<Way, String> {
    if let Some(socket) = here {
        return Way::socket(socket);
    }
    let own = server.name == OWN_SERVER;
    let withheld = |name: &OsString| {
        let name = name.to_str();
        !own && name.is_some_and(|name| options.withheld.iter().any(|it| it == name))
    };
    let env = options.env.iter().filter(|(name, _)| !withheld(name));
    let mut command = std::process::Command::new(&server.command);
    command
        .args(&server.args)
        .current_dir(options.cwd)
        .env_clear()
        .envs(env.map(|(name, value)| (name, value)))
        .envs(&server.env);
    let child = options.processes.spawn(command, true);
    child
        .map(Way::Process)
        .map_err(|error| format!("cannot start {:?}: {error}", server.command))
}

fn call_limit(env: &[(OsString, OsString)]) -> Option<Duration> {
    let said = env.iter().find(|(name, _)| name == CALL_VARIABLE);
    let said = said.and_then(|(_, value)| value.to_str()?.parse().ok());
    Some(said.map_or(CALL, Duration::from_millis))
}
