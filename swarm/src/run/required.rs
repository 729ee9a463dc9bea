//! MCP servers an agent does not start without.
//!
//! Each of them is started once beforehand and asked for its tools, in the same surroundings
//! the agent will have: programs differ in how they tell that a server did not come up, and some
//! do not tell at all.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout_at};

use crate::process::{Processes, signal_group};
use crate::runtime::{Launch, Line, LineReader, McpServer};

/// Maximum time for all of them together.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum bytes of a server's line.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// Fails with the names of those that are not there or have no tools, and why.
pub(super) async fn servers(launch: &Launch, processes: &Processes) -> Result<(), String> {
    let until = Instant::now() + LIMIT;
    let mut missing = Vec::new();
    for name in &launch.required_servers {
        let server = launch.mcp_servers.iter().find(|one| one.name == *name);
        let answer = match server {
            None => Err("it is not among its servers".to_owned()),
            Some(server) => {
                let tools = tools(server, launch, processes);
                let late = Err("it did not show a tool in time".to_owned());
                timeout_at(until, tools).await.unwrap_or(late)
            }
        };
        match answer {
            Ok(0) => missing.push(format!("{name}: it has no tools")),
            Ok(_) => {}
            Err(why) => missing.push(format!("{name}: {why}")),
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "MCP servers it needs are missing: {}",
            missing.join("; ")
        )),
    }
}

/// The number of tools the server has.
async fn tools(
    server: &McpServer,
    launch: &Launch,
    processes: &Processes,
) -> Result<usize, String> {
    let mut command = Command::new(&server.command);
    command
        .args(&server.args)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .envs(&server.env);
    let mut child = processes
        .spawn(command, true)
        .map_err(|error| format!("cannot start {:?}: {error}", server.command))?;
    // However this ends, the server does, too.
    let _end = End(child.pid);
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("it has no pipes".into());
    };
    let client = json!({ "name": "ccb", "version": env!("CARGO_PKG_VERSION") });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let mut lines = LineReader::new(stdout, MAX_LINE);
    tell(&mut stdin, &request(1, "initialize", &hello)).await?;
    answer(&mut lines, 1).await?;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    tell(&mut stdin, &ready).await?;
    tell(&mut stdin, &request(2, "tools/list", &json!({}))).await?;
    let listed = answer(&mut lines, 2).await?;
    Ok(listed["tools"].as_array().map_or(0, Vec::len))
}

struct End(rustix::process::Pid);

impl Drop for End {
    fn drop(&mut self) {
        signal_group(self.0, Signal::KILL);
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

async fn tell(stdin: &mut tokio::net::unix::pipe::Sender, line: &Value) -> Result<(), String> {
    let line = format!("{line}\n");
    let written = stdin.write_all(line.as_bytes()).await;
    written.map_err(|error| format!("it does not listen: {error}"))
}

/// The result of request `id`.
async fn answer(lines: &mut LineReader, id: u64) -> Result<Value, String> {
    while let Ok(Some(line)) = lines.next().await {
        let Line::Whole(bytes) = line else {
            continue;
        };
        let Ok(message) = serde_json::from_slice::<Value>(&bytes) else {
            continue;
        };
        if message["id"] != id {
            continue;
        }
        return match message.get("error") {
            Some(error) => Err(format!("it answered {error}")),
            None => Ok(message["result"].clone()),
        };
    }
    Err("it ended without an answer".into())
}
