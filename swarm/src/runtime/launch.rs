//! The input of a runtime: the agent it is to start.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::provider::Provider;
use crate::sandbox::Sandbox;
use crate::tools::{OWN_SERVER, Reach, SKILL, ToolFilter, WORKING};

/// An agent to be started. All decisions are made already; a runtime only translates them.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The first user message; for a shell, the command.
    pub prompt: String,
    /// Replaces the runtime's own system prompt.
    pub system_prompt: Option<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// A directory for files the runtime makes for this agent, such as a configuration. No other
    /// process writes there, and it is removed when the run has ended.
    pub scratch: PathBuf,
    /// A directory for the runtime's files about the conversation. It lives as long as the run's
    /// records do; `None` where no records are kept.
    pub records: Option<PathBuf>,
    /// The model, as the runtime names it; `None` takes its default.
    pub model: Option<String>,
    /// The model's effort of thinking.
    pub effort: Option<String>,
    /// The only tools it may use; `None` allows all.
    pub tools: Option<Vec<String>>,
    /// Tools it must not use.
    pub disallowed_tools: Vec<String>,
    /// The access its tools have to files. One that only reads must not be able to write, as far as
    /// its program can be kept from it.
    pub reach: Reach,
    /// The actions it may take without asking, by Claude Code's names.
    pub permission_mode: Option<String>,
    /// The most turns it may take.
    pub max_turns: Option<u32>,
    /// The most it may cost.
    pub max_cost_usd: Option<f64>,
    /// MCP servers it gets, ours among them.
    pub mcp_servers: Vec<McpServer>,
    /// The servers it does not start without.
    pub required_servers: Vec<String>,
    /// Hooks of its definition that the program itself runs, by event.
    pub hooks: Map<String, Value>,
    /// True if what the repository itself configures for the program, such as hooks, may take
    /// effect.
    pub trusted: bool,
    /// True if it gets no MCP servers but those given here.
    pub only_given_servers: bool,
    /// The service of our own loop's model; `None` leaves it to the environment.
    pub provider: Option<Provider>,
    /// A new conversation, or one that is resumed.
    pub start: Start,
    /// Directories it may also write to, such as its memory.
    pub also_write: Vec<PathBuf>,
    /// The confinement of its commands; `None` if they are not confined.
    pub sandbox: Option<Sandbox>,
    /// Names of variables, or beginnings of names with `*`, that the user lets agents have besides
    /// the usual ones.
    pub pass_env: Vec<String>,
}

impl Launch {
    /// The tools it may use.
    pub(super) fn filter(&self) -> ToolFilter {
        ToolFilter::new(self.tools.clone(), self.disallowed_tools.clone())
    }

    /// True if it gets no tools but ours: one that only decides.
    pub fn hands_off(&self) -> bool {
        let filter = self.filter();
        let works = |tool: &&str| *tool != SKILL && filter.permits(tool);
        self.has_own_tools() && !WORKING.iter().any(works)
    }

    /// True if it gets the MCP servers that the user has for the program: not one that reads or
    /// decides only, nor one whose tools are listed and none of them is a server's.
    pub(crate) fn sees_users_servers(&self) -> bool {
        let own = format!("mcp__{OWN_SERVER}");
        let others =
            |tool: &String| tool == "*" || (tool.starts_with("mcp__") && !tool.starts_with(&own));
        let listed = self.tools.as_ref();
        !self.only_given_servers
            && !self.reach.is_read_only()
            && listed.is_none_or(|tools| tools.iter().any(others))
    }

    /// The notes all agents of the team share, if there are any.
    pub(super) fn scratchpad(&self) -> Option<&Path> {
        let named = |(name, _): &&(OsString, OsString)| name == "CCB_SCRATCHPAD";
        let (_, path) = self.env.iter().find(named)?;
        Some(Path::new(path)).filter(|path| path.is_dir())
    }

    /// True if the agent gets our tools.
    pub fn has_own_tools(&self) -> bool {
        self.mcp_servers
            .iter()
            .any(|server| server.name == OWN_SERVER)
    }
}

/// The point where the conversation starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Start {
    /// At its beginning.
    #[default]
    New,
    /// At the end of this session.
    Resume {
        /// The id from [`super::Event::Started`].
        session: String,
    },
    /// At a copy of this session.
    Fork {
        /// The id from [`super::Event::Started`].
        session: String,
        /// The last line of the conversation that the copy gets; `None` means all of them. Only our
        /// own loop has such lines.
        at: Option<Uuid>,
    },
}

/// An MCP server on standard input and output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// The name that its tools begin with.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables on top of the agent's own.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl McpServer {
    /// A server as configuration files describe it; else what is wrong, to be said after its name.
    pub fn from_config(name: &str, config: &Map<String, Value>) -> Result<Self, String> {
        let Some(command) = config.get("command").and_then(Value::as_str) else {
            return Err("only servers that are started by a \"command\" can be passed on".into());
        };
        let args = match config.get("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
                let texts = list.iter().filter_map(Value::as_str);
                texts.map(str::to_owned).collect()
            }
            Some(_) => return Err("\"args\" must be a list of texts".into()),
        };
        let env = match config.get("env") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) if map.values().all(Value::is_string) => map.clone(),
            Some(_) => return Err("\"env\" must be names and texts".into()),
        };
        let env = env.iter().filter_map(|(key, value)| {
            let value = value.as_str()?.to_owned();
            Some((key.clone(), value))
        });
        Ok(Self {
            name: name.to_owned(),
            command: command.to_owned(),
            args,
            env: env.collect(),
        })
    }
}

/// The reason why an agent did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The program is not there, or cannot be run.
    #[error("cannot start {program:?}: {source}")]
    Program {
        /// Its name.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The runtime cannot do what it was asked.
    #[error("{0}")]
    Unsupported(String),
    /// A file it needs could not be written.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}
