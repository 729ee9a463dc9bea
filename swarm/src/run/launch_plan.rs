//! The input of a run's runtime, kept with the run so that it can be used again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::agent_id::LEAD;
use store::home::Home;
use store::settings::AgentLimits;
use uuid::Uuid;

use super::meta::Meta;
use crate::definitions::Source;
use crate::fork::Moved;
use crate::process::MARKER;
use crate::provider::Provider;
use crate::runtime::{Launch, McpServer, RuntimeKind, Start};
use crate::sandbox::Sandbox;
use crate::tools::{OWN_SERVER, Reach, ToolFilter};

/// Variables by which programs find their configuration.
pub const CONFIG_HOMES: &[&str] = &[
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];
/// The variables that say where an agent belongs, besides our own.
const TEAM_VARIABLES: &[&str] = &[
    "CLAUDE_CODE_TASK_LIST_ID",
    "CLAUDE_CODE_TEAM_NAME",
    "TMPDIR",
];

/// The proof that a run needs before its task counts as done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prove {
    /// A command that has to succeed on the commit; where the agent worked if it has no worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
    /// Time limit of the check in milliseconds.
    pub timeout_ms: u64,
    /// The message with which the agent's uncommitted changes in its worktree are committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// A task that failed so often is parked.
    pub max_attempts: usize,
    /// True if every attempt is made, even if each fails the same way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_attempts: bool,
    /// Maximum repeats of a failed check on the same commit.
    #[serde(default, skip_serializing_if = "is_none")]
    pub check_retries: u32,
    /// The ref (`refs/ccb/<this>`) that keeps the commit once it counts, so that the worktree it
    /// was made in can be used for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_as: Option<String>,
    /// The files that the agent may change.
    #[serde(default, skip_serializing_if = "FileRules::is_empty")]
    pub files: FileRules,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(number: &u32) -> bool {
    *number == 0
}

/// The files that an agent may change in its own worktree. Work that breaks a rule does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileRules {
    /// Patterns of those it may change; without any, all but the protected ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Patterns of files it may not change. One that begins with `!` takes back what an earlier one
    /// says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
}

impl FileRules {
    /// True if every file may be changed.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.protect.is_empty()
    }
}

impl Prove {
    /// Time limit of a check that sets none.
    pub const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1800);
    /// Maximum attempts at a task that sets no number.
    pub const ATTEMPTS: usize = 3;
}

impl Default for Prove {
    fn default() -> Self {
        Self {
            verify: None,
            timeout_ms: u64::try_from(Self::TIMEOUT.as_millis()).unwrap_or(u64::MAX),
            commit: None,
            max_attempts: Self::ATTEMPTS,
            all_attempts: false,
            check_retries: 0,
            keep_as: None,
            files: FileRules::default(),
        }
    }
}

/// The input of an agent's runtime, without the part that the run records already.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LaunchPlan {
    /// Replaces the runtime's own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The colour in which it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The model's effort of thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The only tools it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools it must not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// The access its tools have to the files it works on.
    #[serde(skip_serializing_if = "is_usual")]
    pub reach: Reach,
    /// The widest mode that an order can set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_mode: Option<String>,
    /// The mode it gets when its plan is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_before_plan: Option<String>,
    /// The beginnings of commands that were approved together with its plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_commands: Vec<String>,
    /// Permissions of the agents it starts, if they differ from its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<Grants>,
    /// The most turns it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The most it may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// The most tokens it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Its time limit in milliseconds; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_clock_ms: Option<u64>,
    /// MCP servers it gets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
    /// True if it gets no other servers, not even those that the user has for its program.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_given_servers: bool,
    /// The servers it does not start without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_servers: Vec<String>,
    /// Hooks of its definition that the program itself runs.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub runtime_hooks: Map<String, Value>,
    /// The run whose configuration the program uses instead of the user's; an empty name stands
    /// for the run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_of: Option<String>,
    /// True if the repository's configuration of the program itself may take effect. Decided at
    /// every start, when the content of the agent's worktree is known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// Its role in the team; `None` for older runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Standing>,
    /// True if it does one piece of work for a coordinator, and starts no agents.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub worker: bool,
    /// The proof that its task needs to count as done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prove: Option<Prove>,
    /// The hooks of its definition, which live as long as it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<DefinedHooks>,
    /// The session it is a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<String>,
    /// The last line of that conversation that it knows of; `None` takes all lines there are when
    /// it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_at: Option<Uuid>,
    /// The working directory of the agent it is a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_from: Option<PathBuf>,
    /// Variables it gets besides those of the engine; values that are secret are not here, but
    /// taken from the environment when it starts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of variables, or beginnings of names with `*`, that are passed on besides the usual
    /// ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// Directories it may also write to, such as its memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_write: Vec<PathBuf>,
    /// The confinement of its commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// Names of variables whose values are left out of transcripts, besides the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redact_env: Vec<String>,
    /// The service of our own loop's model; without its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Fields written by a later version.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

