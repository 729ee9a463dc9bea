//! The part of the caller's environment that an agent gets.
//!
//! An agent runs commands that other people wrote, so it gets what it needs to work, and no more:
//! tools, language, network and toolchains; from the vendors' keys those of its own kind of
//! runtime. The setting `agents.env` lets more through. `docs/agents.md` has the list for users.
//!
//! Some variables are never passed on unless `agents.env` names them in full: the identity of the
//! calling session, and the variables that point git at a repository. With them an agent would act
//! for another agent or in another place.

use std::ffi::OsString;

use store::settings::RuntimeKind;

/// For every kind of agent. A `*` at the end stands for anything.
#[rustfmt::skip]
const EVERYBODY: &[&str] = &[
    // The user and the machine: without them shells, git and ssh do not find their files.
    "HOME", "LOGNAME", "PATH", "SHELL", "USER", "XDG_*",
    // Language and time, so that output can be read and sorted as the user is used to.
    "LANG", "LANGUAGE", "LC_*", "LOCALE_ARCHIVE", "TZ", "TZDIR", "__CF_USER_TEXT_ENCODING",
    // The terminal, for tools that look before they print; CI, for tests that do.
    "CI", "COLORTERM", "NO_COLOR", "TERM", "TERMINFO", "TERMINFO_DIRS",
    // Keys that stay where they are: agents of ssh and gpg, and the desktop's key ring.
    "DBUS_SESSION_BUS_ADDRESS", "GNUPGHOME", "GPG_TTY", "SSH_AGENT_PID", "SSH_AUTH_SOCK",
    // The way to the network, and whom to believe there.
    "ALL_PROXY", "CURL_CA_BUNDLE", "FTP_PROXY", "GIT_SSL_CAINFO", "HTTPS_PROXY", "HTTP_PROXY",
    "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR",
    "SSL_CERT_FILE", "all_proxy", "ftp_proxy", "http_proxy", "https_proxy", "no_proxy",
    // The author of commits. Not GIT_DIR and the like: they would point into another repository.
    "EMAIL", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_SSH",
    "GIT_SSH_COMMAND",
    // The places of toolchains, where they are not the usual ones. No registries: their addresses
    // often hold passwords.
    "ANDROID_HOME", "ANDROID_SDK_ROOT", "ASDF_DATA_DIR", "ASDF_DIR", "BUN_INSTALL",
    "BUNDLE_PATH", "CARGO_HOME", "CARGO_NET_OFFLINE", "CONDA_DEFAULT_ENV", "CONDA_EXE",
    "CONDA_PREFIX", "DENO_DIR", "DOTNET_ROOT", "FNM_DIR", "FNM_MULTISHELL_PATH", "GEM_HOME",
    "GEM_PATH", "GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPATH", "GOROOT", "GOTOOLCHAIN",
    "GRADLE_USER_HOME", "JAVA_HOME", "M2_HOME", "MAVEN_HOME", "MISE_DATA_DIR", "NIX_PATH",
    "NIX_PROFILES", "NODE_PATH", "NPM_CONFIG_CACHE", "NPM_CONFIG_PREFIX", "NVM_BIN", "NVM_DIR",
    "PNPM_HOME", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH", "RBENV_ROOT", "RBENV_VERSION",
    "RUSTC_WRAPPER", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "SCCACHE_DIR", "SDKMAN_DIR", "SDKROOT",
    "UV_CACHE_DIR", "VIRTUAL_ENV", "VOLTA_HOME", "npm_config_cache", "npm_config_prefix",
    // The options for compiling and linking here.
    "AR", "CC", "CFLAGS", "CPATH", "CPPFLAGS", "CXX", "CXXFLAGS", "DEVELOPER_DIR", "LDFLAGS",
    "LD_LIBRARY_PATH", "LIBRARY_PATH", "MACOSX_DEPLOYMENT_TARGET", "PKG_CONFIG_PATH",
    // Containers, and Windows around Linux.
    "CONTAINER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST", "WSL_DISTRO_NAME",
    "WSL_INTEROP",
];

