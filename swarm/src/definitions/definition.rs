//! The fields of a definition.

use serde_json::{Map, Value, json};
use store::name::Name;

/// A type of agent: its prompt, and how it is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The name by which a caller asks for it.
    pub name: Name,
    /// The occasions to use it.
    pub description: String,
    /// Its whole system prompt; it replaces the default one.
    pub prompt: String,
    /// The tools it may use; `None` means all.
    pub tools: Option<Vec<String>>,
    /// Tools it may not use, whatever `tools` says.
    pub disallowed_tools: Vec<String>,
    /// A model's name or family, or `inherit`.
    pub model: Option<String>,
    /// The model's effort of thinking.
    pub effort: Option<Effort>,
    /// The name of the runtime that runs it.
    pub runtime: Option<String>,
    /// The actions it may take without asking.
    pub permission_mode: PermissionMode,
    /// After so many turns it ends.
    pub max_turns: Option<u32>,
    /// True if it always runs in the background.
    pub background: bool,
    /// The isolation it asks for; `None` if it works where its starter does.
    pub isolation: Option<Isolation>,
    /// The scope of its memory from run to run; `None` if it has no memory.
    pub memory: Option<MemoryScope>,
    /// MCP servers it gets besides those of every agent.
    pub mcp_servers: Vec<McpServer>,
    /// MCP servers it does not start without.
    pub required_mcp_servers: Vec<String>,
    /// Hooks that live as long as it does, as written.
    pub hooks: Map<String, Value>,
    /// Skills it starts with.
    pub skills: Vec<String>,
    /// Goes before its first user turn.
    pub initial_prompt: Option<String>,
    /// The colour in which it is shown.
    pub color: Option<String>,
}

/// The effort with which a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// `low`.
    Low,
    /// `medium`.
    Medium,
    /// `high`.
    High,
    /// A number whose meaning is the runtime's.
    Level(u32),
}

impl std::fmt::Display for Effort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Low => f.write_str("low"),
            Self::Medium => f.write_str("medium"),
            Self::High => f.write_str("high"),
            Self::Level(level) => write!(f, "{level}"),
        }
    }
}

impl Effort {
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(word) => match word.as_str() {
                "low" => Some(Self::Low),
                "medium" => Some(Self::Medium),
                "high" => Some(Self::High),
                number => number.parse().ok().map(Self::Level),
            },
            number => Some(Self::Level(u32::try_from(number.as_u64()?).ok()?)),
        }
    }

    fn to_json(self) -> Value {
        match self {
            Self::Level(level) => level.into(),
            word => word.to_string().into(),
        }
    }
}

store::words! {
    /// The actions an agent may take without asking, in Claude Code's words.
    #[derive(Default)]
    pub enum PermissionMode {
        /// Asks for whatever is not allowed.
        Ask = "default",
        /// Edits files of its own worktree. The default of a definition without a mode.
        #[default]
        AcceptEdits = "acceptEdits",
        /// Changes nothing until its plan is approved.
        Plan = "plan",
        /// Calls that are not allowed are denied.
        DontAsk = "dontAsk",
        /// A model decides.
        Auto = "auto",
        /// Anything.
        Bypass = "bypassPermissions",
    }
}

impl PermissionMode {
    /// The mode that an agent with this word has.
    pub fn of_agent(word: &str) -> Option<Self> {
        match word {
            // Claude Code's word for a helper that asks its starter.
            "bubble" => Some(Self::Ask),
            word => Self::parse(word),
        }
    }

    /// The rank of the mode by the calls it allows. Of two modes the lower one allows nothing that
    /// the higher one does not: `dontAsk` denies the calls that `default` asks about.
    fn width(self) -> u8 {
        match self {
            Self::Plan => 0,
            Self::DontAsk => 1,
            Self::Ask => 2,
            Self::AcceptEdits => 3,
            Self::Auto => 4,
            Self::Bypass => 5,
        }
    }

    /// True if it lets something through that `other` does not.
    pub fn is_wider_than(self, other: Self) -> bool {
        self.width() > other.width()
    }

    /// The narrower of the two.
    #[must_use]
    pub fn at_most(self, most: Self) -> Self {
        match self.is_wider_than(most) {
            true => most,
            false => self,
        }
    }
}

/// The place an agent works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In a git worktree of its own.
    Worktree,
}

store::words! {
    /// The agents that share a memory.
    pub enum MemoryScope {
        /// All projects of this user.
        User = "user",
        /// All users who work on this repository.
        Project = "project",
        /// This user in this repository.
        Local = "local",
    }
}

/// An MCP server an agent gets.
#[derive(Debug, Clone, PartialEq)]
pub enum McpServer {
    /// A server that is configured elsewhere.
    Named(String),
    /// A server that the definition contains.
    Inline {
        /// Its name, the middle of its tools' names.
        name: String,
        /// The object that Claude Code would have in `mcpServers` under that name.
        config: Map<String, Value>,
    },
}

impl McpServer {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::Inline { name, .. } => name,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Named(name) => name.as_str().into(),
            Self::Inline { name, config } => json!({ name.as_str(): config }),
        }
    }
}

impl Definition {
    /// True if it contains something that runs outside the agent: hooks, or MCP servers of its own.
    /// In a repository these need the user's trust.
    pub fn runs_code(&self) -> bool {
        let inline = |server: &McpServer| matches!(server, McpServer::Inline { .. });
        !self.hooks.is_empty() || self.mcp_servers.iter().any(inline)
    }

    /// Every key that says something, with the names definitions use. The prompt is `prompt`.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| {
            let empty = match &value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty(),
                _ => false,
            };
            if !empty {
                map.insert(key.to_owned(), value);
            }
        };
        put("name", self.name.as_str().into());
        put("description", self.description.as_str().into());
        let tools = self.tools.as_ref();
        put(
            "tools",
            tools.map_or_else(|| json!(["*"]), |list| json!(list)),
        );
        put("disallowedTools", json!(self.disallowed_tools));
        put("model", json!(self.model));
        put("runtime", self.runtime.clone().into());
        put("effort", self.effort.map_or(Value::Null, Effort::to_json));
        put("permissionMode", self.permission_mode.as_str().into());
        put("maxTurns", json!(self.max_turns));
        put("background", self.background.into());
        put("isolation", json!(self.isolation.map(|_| "worktree")));
        put("memory", json!(self.memory.map(MemoryScope::as_str)));
        put(
            "mcpServers",
            self.mcp_servers.iter().map(McpServer::to_json).collect(),
        );
        put("requiredMcpServers", json!(self.required_mcp_servers));
        put("hooks", Value::Object(self.hooks.clone()));
        put("skills", json!(self.skills));
        put("initialPrompt", json!(self.initial_prompt));
        put("color", json!(self.color));
        put("prompt", self.prompt.as_str().into());
        // An empty list of tools is not the same as no list.
        if tools.is_some_and(Vec::is_empty) {
            map.insert("tools".into(), json!([]));
        }
        Value::Object(map)
    }
}