store::words! {
    /// The role of an agent in its team, which decides what it may do.
    pub enum Standing {
        /// Leads the team.
        Lead = "lead",
        /// Leads it by planning and delegating alone.
        Coordinator = "coordinator",
        /// Takes part in the team.
        Teammate = "teammate",
        /// Does one piece of work.
        Worker = "worker",
    }
}

impl Standing {
    /// The role of a run's agent.
    pub fn of(meta: &Meta) -> Self {
        let plan = &meta.launch;
        let leads = meta.address().eq_ignore_ascii_case(LEAD);
        match plan.role {
            Some(role) => role,
            // A run of a version that did not write it down.
            None if plan.worker => Self::Worker,
            None if leads && serves_coordinator(plan) => Self::Coordinator,
            None if leads => Self::Lead,
            None => Self::Teammate,
        }
    }

    /// True if it decides for its team.
    pub fn leads(self) -> bool {
        matches!(self, Self::Lead | Self::Coordinator)
    }
}

fn serves_coordinator(plan: &LaunchPlan) -> bool {
    let mut servers = plan.mcp_servers.iter();
    let own = servers.find(|server| server.name == OWN_SERVER);
    own.is_some_and(|server| server.args.iter().any(|arg| arg == "coordinator"))
}

/// The permissions that an agent which only delegates gives to the agents it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Grants {
    /// The only tools they may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools they must not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// The widest mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

fn is_usual(reach: &Reach) -> bool {
    !reach.is_read_only()
}

/// The hooks of an agent's definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinedHooks {
    /// The source of the hooks: those of a repository need the user's trust.
    pub source: Source,
    /// The hooks as the definition has them.
    pub events: Map<String, Value>,
}

impl LaunchPlan {
    /// The tools it may use.
    pub fn filter(&self) -> ToolFilter {
        ToolFilter::new(self.tools.clone(), self.disallowed_tools.clone())
    }

    /// Lets it use this much and no more.
    pub fn limit(&mut self, limits: &AgentLimits) {
        self.max_turns = limits.turns;
        self.max_cost_usd = limits.cost_usd;
        self.max_tokens = limits.tokens;
        let ms = limits.wall_clock.map(|time| time.as_millis());
        self.wall_clock_ms = ms.and_then(|ms| u64::try_from(ms).ok());
    }

    /// Its limits.
    pub fn limits(&self) -> AgentLimits {
        AgentLimits {
            turns: self.max_turns,
            wall_clock: self.wall_clock_ms.map(Duration::from_millis),
            tokens: self.max_tokens,
            cost_usd: self.max_cost_usd,
        }
    }

    /// The same with the run's name where it stands for itself, so that a copy of the agent
    /// finds it.
    pub fn of_run(&self, id: &str) -> Self {
        let own = self.config_of.as_ref();
        Self {
            config_of: own.map(|of| if of.is_empty() { id } else { of }.to_owned()),
            ..self.clone()
        }
    }

    /// The input of the runtime.
    pub fn launch(self, meta: &Meta, prompt: String, env: Vec<(OsString, OsString)>) -> Launch {
        let start = match (&meta.session, self.fork_of, meta.goes_on()) {
            (Some(session), _, true) => Start::Resume {
                session: session.clone(),
            },
            (_, Some(session), _) => {
                let at = self.fork_at;
                Start::Fork { session, at }
            }
            _ => Start::New,
        };
        // A copy gets a text that it is one, and where it is, when it begins. One that ended before
        // it began is copied again.
        let prompt = match (&self.fork_from, &start) {
            (Some(from), Start::Fork { .. }) => {
                let native = meta.runtime.kind == RuntimeKind::Native;
                crate::fork::directive(
                    &prompt,
                    &Moved {
                        from,
                        to: &meta.cwd,
                        // Only our own loop tells its agents the directory of their temporary
                        // files.
                        tmp: meta.tmp.as_deref().filter(|_| native),
                    },
                )
            }
            _ => prompt,
        };
        Launch {
            prompt,
            system_prompt: self.system_prompt,
            cwd: meta.cwd.clone(),
            scratch: meta.tmp.clone().unwrap_or_else(std::env::temp_dir),
            // The host knows where the run is kept.
            records: None,
            model: meta.model.clone(),
            effort: self.effort,
            tools: self.tools,
            disallowed_tools: self.disallowed_tools,
            reach: self.reach,
            permission_mode: meta.permission_mode.clone(),
            max_turns: self.max_turns,
            max_cost_usd: self.max_cost_usd,
            mcp_servers: with_identity(self.mcp_servers, &env),
            required_servers: self.required_servers,
            hooks: self.runtime_hooks,
            trusted: self.trusted,
            only_given_servers: self.only_given_servers,
            provider: self.provider,
            env,
            start,
            also_write: self.also_write,
            sandbox: self.sandbox,
            pass_env: self.pass_env,
        }
    }

