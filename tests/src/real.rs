use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use swarm::runtime::{Event, Launch, McpServer, Message, Order};
use tempfile::TempDir;
use uuid::Uuid;

use crate::Talk;
use crate::model::ModelServer;

/// The real program named by an environment variable. The runner of `tests/real` ignores tests
/// whose program is missing, so one that runs has it.
pub fn real_program(variable: &str) -> String {
    find_real_program(variable).unwrap_or_else(|| panic!("{variable} names no program"))
}

/// The same for tests that can run without it.
pub fn find_real_program(variable: &str) -> Option<String> {
    std::env::var(variable)
        .ok()
        .filter(|program| !program.is_empty())
}

/// Everything a real agent program may touch: a model on loopback, and directories of its own.
#[derive(Debug)]
pub struct RealWorld {
    pub model: ModelServer,
    dir: TempDir,
}

impl RealWorld {
    pub fn new() -> Self {
        let world = Self {
            model: ModelServer::start(),
            dir: tempfile::tempdir().expect("a directory"),
        };
        for name in [
            "home/.claude",
            "home/.codex",
            "home/.gemini",
            "home/.qwen",
            "tmp",
            "repo",
            "scratch",
        ] {
            std::fs::create_dir_all(world.path(name)).expect("a directory");
        }
        world
    }

    /// A path in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The directory in which the agent works.
    pub fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    /// A launch for Claude Code, which is kept on loopback.
    pub fn claude(&self, prompt: &str) -> Launch {
        let home = self.path("home");
        let mut env = self.env();
        env.extend(pairs(&[
            ("CLAUDE_CONFIG_DIR", &home.join(".claude").to_string_lossy()),
            ("ANTHROPIC_BASE_URL", &self.model.url()),
            ("ANTHROPIC_API_KEY", "sk-ant-fake-000"),
            ("IS_SANDBOX", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
        ]));
        self.launch(prompt, env)
    }

    /// Claude Code as its user would start it, in the repository.
    pub fn command(&self, claude: &str) -> Command {
        let mut command = Command::new(claude);
        command
            .env_clear()
            .envs(self.claude("").env)
            .current_dir(self.repo())
            .stdin(Stdio::null());
        command
    }

    /// A launch for opencode.
    pub fn opencode(&self, prompt: &str) -> Launch {
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible",
            "options": { "baseURL": format!("{}/v1", self.model.url()), "apiKey": "fake" },
            "models": { "m": { "name": "m" }, "other": { "name": "other" } },
        });
        let config = json!({
            "provider": { "fake": provider },
            "model": "fake/m",
            "small_model": "fake/m",
        });
        let file = self.write("home/opencode.json", &config);
        let mut env = self.env();
        env.extend(pairs(&[
            ("OPENCODE_CONFIG", &file),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ]));
        self.launch(prompt, env)
    }

    /// A launch for gemini.
    pub fn gemini(&self, prompt: &str) -> Launch {
        let settings = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "privacy": { "usageStatisticsEnabled": false },
            "telemetry": { "enabled": false },
            "general": { "disableAutoUpdate": true, "enableAutoUpdate": false },
        });
        self.write("home/.gemini/settings.json", &settings);
        let mut env = self.env();
        env.extend(pairs(&[
            ("GEMINI_API_KEY", "fake"),
            ("GOOGLE_GEMINI_BASE_URL", &self.model.url()),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
            ("GEMINI_MODEL", "gemini-2.5-pro"),
        ]));
        self.launch(prompt, env)
    }

    /// A launch for qwen.
    pub fn qwen(&self, prompt: &str) -> Launch {
        let settings = json!({
            "security": { "auth": { "selectedType": "openai" } },
            "privacy": { "usageStatisticsEnabled": false },
            "telemetry": { "enabled": false },
            "general": { "disableAutoUpdate": true },
        });
        self.write("home/.qwen/settings.json", &settings);
        let mut env = self.env();
        env.extend(pairs(&[
            ("OPENAI_API_KEY", "fake"),
            ("OPENAI_BASE_URL", &format!("{}/v1", self.model.url())),
            ("OPENAI_MODEL", "m"),
        ]));
        self.launch(prompt, env)
    }

    /// A launch for codex.
    pub fn codex(&self, prompt: &str) -> Launch {
        let config = format!(
            "model = \"test-model\"\nmodel_provider = \"fake\"\n\
             [model_providers.fake]\nname = \"fake\"\nbase_url = \"{}/v1\"\n\
             env_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n\
             request_max_retries = 1\nstream_max_retries = 1\n",
            self.model.url()
        );
        let home = self.path("home/.codex");
        std::fs::write(home.join("config.toml"), config).expect("a file");
        let mut env = self.env();
        env.extend(pairs(&[
            ("CODEX_HOME", &home.to_string_lossy()),
            ("FAKE_KEY", "fake"),
        ]));
        self.launch(prompt, env)
    }

    /// Writes a configuration; returns its path.
    fn write(&self, name: &str, value: &serde_json::Value) -> String {
        let path = self.path(name);
        std::fs::write(&path, value.to_string()).expect("a file");
        path.to_string_lossy().into_owned()
    }

    fn env(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        vec![
            ("PATH".into(), path),
            ("HOME".into(), self.path("home").into()),
            ("TMPDIR".into(), self.path("tmp").into()),
            ("NO_PROXY".into(), "127.0.0.1".into()),
        ]
    }

    fn launch(&self, prompt: &str, env: Vec<(OsString, OsString)>) -> Launch {
        Launch {
            prompt: prompt.into(),
            cwd: self.repo(),
            scratch: self.path("scratch"),
            env,
            ..Launch::default()
        }
    }
}

