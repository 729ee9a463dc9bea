//! The first line that our own loop gets: the whole input of a runtime.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Launch, McpServer, Start};
use crate::environment;
use crate::provider::Provider;
use crate::sandbox::Sandbox;
use crate::tools::{Reach, ToolFilter};

/// Variables that hold keys, or are otherwise meant for talking to models, and their values. They
/// travel in the first line, so that the environment of the loop's process, which others can read in
/// `/proc`, does not hold them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Keys(BTreeMap<String, String>);

impl Keys {
    /// Takes them out of `env`. A value that is not text stays: no request can hold it.
    pub(super) fn take_from(
        env: &mut Vec<(OsString, OsString)>,
        provider: Option<&Provider>,
    ) -> Self {
        let secret: Vec<&str> = provider
            .into_iter()
            .flat_map(Provider::secret_variables)
            .collect();
        let mut keys = BTreeMap::new();
        env.retain(|(name, value)| {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                return true;
            };
            let is_key = secret.contains(&name) || environment::is_for_models(name);
            if is_key {
                keys.insert(name.to_owned(), value.to_owned());
            }
            !is_key
        });
        Self(keys)
    }

    /// The keys as variables of an environment.
    pub fn into_environment(self) -> Vec<(OsString, OsString)> {
        let all = self.0.into_iter();
        all.map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the values.
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The first line: who the agent is. Its environment is the process's own and [`Keys`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Opening {
    /// Always `prompt`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The first user message.
    pub text: String,
    /// Replaces the usual system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// A directory for temporary files, which goes when the run has ended.
    pub scratch: PathBuf,
    /// The directory of the conversation; `scratch` if it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<PathBuf>,
    /// The model by any of its names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The service of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// The model's effort of thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The only tools it may use; `None` allows all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools it must not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// The access its tools have to files.
    pub reach: Reach,
    /// The actions it may take without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The most turns it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The most it may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// MCP servers it gets, ours among them.
    pub mcp_servers: Vec<McpServer>,
    /// The servers it does not start without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_servers: Vec<String>,
    /// True if it gets no servers but those.
    pub only_given_servers: bool,
    /// True if the repository's configuration may take effect.
    pub trusted: bool,
    /// Directories it may also write to, such as its memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_write: Vec<PathBuf>,
    /// The confinement of its commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// Variables that the user lets agents have besides the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// Keys that are not in the environment of its process.
    #[serde(skip_serializing_if = "Keys::is_empty")]
    pub keys: Keys,
    /// The conversation to resume, or to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// True if it is a copy of `session`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// The last line of `session` that the copy gets; `None` means all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_at: Option<Uuid>,
}

impl Opening {
    /// The host's first line for `launch`, whose environment `keys` were taken from.
    pub fn of(launch: Launch, keys: Keys) -> Self {
        let sees_users_servers = launch.sees_users_servers();
        let (session, fork, fork_at) = match launch.start {
            Start::New => (None, false, None),
            Start::Resume { session } => (Some(session), false, None),
            Start::Fork { session, at } => (Some(session), true, at),
        };
        Self {
            kind: "prompt".to_owned(),
            text: launch.prompt,
            system: launch.system_prompt,
            cwd: launch.cwd,
            scratch: launch.scratch,
            records: launch.records,
            model: launch.model,
            provider: launch.provider,
            effort: launch.effort,
            tools: launch.tools,
            disallowed_tools: launch.disallowed_tools,
            reach: launch.reach,
            permission_mode: launch.permission_mode,
            max_turns: launch.max_turns,
            max_cost_usd: launch.max_cost_usd,
            mcp_servers: launch.mcp_servers,
            required_servers: launch.required_servers,
            only_given_servers: !sees_users_servers,
            trusted: launch.trusted,
            also_write: launch.also_write,
            sandbox: launch.sandbox,
            pass_env: launch.pass_env,
            keys,
            session,
            fork,
            fork_at,
        }
    }

    /// The tools it may use.
    pub fn filter(&self) -> ToolFilter {
        ToolFilter::new(self.tools.clone(), self.disallowed_tools.clone())
    }
}
