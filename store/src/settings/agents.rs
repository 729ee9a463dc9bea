//! `agents` and `isolation`: what agents may do and see.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::file::File;
use crate::error::Result;
use crate::name::Name;

/// An environment variable agents may see, and which file says so: a repository that asks for
/// more of the user's environment needs the user's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetThrough {
    /// A variable's name, or the start of one and `*`.
    pub pattern: String,
    /// The file that says so.
    pub file: PathBuf,
}

/// Everything under `agents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// `autoBackgroundMs`: after this long a foreground agent goes on in the background.
    pub auto_background: Duration,
    /// `stopGraceMs`: how long an agent that is stopped may take to end by itself.
    pub stop_grace: Duration,
    /// `outputMaxBytes`: how much of an agent's output is kept.
    pub output_max_bytes: u64,
    /// `env`: variables agents get besides the usual ones. Files add to it.
    pub env: Vec<LetThrough>,
    /// `redact`: variables whose values never reach a transcript. Files add to it.
    pub redact: Vec<String>,
    /// `deny`: types of agents that must not be started. Files add to it: a repository cannot
    /// take back what the user forbids.
    pub deny: Vec<String>,
    /// `defaultRuntime`: what runs an agent when nobody says.
    pub default_runtime: Option<String>,
    /// `maxAgents`: how many of a team may run at once; `null` for as many as are started.
    pub max_agents: Option<usize>,
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
            max_agents: Some(MAX_AGENTS),
        }
    }
}

/// How many agents of a team run at once where nobody says: more than people use, and few enough
/// that a lead that starts one after the other does not take the machine down.
const MAX_AGENTS: usize = 128;

const KEYS: &[&str] = &[
    "autoBackgroundMs",
    "defaultRuntime",
    "deny",
    "env",
    "maxAgents",
    "outputMaxBytes",
    "redact",
    "stopGraceMs",
];
const DAY_MS: u64 = 24 * 3_600_000;

impl AgentSettings {
    pub(super) fn apply(&mut self, section: &Map<String, Value>, file: &File<'_>) -> Result<()> {
        file.check_keys(section, "agents.", KEYS)?;
        if let Some(value) = section.get("autoBackgroundMs") {
            let ms = file.number(value, "agents.autoBackgroundMs", 1, DAY_MS)?;
            self.auto_background = Duration::from_millis(ms);
        }
        if let Some(value) = section.get("stopGraceMs") {
            let ms = file.number(value, "agents.stopGraceMs", 0, 3_600_000)?;
            self.stop_grace = Duration::from_millis(ms);
        }
        if let Some(value) = section.get("outputMaxBytes") {
            let most = 16 * 1024 * 1024 * 1024;
            self.output_max_bytes = file.number(value, "agents.outputMaxBytes", 4096, most)?;
        }
        if let Some(value) = section.get("env") {
            for pattern in file.strings(value, "agents.env", "variable names")? {
                check_pattern(&pattern, file)?;
                let file = file.path.to_owned();
                self.env.push(LetThrough { pattern, file });
            }
        }
        if let Some(value) = section.get("redact") {
            for name in file.strings(value, "agents.redact", "variable names")? {
                if !is_variable(&name) {
                    return Err(file.error(format!("agents.redact: {name:?} names no variable")));
                }
                add(&mut self.redact, name);
            }
        }
        if let Some(value) = section.get("deny") {
            for name in file.strings(value, "agents.deny", "types of agents")? {
                add(&mut self.deny, checked_name(name, "agents.deny", file)?);
            }
        }
        match section.get("defaultRuntime") {
            None => {}
            Some(Value::Null) => self.default_runtime = None,
            Some(Value::String(name)) => {
                let name = checked_name(name.clone(), "agents.defaultRuntime", file)?;
                self.default_runtime = Some(name);
            }
            Some(_) => return Err(file.error("agents.defaultRuntime must be a runtime's name")),
        }
        match section.get("maxAgents") {
            None => {}
            Some(Value::Null) => self.max_agents = None,
            Some(value) => {
                let most = file.number(value, "agents.maxAgents", 1, 10_000)?;
                self.max_agents = usize::try_from(most).ok();
            }
        }
        Ok(())
    }
}

fn add(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

pub(super) fn checked_name(name: String, what: &str, file: &File<'_>) -> Result<String> {
    match Name::new("agent", &name) {
        Ok(_) => Ok(name),
        Err(error) => Err(file.error(format!("{what}: {error}"))),
    }
}

pub(super) fn is_variable(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn check_pattern(pattern: &str, file: &File<'_>) -> Result<()> {
    let start = pattern.strip_suffix('*');
    if start == Some("") || is_variable(start.unwrap_or(pattern)) {
        return Ok(());
    }
    let why = format!(
        "agents.env: {pattern:?} is neither a variable's name nor the start of one and \"*\""
    );
    Err(file.error(why))
}

/// Whether agents share the user's configuration directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConfigHome {
    /// The user's: logins, resumed and forked conversations need it.
    #[default]
    Shared,
    /// One for each agent.
    Own,
}

impl ConfigHome {
    pub(super) fn apply(&mut self, section: &Map<String, Value>, file: &File<'_>) -> Result<()> {
        file.check_keys(section, "isolation.", &["configHome"])?;
        if let Some(value) = section.get("configHome") {
            *self = match value.as_str() {
                Some("shared") => Self::Shared,
                Some("own") => Self::Own,
                _ => return Err(file.error("isolation.configHome must be \"shared\" or \"own\"")),
            };
        }
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
            r#"{"agents":{"autoBackgroundMs":50,"stopGraceMs":0,"env":["FOO","BAR_*"],"redact":["A"],"deny":["Plan"],"maxAgents":4}}"#,
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
            (r#"{"isolation":{"configHome":"mine"}}"#, "configHome"),
            (r#"{"isolation":{"confighome":"own"}}"#, "did you mean"),
        ] {
            let error = load(&[bad]).expect_err(bad).to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