    /// The directory of the program's configuration, if that is not the user's.
    pub fn config_home(&self, home: &Home, meta: &Meta) -> Option<PathBuf> {
        let of = self.config_of.as_deref()?;
        let of = if of.is_empty() { &meta.agent_id } else { of };
        let runs = home.path().join("teams").join(&meta.team).join("runs");
        Some(runs.join(of).join("config"))
    }

    /// The agent's environment, from the one its host has.
    pub fn environment(
        &self,
        home: &Home,
        meta: &Meta,
        given: Vec<(OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let kind = meta.runtime.kind;
        let shared = shared_board(meta, &given);
        let mut env = crate::environment::for_agent(given, kind, &self.pass_env);
        let mut set = |name: &str, value: OsString| {
            env.retain(|(known, _)| known != name);
            env.push((name.into(), value));
        };
        for (name, value) in self.env.iter().chain(&meta.runtime.env) {
            set(name, value.into());
        }
        for (name, value) in shared {
            set(name, value);
        }
        set("CCB_HOME", home.path().into());
        set("CCB_AGENT", meta.address().into());
        set(MARKER, meta.agent_id.clone().into());
        set("CLAUDE_CODE_TEAM_NAME", meta.team.clone().into());
        set("CLAUDE_CODE_TASK_LIST_ID", meta.list.clone().into());
        if let Some(dir) = self.config_home(home, meta) {
            for name in CONFIG_HOMES {
                set(name, dir.join(name.to_lowercase()).into());
            }
        }
        let team = home.path().join("teams").join(&meta.team);
        set("CCB_SCRATCHPAD", team.join("scratchpad").into());
        if let Some(task) = &meta.task_id {
            set("CCB_TASK_ID", task.into());
        }
        if let Some(token) = meta.token {
            set("CCB_RUN_TOKEN", token.to_string().into());
        }
        if let Some(port) = meta.port_base {
            set("CCB_PORT_BASE", port.to_string().into());
        }
        if let Some(tmp) = &meta.tmp {
            set("TMPDIR", tmp.into());
        }
        env
    }
}

/// The variables an agent needs to find the board its task is on, if that is in a database: its own
/// `ccb` asks there, as it would look into files.
fn shared_board(meta: &Meta, given: &[(OsString, OsString)]) -> Vec<(&'static str, OsString)> {
    const PASSWORDS: [&str; 2] = ["PGPASSWORD", "PGPASSFILE"];
    let Some(shared) = &meta.options.shared else {
        return Vec::new();
    };
    let find = |wanted: &str| {
        let found = given.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone())
    };
    let board = find("CCB_BOARD").unwrap_or_else(|| shared.board.clone().into());
    let passwords = PASSWORDS.into_iter();
    let mut all: Vec<_> = passwords
        .filter_map(|name| Some((name, find(name)?)))
        .collect();
    all.push(("CCB_BOARD", board));
    all
}

/// Our own server gets the agent's identity: not every program passes its environment on.
fn with_identity(mut servers: Vec<McpServer>, env: &[(OsString, OsString)]) -> Vec<McpServer> {
    for server in servers
        .iter_mut()
        .filter(|server| server.name == OWN_SERVER)
    {
        for (name, value) in env {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                continue;
            };
            let ours = name.starts_with("CCB_")
                || name.starts_with("PGPASS")
                || TEAM_VARIABLES.contains(&name);
            if ours && !server.env.contains_key(name) {
                server.env.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    servers
}

/// A directory for an agent's temporary files: short, because sockets in it have short paths.
pub fn tmp_dir(agent_id: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ccb-{agent_id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_an_older_version_is_what_its_name_and_tools_say() {
        let meta = |json: serde_json::Value| -> Meta { serde_json::from_value(json).unwrap() };
        let of = |json| Standing::of(&meta(json));
        use serde_json::json;
        assert_eq!(of(json!({"name": "ann"})), Standing::Teammate);
        assert_eq!(of(json!({"launch": {"worker": true}})), Standing::Worker);
        assert_eq!(of(json!({"name": "team-lead"})), Standing::Lead);
        let server =
            json!({"name": "ccb", "command": "ccb", "args": ["mcp", "--role", "coordinator"]});
        let plan = json!({"mcpServers": [server]});
        assert_eq!(
            of(json!({"name": "team-lead", "launch": plan})),
            Standing::Coordinator
        );
        let plan = json!({"role": "worker"});
        assert_eq!(of(json!({"name": "ann", "launch": plan})), Standing::Worker);
    }
}