#[rustfmt::skip]
const CLAUDE: &[&str] = &[
    "ANTHROPIC_*", "CLAUDE_*", "API_TIMEOUT_MS", "BASH_DEFAULT_TIMEOUT_MS",
    "BASH_MAX_OUTPUT_LENGTH", "BASH_MAX_TIMEOUT_MS", "DISABLE_*", "ENABLE_TOOL_SEARCH",
    "IS_SANDBOX", "MAX_MCP_OUTPUT_TOKENS", "MAX_THINKING_TOKENS", "MCP_TIMEOUT",
    "MCP_TOOL_TIMEOUT", "USE_BUILTIN_RIPGREP", "VERTEX_REGION_*",
];
/// Only for a Claude whose settings select these services.
const BEDROCK: &[&str] = &["AWS_*"];
const VERTEX: &[&str] = &["CLOUD_ML_REGION", "CLOUDSDK_*", "GOOGLE_*"];
const CODEX: &[&str] = &["AZURE_OPENAI_*", "CODEX_*", "OPENAI_*"];
/// The program behind this protocol, or the service behind our own loop, may be of any vendor.
#[rustfmt::skip]
const ACP: &[&str] = &[
    "ANTHROPIC_*", "AZURE_OPENAI_*", "CODEX_*", "CEREBRAS_*", "CODE_ASSIST_ENDPOINT", "COPILOT_*", "DASHSCOPE_*",
    "DEEPSEEK_*", "GEMINI_*", "GOOGLE_*", "GOOSE_*", "GROQ_*", "KIMI_*", "MISTRAL_*",
    "MOONSHOT_*", "OLLAMA_*", "OPENAI_*", "OPENCODE_*", "OPENROUTER_*", "QWEN_*", "XAI_*",
    "ZAI_*",
];

/// Variables that no pattern passes on.
#[rustfmt::skip]
const NEVER: &[&str] = &[
    // Ours are set anew for every agent.
    "CCB_*", "TMPDIR",
    // The session that called us is not the agent's.
    "CLAUDECODE", "CLAUDE_CODE_AGENT_*", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_*", "CLAUDE_CODE_PARENT_SESSION_ID", "CLAUDE_CODE_REMOTE*",
    "CLAUDE_CODE_SESSION_*", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_TASK_LIST_ID", "CLAUDE_CODE_TEAM_NAME", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR",
    "CODEX_SANDBOX", "CODEX_SANDBOX_*", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE",
    // Another repository than the one the agent is in.
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE",
    "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE",
    // A directory the agent is not in.
    "OLDPWD", "PWD",
];

/// The part of `all` that guard and host themselves get: the variables that git and our own code
/// need, and no key. All processes below them can read it, so it is less than any agent gets.
pub fn for_supervisors(
    all: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    const ALSO: &[&str] = &[
        "CCB_FAULT",
        "CCB_FAULT_HASTE",
        "CCB_FAULT_TRACE",
        "CCB_HOME",
        "RUST_BACKTRACE",
        "TMPDIR",
    ];
    let all: Vec<(OsString, OsString)> = all.into_iter().collect();
    let also = all
        .iter()
        .filter(|(name, _)| ALSO.iter().any(|it| name == it));
    let also: Vec<(OsString, OsString)> = also.cloned().collect();
    let mut kept = for_agent(all, RuntimeKind::Shell, &[""; 0]);
    kept.extend(also);
    kept
}

