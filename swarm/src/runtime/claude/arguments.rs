//! The arguments that start Claude Code.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde_json::{Map, Value, json};
use store::atomic::{self, Durability};

use super::super::{Launch, LaunchError, McpServer, Start};
use crate::tools::{OWN_SERVER, SHELL, WORKING};

/// Variables that make a Claude Code believe it runs inside another one.
const NOT_INHERITED: [&str; 3] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
];

/// Maximum retries of a call, unless the environment sets them. Its own ten tries take minutes, in
/// which no event says that the quota is used up.
const RETRIES: &str = "6";

/// The arguments for `launch`. Long or secret ones go into files in the scratch directory.
pub(super) fn arguments(launch: &Launch, session: &str) -> Result<Vec<OsString>, LaunchError> {
    let mut all = Arguments::default();
    all.flag("-p");
    all.pair("--input-format", "stream-json");
    all.pair("--output-format", "stream-json");
    all.flag("--verbose");
    all.flag("--replay-user-messages");
    all.pair("--permission-prompt-tool", "stdio");
    if !launch.sees_users_servers() {
        all.flag("--strict-mcp-config");
    }
    if !launch.trusted {
        // Without the repository's settings its hooks do not run. Its notes for agents would be
        // left out with them; naming the directory (and a variable) adds those again.
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
        Start::Fork { session: of, .. } => {
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
    if let Some(mode) = permission_mode(launch) {
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

/// The mode as an argument. An agent that only reads asks for everything else, whatever the user's
/// settings say; others get no argument where asking is the default.
fn permission_mode(launch: &Launch) -> Option<&str> {
    let mode = launch.permission_mode.as_deref();
    match (launch.reach.is_read_only(), mode) {
        (true, Some(mode @ ("plan" | "dontAsk"))) => Some(mode),
        (true, _) => Some("default"),
        (false, Some("default" | "bubble")) => None,
        (false, mode) => mode,
    }
}

fn is_number(effort: &str) -> bool {
    !effort.is_empty() && effort.bytes().all(|byte| byte.is_ascii_digit())
}

/// The tools that there are, and those of them that need no permission.
///
/// A tool may come with a pattern, as in `Bash(git *)`: then the tool is there, and calls that fit
/// the pattern need no permission. Not so for an agent that only reads: commands that Claude Code
/// itself takes for reading need none, and the rest is refused; a pattern such as `git diff *`
/// would let `git diff --output=FILE` through. Tools of MCP servers are there anyway; those that
/// are named need no permission.
fn tools(all: &mut Arguments, launch: &Launch) {
    let filter = launch.filter();
    all.pair("--tools", filter.apply(WORKING).join(","));
    let mut allowed: Vec<&str> = Vec::new();
    let ours = format!("mcp__{OWN_SERVER}");
    if launch.has_own_tools() {
        allowed.push(&ours);
    }
    let rules = filter.allowed().unwrap_or_default().iter();
    let rules = rules.map(String::as_str).filter(|rule| {
        let command = rule.starts_with(SHELL);
        let of_server = rule.starts_with("mcp__") && !rule.starts_with(&ours);
        let of_server = of_server && !launch.reach.is_read_only();
        of_server || (rule.contains('(') && !(command && launch.reach.is_read_only()))
    });
    allowed.extend(rules);
    if !allowed.is_empty() {
        all.pair("--allowedTools", allowed.join(","));
    }
    if !launch.disallowed_tools.is_empty() {
        all.pair("--disallowedTools", launch.disallowed_tools.join(","));
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
    // Else tools of servers are hidden until the model searches for them, and it has no tool
    // for that.
    set("ENABLE_TOOL_SEARCH", "false", true);
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
