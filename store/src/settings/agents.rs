//! `agents` and `isolation`: the rights and the surroundings of agents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::sandbox::SandboxSettings;
use super::set;
use crate::fields::{Fields, Read};
use crate::name::Name;

/// An environment variable that agents may see, and the file that allows it: a repository that asks
/// for more of the user's environment needs the user's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetThrough {
    /// A variable's name, or the start of one and `*`.
    pub pattern: String,
    /// The file that allows it.
    pub file: PathBuf,
}

/// Everything under `agents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// `autoBackgroundMs`: time after which a foreground agent continues in the background.
    pub auto_background: Duration,
    /// `stopGraceMs`: time that a stopped agent has to end by itself.
    pub stop_grace: Duration,
    /// `outputMaxBytes`: maximum of an agent's output that is kept.
    pub output_max_bytes: u64,
    /// `env`: variables agents get besides the usual ones. Each file adds to it.
    pub env: Vec<LetThrough>,
    /// `redact`: variables whose values never reach a transcript. Each file adds to it.
    pub redact: Vec<String>,
    /// `deny`: types of agents that must not be started. Each file adds to it: a repository cannot
    /// allow what the user forbids.
    pub deny: Vec<String>,
    /// `defaultRuntime`: the runtime of agents whose definition names none.
    pub default_runtime: Option<String>,
    /// `defaultProvider`: the provider of agents whose model names none.
    pub default_provider: Option<String>,
    /// `forkByDefault`: true if an agent that an agent starts without a type is a copy of it.
    pub fork_by_default: bool,
    /// `models`: the name of a model, by the runtime's name and the alias.
    pub models: BTreeMap<String, BTreeMap<String, String>>,
    /// `userMcpServers`: true if agents get the MCP servers that the user has configured for their
    /// program.
    pub user_mcp_servers: bool,
    /// `sandbox`, `sandboxNetwork`, `sandboxWrite`: the rules of each file for confining commands.
    pub sandbox: Vec<SandboxSettings>,
    /// `maxAgents`: maximum of agents of a team at once; `null` for no limit.
    pub max_agents: Option<usize>,
    /// `matesIn`: the processes that agents on `native` run in.
    pub mates_in: MatesIn,
    /// `mateMaxBytes`: maximum memory of one agent in a shared process.
    pub mate_max_bytes: u64,
    /// `mateBlockedMs`: time without a sign of life after which ccb ends such an agent.
    pub mate_blocked: Duration,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            auto_background: Duration::from_millis(120_000),
            stop_grace: Duration::from_millis(5_000),
            output_max_bytes: 8 * 1024 * 1024,
            env: Vec::new(),
            redact: Vec::new(),
            deny: Vec::new(),
            default_runtime: None,
            default_provider: None,
            fork_by_default: false,
            models: BTreeMap::new(),
            user_mcp_servers: true,
            sandbox: Vec::new(),
            max_agents: Some(MAX_AGENTS),
            mates_in: MatesIn::default(),
            mate_max_bytes: MATE_MAX_BYTES,
            mate_blocked: Duration::from_secs(60),
        }
    }
}

/// Default maximum of agents of a team at once: more than people use, and few enough that a lead
/// that starts one after the other does not overload the machine.
const MAX_AGENTS: usize = 128;
/// Many times the largest context of a model.
const MATE_MAX_BYTES: u64 = 256 * 1024 * 1024;

pub(super) const KEYS: &[&str] = &[
    "autoBackgroundMs",
    "defaultProvider",
    "defaultRuntime",
    "deny",
    "env",
    "forkByDefault",
    "mateBlockedMs",
    "mateMaxBytes",
    "matesIn",
    "maxAgents",
    "models",
    "outputMaxBytes",
    "redact",
    "sandbox",
    "sandboxNetwork",
    "sandboxWrite",
    "stopGraceMs",
    "userMcpServers",
];
const DAY_MS: u64 = 24 * 3_600_000;

