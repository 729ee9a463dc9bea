//! How Claude Code is started.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde_json::{Map, Value, json};
use store::atomic::{self, Durability};

use super::super::{Launch, LaunchError, McpServer, OWN_SERVER, Start};

/// Claude Code's own tools that do what ours do, or need a person in front of a terminal. With
/// both present the model takes its own, and work happens outside the board.
const WITHHELD: [&str; 25] = [
    "Agent",
    "AskUserQuestion",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "ListAgents",
    "RemoteTrigger",
    "ScheduleWakeup",
    "SendMessage",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoWrite",
    "ToolSearch",
    "Workflow",
];

/// Variables that make a Claude Code believe it runs inside another one.
const NOT_INHERITED: [&str; 3] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
];

/// How often a call is tried again, unless the environment says. Its own ten tries take minutes,
/// in which nobody learns that the quota is used up.
const RETRIES: &str = "6";

/// The arguments for `launch`. What can be long or secret goes into files in the scratch
/// directory.
pub(super) fn arguments(launch: &Launch, session: &str) -> Result<Vec<OsString>, LaunchError> {
    let mut all = Arguments::default();
    all.flag("-p");
    all.pair("--input-format", "stream-json");
    all.pair("--output-format", "stream-json");
    all.flag("--verbose");
    all.flag("--replay-user-messages");
    all.pair("--permission-prompt-tool", "stdio");
    all.flag("--strict-mcp-config");
    if !launch.trusted {
        // Without the repository's settings its hooks do not run. Its notes for agents would be
        // left out with them; naming the directory (and a variable) brings those back.
        all.pair("--setting-sources", "user");
        all.pair("--add-dir", &launch.cwd);
    }
    if let Some(dir) = launch.scratchpad().filter(|_| !launch.hands_off()) {
        // It reads and writes there like in its own directory.
        all.pair("--add-dir", dir);
    }
    match &launch.start {
        Start::New => all.pair("--session-id", session),
        Start::Resume { .. } => all.pair("--resume", session),
        Start::Fork { session: of } => {
            all.pair("--resume", of);
            all.flag("--fork-session");
            all.pair("--session-id", session);
        }
    }
    if let Some(model) = &launch.model {
        all.pair("--model", model);
    }
    if let Some(effort) = &launch.effort
        && !is_number(effort)
    {
        all.pair("--effort", effort);
    }
    if let Some(mode) = &launch.permission_mode
        && !asks_anyway(mode)
    {
        all.pair("--permission-mode", mode);
    }
    if let Some(turns) = launch.max_turns {
        all.pair("--max-turns", turns.to_string());
    }
    if let Some(cost) = launch.max_cost_usd {
        all.pair("--max-budget-usd", cost.to_string());
    }
    tools(&mut all, launch);
    if let Some(prompt) = &launch.system_prompt {
        let file = launch.scratch.join("system-prompt.txt");
        write(launch, &file, prompt.as_bytes())?;
        all.pair("--system-prompt-file", &file);
    }
    if !launch.hooks.is_empty() {
        let file = launch.scratch.join("settings.json");
        let settings = json!({ "hooks": launch.hooks }).to_string();
        write(launch, &file, settings.as_bytes())?;
        all.pair("--settings", &file);
    }
    if !launch.mcp_servers.is_empty() {
        let file = launch.scratch.join("mcp.json");
        let config = mcp_config(&launch.mcp_servers).to_string();
        write(launch, &file, config.as_bytes())?;
        all.pair("--mcp-config", &file);
    }
    Ok(all.0)
}

/// The modes that mean "ask", which is what happens without any.
fn asks_anyway(mode: &str) -> bool {
    matches!(mode, "default" | "bubble")
}

fn is_number(effort: &str) -> bool {
    !effort.is_empty() && effort.bytes().all(|byte| byte.is_ascii_digit())
}

/// Which tools there are, and which of them need no permission.
///
/// A tool may come with a pattern, as in `Bash(git *)`: then the tool is there, and what the
/// pattern covers needs no permission. Tools of MCP servers are there anyway.
fn tools(all: &mut Arguments, launch: &Launch) {
    let own = launch.has_own_tools();
    let mut withheld: Vec<&str> = launch.disallowed_tools.iter().map(String::as_str).collect();
    let mut allowed: Vec<String> = Vec::new();
    if own {
        withheld.extend(WITHHELD);
        allowed.push(format!("mcp__{OWN_SERVER}"));
    }
    if let Some(tools) = &launch.tools
        && !tools.iter().any(|tool| tool == "*")
    {
        let mut names: Vec<&str> = Vec::new();
        for tool in tools {
            let name = tool.split('(').next().unwrap_or(tool);
            if name != tool {
                allowed.push(tool.clone());
            }
            if !name.starts_with("mcp__") && !withheld.contains(&name) && !names.contains(&name) {
                names.push(name);
            }
        }
        all.pair("--tools", names.join(","));
    }
    if !allowed.is_empty() {
        all.pair("--allowedTools", allowed.join(","));
    }
    if !withheld.is_empty() {
        all.pair("--disallowedTools", withheld.join(","));
    }
}

fn mcp_config(servers: &[McpServer]) -> Value {
    let servers: Map<String, Value> = servers
        .iter()
        .map(|server| {
            let value = json!({
                "type": "stdio",
                "command": server.command,
                "args": server.args,
                "env": server.env,
            });
            (server.name.clone(), value)
        })
        .collect();
    json!({ "mcpServers": servers })
}

fn write(launch: &Launch, file: &Path, bytes: &[u8]) -> Result<(), LaunchError> {
    atomic::replace(&launch.scratch, file, bytes, Durability::Relaxed)?;
    Ok(())
}

/// The environment for `launch`.
pub(super) fn environment(launch: &Launch) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = launch
        .env
        .iter()
        .filter(|(name, _)| !NOT_INHERITED.iter().any(|not| name == not))
        .cloned()
        .collect();
    let mut set = |name: &str, value: &str, replace: bool| {
        let known = env.iter().position(|(known, _)| known == name);
        match known {
            Some(at) if replace => env[at].1 = value.into(),
            Some(_) => {}
            None => env.push((name.into(), value.into())),
        }
    };
    set("CLAUDE_CODE_MAX_RETRIES", RETRIES, false);
    // Many processes must not replace the program they all run from.
    set("DISABLE_AUTOUPDATER", "1", false);
    if launch.has_own_tools() {
        // Else our tools are hidden until the model searches for them.
        set("ENABLE_TOOL_SEARCH", "false", true);
    }
    if !launch.trusted {
        set("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1", true);
    }
    if let Some(effort) = &launch.effort
        && is_number(effort)
    {
        set("MAX_THINKING_TOKENS", effort, true);
    }
    env
}

#[derive(Debug, Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    fn pair(&mut self, flag: &str, value: impl AsRef<OsStr>) {
        self.0.push(flag.into());
        self.0.push(value.as_ref().to_owned());
    }
}
