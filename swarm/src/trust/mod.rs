//! The parts of a repository that may run code, or see more of the user's environment, and those of
//! them that the user trusts.
//!
//! Trust is given to things, not to places: an [`Item`] is trusted by what it would run, with the
//! scripts of the repository it names, for one repository. If any of that changes, it has to be
//! given again. Nothing implies it.

mod file;
mod scripts;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use store::atomic;
use store::settings::{LetThrough, ProviderSettings, RuntimeSettings, SetUpCommand, Settings};

pub use file::Trust;
use scripts::Script;

use crate::definitions::{Definitions, Found, McpServer};
use crate::hooks::{Hook, HookEvent, Hooks};

store::words! {
    /// The kinds of things in a repository that need the user's trust.
    pub enum Kind {
        /// A hook of ours.
        Hook = "hook",
        /// Hooks of an agent that its runtime runs.
        AgentHooks = "agent-hooks",
        /// An MCP server of an agent.
        AgentServer = "agent-mcp-server",
        /// A way to run agents.
        Runtime = "runtime",
        /// A service that gets conversations, and perhaps a key.
        Provider = "provider",
        /// A command for every new worktree.
        SetUp = "setup",
        /// A variable agents get to see.
        Environment = "environment",
        /// An MCP server of the repository.
        Server = "mcp-server",
        /// The repository's configuration of an agent's program itself.
        ProgramSettings = "program-settings",
        /// The instructions for a coordinator.
        Coordinator = "coordinator",
    }
}

/// The directories in which commands find the files they name.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The worktree they run in. An agent may have changed what is there.
    pub tree: &'a Path,
    /// The value of `CLAUDE_PROJECT_DIR`.
    pub project: &'a Path,
}

impl<'a> Places<'a> {
    /// The same place for both.
    pub fn one(root: &'a Path) -> Self {
        Self {
            tree: root,
            project: root,
        }
    }
}

/// A thing in a repository that needs the user's trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its kind.
    pub kind: Kind,
    /// The event, the runtime, the agent: what it is for.
    pub name: String,
    /// The command that it would run, or the variables that it would let through.
    pub what: String,
    /// The file that says so.
    pub file: Option<PathBuf>,
    /// Files of the repository that it names, and what is in them.
    scripts: Vec<Script>,
}

impl Item {
    fn new(kind: Kind, name: impl Into<String>, what: String, file: Option<&Path>) -> Self {
        Self {
            kind,
            name: name.into(),
            what,
            file: file.map(Path::to_owned),
            scripts: Vec::new(),
        }
    }

    /// Adds the files of the repository that these commands or words name.
    fn naming(mut self, words: &[&str], places: Places<'_>) -> Self {
        self.scripts = scripts::named_in(words, places);
        self
    }

    /// An item that consists of configuration, with the files that any text in it names.
    fn configured(
        kind: Kind,
        name: impl Into<String>,
        config: &Value,
        file: Option<&Path>,
        places: Places<'_>,
    ) -> Self {
        let mut words = Vec::new();
        texts(config, &mut words);
        Self::new(kind, name, config.to_string(), file).naming(&words, places)
    }

    /// A hook, from settings or from an agent's definition.
    pub fn hook(hook: &Hook, places: Places<'_>) -> Self {
        let what = hook.command.clone();
        let item = Self::new(Kind::Hook, hook.event.as_str(), what, hook.origin.file());
        item.naming(&[&hook.command], places)
    }

    /// The command for new worktrees.
    pub fn set_up(command: &SetUpCommand, places: Places<'_>) -> Self {
        let what = command.command.clone();
        let item = Self::new(Kind::SetUp, "worktree.setup", what, Some(&command.file));
        item.naming(&[&command.command], places)
    }

    /// A way to run agents.
    pub fn runtime(name: &str, runtime: &RuntimeSettings, places: Places<'_>) -> Self {
        let what = json!({
            "kind": runtime.kind,
            "command": runtime.command,
            "args": runtime.args,
            "env": runtime.env,
        });
        let words: Vec<&str> = runtime
            .command
            .iter()
            .chain(&runtime.args)
            .chain(runtime.env.values())
            .map(String::as_str)
            .collect();
        let item = Self::new(Kind::Runtime, name, what.to_string(), Some(&runtime.file));
        item.naming(&words, places)
    }