impl AgentSettings {
    pub(super) fn read(&mut self, section: &Fields<'_>, file: &Path) -> Read<()> {
        section.check_keys(KEYS)?;
        let background = section.millis("autoBackgroundMs", 1..=DAY_MS)?;
        set(&mut self.auto_background, background);
        let grace = section.millis("stopGraceMs", 0..=3_600_000)?;
        set(&mut self.stop_grace, grace);
        let most = 16 * 1024 * 1024 * 1024;
        let bytes = section.number("outputMaxBytes", 4096..=most)?;
        set(&mut self.output_max_bytes, bytes);
        for pattern in strings(section, "env", "variable names")? {
            check_pattern(&pattern, section)?;
            let file = file.to_owned();
            self.env.push(LetThrough { pattern, file });
        }
        for name in strings(section, "redact", "variable names")? {
            if !is_variable(&name) {
                let why = format!("agents.redact: {name:?} names no variable");
                return Err(section.wrong("redact", why));
            }
            add(&mut self.redact, name);
        }
        for name in strings(section, "deny", "types of agents")? {
            add(&mut self.deny, checked_name(name, "deny", section)?);
        }
        if section.is_null("defaultRuntime") {
            self.default_runtime = None;
        } else if let Some(name) =
            section.read("defaultRuntime", "a runtime's name", Value::as_str)?
        {
            let name = checked_name(name.to_owned(), "defaultRuntime", section)?;
            self.default_runtime = Some(name);
        }
        if section.is_null("defaultProvider") {
            self.default_provider = None;
        } else if let Some(name) =
            section.read("defaultProvider", "a provider's name", Value::as_str)?
        {
            let name = checked_name(name.to_owned(), "defaultProvider", section)?;
            self.default_provider = Some(name);
        }
        set(&mut self.fork_by_default, section.boolean("forkByDefault")?);
        if let Some(runtimes) = section.section("models")? {
            for runtime in runtimes.keys() {
                let Some(names) = runtimes.section(runtime)? else {
                    continue;
                };
                for alias in names.keys() {
                    if let Some(model) = names.text(alias)? {
                        let known = self.models.entry(runtime.clone()).or_default();
                        known.insert(alias.clone(), model.to_owned());
                    }
                }
            }
        }
        self.sandbox.extend(SandboxSettings::read(section, file)?);
        let mates = section.word("matesIn", MatesIn::ALL, MatesIn::as_str)?;
        set(&mut self.mates_in, mates);
        let bytes = section.number("mateMaxBytes", 1024 * 1024..=most)?;
        set(&mut self.mate_max_bytes, bytes);
        let blocked = section.millis("mateBlockedMs", 1000..=DAY_MS)?;
        set(&mut self.mate_blocked, blocked);
        let servers = section.boolean("userMcpServers")?;
        set(&mut self.user_mcp_servers, servers);
        if section.is_null("maxAgents") {
            self.max_agents = None;
        } else if let Some(most) = section.number("maxAgents", 1..=10_000)? {
            self.max_agents = usize::try_from(most).ok();
        }
        Ok(())
    }
}

fn strings(section: &Fields<'_>, key: &str, of: &str) -> Read<Vec<String>> {
    Ok(section.strings(key, of)?.unwrap_or_default())
}