/// The part of `all` that an agent of this kind gets, by name. `let_through` are the patterns of
/// `agents.env`.
pub fn for_agent(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    kind: RuntimeKind,
    let_through: &[impl AsRef<str>],
) -> Vec<(OsString, OsString)> {
    let all: Vec<(OsString, OsString)> = all.into_iter().collect();
    let is_on = |name: &str| {
        let value = all.iter().find(|(given, _)| given == name);
        value.is_some_and(|(_, value)| !value.is_empty() && value != "0" && value != "false")
    };
    let vendor: &[&[&str]] = match kind {
        RuntimeKind::Shell | RuntimeKind::Lines => &[],
        RuntimeKind::Claude => match (
            is_on("CLAUDE_CODE_USE_BEDROCK"),
            is_on("CLAUDE_CODE_USE_VERTEX"),
        ) {
            (false, false) => &[CLAUDE],
            (true, false) => &[CLAUDE, BEDROCK],
            (false, true) => &[CLAUDE, VERTEX],
            (true, true) => &[CLAUDE, BEDROCK, VERTEX],
        },
        RuntimeKind::Codex => &[CODEX],
        RuntimeKind::Acp | RuntimeKind::Native => &[ACP],
    };
    let usual = |name: &str| {
        let lists = vendor.iter().copied().chain([EVERYBODY]);
        lists.flatten().any(|pattern| fits(pattern, name))
    };
    let mut kept: Vec<(OsString, OsString)> = all
        .iter()
        .filter(|(name, _)| {
            let Some(name) = name.to_str() else {
                return false;
            };
            let mut named = let_through.iter().map(AsRef::as_ref);
            let own = NEVER.iter().any(|pattern| fits(pattern, name));
            match own {
                // Our own variables are never passed on by a setting.
                true => !name.starts_with("CCB_") && named.any(|pattern| pattern == name),
                false => usual(name) || named.any(|pattern| fits(pattern, name)),
            }
        })
        .cloned()
        .collect();
    kept.sort();
    kept
}

/// The part of a native agent's environment `all` that its commands get: everything except the
/// variables for talking to models, unless `let_through` (the patterns of `agents.env`) names them.
pub fn for_commands(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    let_through: &[impl AsRef<str>],
) -> Vec<(OsString, OsString)> {
    let passes = |(name, _): &(OsString, OsString)| {
        let name = name.to_string_lossy();
        let mut named = let_through.iter().map(AsRef::as_ref);
        !is_for_models(&name) || named.any(|pattern| fits(pattern, &name))
    };
    all.into_iter().filter(passes).collect()
}