impl Default for RealWorld {
    fn default() -> Self {
        Self::new()
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let owned = pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    owned.collect()
}

/// An MCP server under our name, with tools that answer with their own name.
pub fn fake_tools(program: &str, tools: &[&str]) -> McpServer {
    McpServer {
        name: swarm::tools::OWN_SERVER.into(),
        command: program.into(),
        args: tools.iter().map(ToString::to_string).collect(),
        ..McpServer::default()
    }
}

/// A shell command that reports its start and waits until [`let_go`].
pub fn waiting(repo: &Path, name: &str) -> String {
    let path = |kind: &str| repo.join(format!("{name}.{kind}")).display().to_string();
    let (gate, ready) = (path("gate"), path("ready"));
    format!("mkfifo {gate} && touch {ready} && cat {gate}")
}

/// Ends the wait of a command of [`waiting`].
pub fn let_go(repo: &Path, name: &str, words: &str) {
    is_waiting(repo, name);
    std::fs::write(repo.join(format!("{name}.gate")), words).expect("a reader");
}

/// Waits until a command of [`waiting`] waits.
pub fn is_waiting(repo: &Path, name: &str) {
    let ready = repo.join(format!("{name}.ready"));
    let limit = std::time::Duration::from_secs(60);
    crate::wait_until(limit, "the command to run", || ready.exists());
}

/// The input of a tool that runs a shell command.
pub fn shell(command: &str) -> serde_json::Value {
    json!({ "command": command, "description": "run it" })
}

/// The same launch of an agent that may do everything without asking.
pub fn freely(mut launch: Launch) -> Launch {
    launch.permission_mode = Some("bypassPermissions".into());
    launch
}

/// A message, and the order that sends it.
pub fn message(text: &str, now: bool) -> (Uuid, Order) {
    let id = Uuid::new_v4();
    let text = text.to_owned();
    (id, Order::Send(Message { id, text, now }))
}

/// Waits until a message has become part of the conversation.
pub fn accepted(talk: &mut Talk, wanted: Uuid) {
    talk.until("its confirmation", |event| match event {
        Event::Accepted { message } if message == wanted => Some(()),
        _ => None,
    });
}