fn add(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

pub(super) fn checked_name(name: String, key: &str, section: &Fields<'_>) -> Read<String> {
    match Name::new("agent", &name) {
        Ok(_) => Ok(name),
        Err(error) => Err(section.wrong(key, format!("{}: {error}", section.name(key)))),
    }
}

pub(super) fn is_variable(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn check_pattern(pattern: &str, section: &Fields<'_>) -> Read<()> {
    let start = pattern.strip_suffix('*');
    if start == Some("") || is_variable(start.unwrap_or(pattern)) {
        return Ok(());
    }
    let why = format!(
        "agents.env: {pattern:?} is neither a variable's name nor the start of one and \"*\""
    );
    Err(section.wrong("env", why))
}

crate::words! {
    /// The configuration directory that agents use.
    #[derive(Default)]
    pub enum ConfigHome {
        /// The user's: logins, resumed and forked conversations need it.
        #[default]
        Shared = "shared",
        /// One for each agent.
        Own = "own",
    }
}

crate::words! {
    /// The processes that agents on `native` run in.
    #[derive(Default)]
    pub enum MatesIn {
        /// Each in processes of its own.
        #[default]
        Own = "own",
        /// All agents of a team in one process.
        Process = "process",
    }
}

impl ConfigHome {
    pub(super) fn read(&mut self, section: &Fields<'_>) -> Read<()> {
        section.check_keys(&["configHome"])?;
        set(self, section.word("configHome", Self::ALL, Self::as_str)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn agents_are_read_and_lists_only_grow() {
        let settings = load(&[
            r#"{"agents":{"autoBackgroundMs":50,"stopGraceMs":0,"env":["FOO","BAR_*"],"redact":["A"],"deny":["Plan"],"maxAgents":4,"matesIn":"process"}}"#,
            r#"{"agents":{"env":["*"],"redact":["A","B"],"deny":[],"defaultRuntime":"mine","maxAgents":null},"isolation":{"configHome":"own"}}"#,
        ])
        .unwrap();
        let agents = &settings.agents;
        assert_eq!(agents.auto_background, Duration::from_millis(50));
        assert_eq!(agents.stop_grace, Duration::ZERO);
        let patterns: Vec<&str> = agents.env.iter().map(|one| one.pattern.as_str()).collect();
        assert_eq!(patterns, ["FOO", "BAR_*", "*"]);
        assert!(agents.env[0].file.ends_with("0.json"));
        assert!(agents.env[2].file.ends_with("1.json"));
        assert_eq!(agents.redact, ["A", "B"]);
        assert_eq!(agents.deny, ["Plan"], "what is forbidden stays so");
        assert_eq!(agents.default_runtime.as_deref(), Some("mine"));
        assert_eq!(agents.max_agents, None);
        assert_eq!(agents.mates_in, MatesIn::Process);
        assert_eq!(settings.config_home, ConfigHome::Own);
        let default = load(&[]).unwrap().agents;
        assert_eq!(default.auto_background, Duration::from_secs(120));
        assert_eq!(default.stop_grace, Duration::from_secs(5));
        assert_eq!(default.output_max_bytes, 8_388_608);
        assert_eq!(default.max_agents, Some(128));
    }

    #[test]
    fn mistakes_are_refused_and_named() {
        for (bad, says) in [
            (r#"{"agents":{"envs":[]}}"#, "did you mean \"agents.env\""),
            (r#"{"agents":{"env":["A B"]}}"#, "agents.env"),
            (r#"{"agents":{"env":["A*B"]}}"#, "agents.env"),
            (r#"{"agents":{"env":"A"}}"#, "list of variable names"),
            (r#"{"agents":{"redact":["*"]}}"#, "names no variable"),
            (r#"{"agents":{"deny":["a b"]}}"#, "agents.deny"),
            (r#"{"agents":{"stopGraceMs":-1}}"#, "agents.stopGraceMs"),
            (r#"{"agents":{"outputMaxBytes":1}}"#, "4096"),
            (r#"{"agents":{"maxAgents":0}}"#, "agents.maxAgents"),
            (r#"{"agents":{"defaultRuntime":7}}"#, "defaultRuntime"),
            (r#"{"agents":{"matesIn":"thread"}}"#, "agents.matesIn"),
            (r#"{"agents":{"mateMaxBytes":1}}"#, "agents.mateMaxBytes"),
            (r#"{"isolation":{"configHome":"mine"}}"#, "configHome"),
            (r#"{"isolation":{"confighome":"own"}}"#, "did you mean"),
        ] {
            let error = load(&[bad]).expect_err(bad).to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