    /// A service that gets conversations, and perhaps a key.
    pub fn provider(name: &str, provider: &ProviderSettings, _: Places<'_>) -> Self {
        let what = json!({
            "kind": provider.kind,
            "baseUrl": provider.base_url,
            "keyEnv": provider.key_env,
            "model": provider.model,
            "headers": provider.headers,
        });
        let file = Some(provider.file.as_path());
        Self::new(Kind::Provider, name, what.to_string(), file)
    }

    /// A variable agents get to see.
    pub fn environment(variable: &LetThrough) -> Self {
        let what = variable.pattern.clone();
        Self::new(Kind::Environment, "agents.env", what, Some(&variable.file))
    }

    /// An MCP server that an agent's definition contains; `None` for one that is only named.
    pub fn agent_server(found: &Found, server: &McpServer, places: Places<'_>) -> Option<Self> {
        let McpServer::Inline { name, config } = server else {
            return None;
        };
        let name = format!("{}/{name}", found.definition.name);
        let (config, file) = (Value::Object(config.clone()), found.source.file());
        let kind = Kind::AgentServer;
        Some(Self::configured(kind, name, &config, file, places))
    }

    /// The hooks of an agent's definition that are not ours but its runtime's; `None` if there
    /// are none.
    pub fn agent_hooks(found: &Found, places: Places<'_>) -> Option<Self> {
        let mut hooks = found.definition.hooks.clone();
        hooks.retain(|event, _| event != "Stop" && HookEvent::parse(event).is_none());
        if hooks.is_empty() {
            return None;
        }
        let (hooks, file) = (Value::Object(hooks), found.source.file());
        let name = found.definition.name.as_str();
        let kind = Kind::AgentHooks;
        Some(Self::configured(kind, name, &hooks, file, places))
    }

    /// An MCP server that the repository configures for all its users.
    pub fn server(name: &str, config: &Map<String, Value>, places: Places<'_>) -> Self {
        let config = Value::Object(config.clone());
        let file = places.project.join(SERVERS);
        Self::configured(Kind::Server, name, &config, Some(&file), places)
    }

    /// The settings in Claude Code's files in `dir` for that program itself; our own hooks are
    /// listed one by one.
    pub fn program_settings(dir: &Path, places: Places<'_>) -> Vec<Self> {
        let files = ["settings.json", "settings.local.json"];
        let items = files.iter().filter_map(|name| {
            let file = dir.join(".claude").join(name);
            let bytes = match atomic::read(&file) {
                Ok(bytes) => bytes?,
                // A file that cannot be read was not reviewed.
                Err(error) => error.to_string().into_bytes(),
            };
            let mut settings = match serde_json::from_slice::<Value>(&bytes) {
                Ok(settings) => settings,
                Err(_) => String::from_utf8_lossy(&bytes).into_owned().into(),
            };
            if let Some(hooks) = settings.get_mut("hooks").and_then(Value::as_object_mut) {
                hooks.retain(|event, _| HookEvent::parse(event).is_none());
                if hooks.is_empty() {
                    settings.as_object_mut()?.shift_remove("hooks");
                }
            }
            if settings.as_object().is_some_and(Map::is_empty) {
                return None;
            }
            let kind = Kind::ProgramSettings;
            Some(Self::configured(
                kind,
                *name,
                &settings,
                Some(&file),
                places,
            ))
        });
        items.collect()
    }

    /// The repository's instructions for a coordinator; `None` if it has none.
    pub fn coordinator(places: Places<'_>) -> Option<Self> {
        let file = places.project.join(COORDINATOR);
        let what = match atomic::read(&file) {
            Ok(bytes) => String::from_utf8_lossy(&bytes?).into_owned(),
            // A file that cannot be read was not reviewed.
            Err(error) => error.to_string(),
        };
        let name = "coordinator.md";
        Some(Self::new(Kind::Coordinator, name, what, Some(&file)))
    }