/// True if a variable is meant for talking to models, such as the key of a vendor.
pub(crate) fn is_for_models(name: &str) -> bool {
    ACP.iter().any(|pattern| fits(pattern, name))
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(names: &[&str], kind: RuntimeKind, let_through: &[&str]) -> Vec<String> {
        let all = names
            .iter()
            .map(|name| (OsString::from(*name), OsString::from("1")));
        let kept = for_agent(all, kind, let_through);
        let names = kept
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap());
        names.collect()
    }

    #[test]
    fn whoever_gets_a_vendors_key_gets_the_address_of_its_gateway() {
        for (kind, names) in [
            (RuntimeKind::Claude, &["ANTHROPIC_BASE_URL"][..]),
            (RuntimeKind::Codex, &["OPENAI_BASE_URL"]),
            (
                RuntimeKind::Acp,
                &[
                    "ANTHROPIC_BASE_URL",
                    "CODE_ASSIST_ENDPOINT",
                    "GOOGLE_GEMINI_BASE_URL",
                    "OPENAI_BASE_URL",
                ],
            ),
        ] {
            assert_eq!(kept(names, kind, &[]), names);
        }
    }

    #[test]
    fn what_is_needed_passes_and_secrets_do_not() {
        let names = [
            "PATH",
            "HOME",
            "LC_ALL",
            "XDG_RUNTIME_DIR",
            "SSH_AUTH_SOCK",
            "https_proxy",
            "CARGO_HOME",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "CARGO_REGISTRY_TOKEN",
            "PATHOLOGY",
            "EDITOR",
        ];
        let shell = kept(&names, RuntimeKind::Shell, &[]);
        let usual = [
            "CARGO_HOME",
            "HOME",
            "LC_ALL",
            "PATH",
            "SSH_AUTH_SOCK",
            "XDG_RUNTIME_DIR",
            "https_proxy",
        ];
        assert_eq!(shell, usual);
        assert_eq!(kept(&names, RuntimeKind::Lines, &[]), usual);
        let with = |kind| -> Vec<String> {
            let mut kept = kept(&names, kind, &[]);
            kept.retain(|name| !usual.contains(&name.as_str()));
            kept
        };
        assert_eq!(with(RuntimeKind::Claude), ["ANTHROPIC_API_KEY"]);
        assert_eq!(with(RuntimeKind::Codex), ["OPENAI_API_KEY"]);
        let acp = ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"];
        assert_eq!(with(RuntimeKind::Acp), acp);
    }

    #[test]
    fn the_cloud_s_keys_only_for_a_claude_in_the_cloud() {
        let names = ["AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS"];
        assert_eq!(kept(&names, RuntimeKind::Claude, &[]), [""; 0]);
        let bedrock = ["AWS_PROFILE", "GOOGLE_X", "CLAUDE_CODE_USE_BEDROCK"];
        let expected = ["AWS_PROFILE", "CLAUDE_CODE_USE_BEDROCK"];
        assert_eq!(kept(&bedrock, RuntimeKind::Claude, &[]), expected);
        let vertex = ["AWS_PROFILE", "GOOGLE_X", "CLAUDE_CODE_USE_VERTEX"];
        let expected = ["CLAUDE_CODE_USE_VERTEX", "GOOGLE_X"];
        assert_eq!(kept(&vertex, RuntimeKind::Claude, &[]), expected);
        let off = [("CLAUDE_CODE_USE_BEDROCK", "0"), ("AWS_PROFILE", "p")];
        let off = off.map(|(name, value)| (name.into(), value.into()));
        let off = for_agent(off, RuntimeKind::Claude, &[""; 0]);
        assert_eq!(off.len(), 1);
    }

    #[test]
    fn settings_let_more_through() {
        let names = ["DB_URL", "MY_A", "MY_B", "OTHER"];
        assert_eq!(
            kept(&names, RuntimeKind::Shell, &["DB_URL", "MY_*"]),
            ["DB_URL", "MY_A", "MY_B"]
        );
        assert_eq!(kept(&names, RuntimeKind::Shell, &["*"]), names);
    }

    #[test]
    fn no_pattern_hands_on_who_and_where_the_caller_is() {
        let names = [
            "CCB_AGENT",
            "CCB_RUN_ID",
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "GIT_DIR",
            "CLAUDE_CODE_TASK_LIST_ID",
            "GIT_INDEX_FILE",
            "PWD",
            "TMPDIR",
        ];
        assert_eq!(
            kept(&names, RuntimeKind::Claude, &["*", "CLAUDE_*"]),
            [""; 0]
        );
        let named = kept(&names, RuntimeKind::Claude, &["GIT_DIR", "CCB_AGENT"]);
        assert_eq!(named, ["GIT_DIR"], "in full, and never ours");
    }

    #[test]
    fn commands_of_a_native_agent_see_no_key_of_a_model() {
        let names = ["PATH", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MY_API_KEY"];
        let kept = |let_through: &[&str]| -> Vec<String> {
            let all = names.map(|name| (OsString::from(name), OsString::from("1")));
            let kept = for_commands(all, let_through).into_iter();
            kept.map(|(name, _)| name.into_string().unwrap()).collect()
        };
        assert_eq!(kept(&[]), ["PATH", "MY_API_KEY"]);
        let named = ["PATH", "OPENAI_API_KEY", "MY_API_KEY"];
        assert_eq!(kept(&["OPENAI_*"]), named);
    }

    #[test]
    fn names_that_are_no_text_do_not_pass() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"MY_\xff".to_vec());
        let kept = for_agent([(odd, OsString::from("1"))], RuntimeKind::Shell, &["*"]);
        assert_eq!(kept, []);
    }
}