    /// The id of the item. It changes with everything that would run, and only with that: the same
    /// thing in another worktree has the same id.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &[u8]| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(self.kind.as_str().as_bytes());
        add(self.name.as_bytes());
        add(self.what.as_bytes());
        for script in &self.scripts {
            add(script.path.as_bytes());
            add(script.hash.as_bytes());
        }
        hex(&hash.finalize())
    }

    /// The files of the repository that count as part of it.
    pub fn scripts(&self) -> impl Iterator<Item = &str> {
        self.scripts.iter().map(|script| script.path.as_str())
    }

    /// `{"kind","name","what","file"?,"scripts"?}`.
    pub fn to_json(&self) -> Value {
        let mut value = json!({"kind": self.kind.as_str(), "name": self.name, "what": self.what});
        if let Some(file) = &self.file {
            value["file"] = file.to_string_lossy().into();
        }
        if !self.scripts.is_empty() {
            value["scripts"] = self.scripts().collect();
        }
        value
    }
}

/// The file with a repository's instructions for a coordinator.
pub const COORDINATOR: &str = ".claude/coordinator.md";
/// The file in which a repository names its MCP servers.
pub const SERVERS: &str = ".mcp.json";

/// Servers as they are configured, by name.
pub type Servers = Vec<(String, Map<String, Value>)>;

/// The `mcpServers` of a file; a file that does not exist names none.
pub fn servers_of(file: &Path) -> Result<Servers, String> {
    let words = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let bytes = match atomic::read(file) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => return Err(words(&error)),
    };
    let document: Value = serde_json::from_slice(&bytes).map_err(|error| words(&error))?;
    let servers = document.get("mcpServers").and_then(Value::as_object);
    let servers = servers.into_iter().flatten();
    let servers = servers.filter_map(|(name, config)| {
        let config = config.as_object()?.clone();
        Some((name.clone(), config))
    });
    Ok(servers.collect())
}

/// Every text in `value`.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(list) => list.iter().for_each(|one| texts(one, found)),
        Value::Object(map) => map.values().for_each(|one| texts(one, found)),
        _ => {}
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All items of the repository that need the user's trust. `own` is the user's own settings file.
pub fn gather(
    settings: &Settings,
    own: &Path,
    hooks: &Hooks,
    definitions: &Definitions,
    places: Places<'_>,
) -> Vec<Item> {
    let mut items = Vec::new();
    let foreign = |hook: &&Hook| hook.origin.is_repository();
    items.extend(
        hooks
            .all
            .iter()
            .filter(foreign)
            .map(|hook| Item::hook(hook, places)),
    );
    let set_up = settings.worktree.set_up.as_ref();
    let set_up = set_up.filter(|command| command.file != own);
    items.extend(set_up.map(|command| Item::set_up(command, places)));
    for (name, runtime) in &settings.runtimes {
        if runtime.file != own {
            items.push(Item::runtime(name, runtime, places));
        }
    }
    for (name, provider) in &settings.providers {
        if provider.file != own {
            items.push(Item::provider(name, provider, places));
        }
    }
    let variables = settings.agents.env.iter();
    let foreign = variables.filter(|variable| variable.file != own);
    items.extend(foreign.map(Item::environment));
    let servers = servers_of(&places.project.join(SERVERS)).unwrap_or_default();
    let servers = servers.iter();
    items.extend(servers.map(|(name, config)| Item::server(name, config, places)));
    items.extend(Item::program_settings(places.project, places));
    items.extend(Item::coordinator(places));
    for found in definitions
        .iter()
        .filter(|found| found.source.is_repository())
    {
        let own_hooks = Hooks::default().with_agent(found);
        items.extend(own_hooks.all.iter().map(|hook| Item::hook(hook, places)));
        items.extend(Item::agent_hooks(found, places));
        let servers = found.definition.mcp_servers.iter();
        items.extend(servers.filter_map(|server| Item::agent_server(found, server, places)));
    }
    items
}
